#include "compression/row_form.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "compression/sparse_limits.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// A matrix of differences: rows that are touched differ in one place or in all.
struct Matrix {
  std::vector<float> anchor, parameters;
  int64_t row_length = 1;

  RowForm Form(int k) const { return FindRowForm(k, row_length, anchor, parameters); }
};

Matrix Touching(const std::vector<uint32_t>& touched, int64_t rows, int64_t row_length) {
  Matrix m;
  m.row_length = row_length;
  m.anchor.assign(rows * row_length, 1.0f);
  m.parameters = m.anchor;
  for (uint32_t r : touched) m.parameters[(r + 1) * row_length - 1] = 2.0f;
  return m;
}

TEST(TouchedRowsTest, OneDifferenceAnywhereTouchesARow) {
  for (int64_t row_length : {1, 3, 16, 17, 100}) {
    const Matrix m = Touching({0, 2, 7}, 9, row_length);
    EXPECT_EQ(TouchedRows(m.anchor, m.parameters, row_length), (std::vector<uint32_t>{0, 2, 7}));
  }
}

TEST(TouchedRowsTest, ZerosOfEitherSignAreEqualAndWhatIsNotFiniteIsNot) {
  const std::vector<float> anchor = {0.0f, kInf, 1, kInf, std::numeric_limits<float>::quiet_NaN(), 0x1p-149f};
  const std::vector<float> parameters = {-0.0f, kInf, 1, 3, 0, 0};
  EXPECT_EQ(TouchedRows(anchor, parameters, 1), (std::vector<uint32_t>{1, 3, 4, 5}));
}

TEST(RowFormTest, NoRowsWhereThatHasNoUse) {
  EXPECT_TRUE(FindRowForm(64, 0, std::vector<float>(8192, 1), std::vector<float>(8192)).rows.empty());
  EXPECT_TRUE(Touching({}, 300, 128).Form(64).rows.empty());
  EXPECT_TRUE(Touching({0}, 1, 8192).Form(64).rows.empty());
  Matrix all = Touching({}, 300, 128);
  for (float& p : all.parameters) p += 1;
  EXPECT_TRUE(all.Form(64).rows.empty());
}

TEST(RowFormTest, TouchedRowsKeepWhatTheTensorWouldKeep) {
  // One row of 4096 in each block of its own: the same k.
  const RowForm wide = Touching({1, 3}, 5, 4096).Form(64);
  EXPECT_EQ(wide.rows, (std::vector<uint32_t>{1, 3}));
  EXPECT_EQ(wide.k, 64);
  // A quarter of each block's 32 rows: four times k.
  std::vector<uint32_t> quarter;
  for (uint32_t r = 0; r < 1024; r += 4) quarter.push_back(r);
  EXPECT_EQ(Touching(quarter, 1024, 128).Form(64).k, 256);
  // Half of the touched values, and more.
  EXPECT_EQ(Touching({5}, 512, 128).Form(64).k, 2048);
  EXPECT_TRUE(Touching({5}, 512, 120).Form(64).rows.empty());
}

TEST(RowFormTest, NeverMoreIsKept) {
  TestRandom random(12);
  for (int round = 0; round < 300; ++round) {
    const int64_t rows = 2 + random.Below(400), row_length = 1 + random.Below(round % 2 == 0 ? 100 : 6000);
    const double share = random.Uniform();
    std::vector<uint32_t> touched;
    for (uint32_t r = 0; r < rows; ++r) {
      if (random.Chance(share)) touched.push_back(r);
    }
    const int k = 1 + static_cast<int>(random.Below(round % 3 == 0 ? 4096 : 64));
    const RowForm form = Touching(touched, rows, row_length).Form(k);
    if (form.rows.empty()) continue;
    EXPECT_EQ(form.rows, touched);
    EXPECT_GE(form.k, 1);
    EXPECT_LE(form.k, 2048);
    const int64_t kept = MostKept(static_cast<int64_t>(touched.size()) * row_length, form.k);
    EXPECT_LE(kept, MostKept(rows * row_length, k)) << rows << " rows of " << row_length << ", k " << k;
  }
}

}  // namespace
}  // namespace isthmus
