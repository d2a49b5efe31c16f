#include "daemon/app/real_differences.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "daemon/training/difference_dump.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class RealDifferencesTest : public testing::Test {
 protected:
  RealDifferencesTest()
      : folder_(testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    TensorInfo matrix, norm;
    matrix.name = "matrix";
    matrix.shape = {64, 128};
    norm.name = "norm";
    norm.shape = {64};
    table_ = TensorTable::FromTensors({matrix, norm}).value();
  }

  // Every 64th value of each block of 4096, so 64 of them, is `magnitude`.
  static std::vector<float> Comb(float magnitude) {
    std::vector<float> values(8192 + 64);
    for (size_t i = 0; i < 8192; i += 64) values[i] = magnitude;
    return values;
  }

  const std::string folder_;
  absl::StatusOr<TensorTable> table_ = absl::UnknownError("");
};

TEST_F(RealDifferencesTest, WhatWasDumpedIsMeasuredInTheModelsLayout) {
  DifferenceDump dump = DifferenceDump::Create(folder_, *table_).value();
  ASSERT_TRUE(dump.Add(4, 0, Comb(0.5f)).ok());
  ASSERT_TRUE(dump.Add(4, 1, Comb(-2)).ok());
  ASSERT_TRUE(dump.Finish().ok());
  const RealDifferences real = OpenRealDifferences(folder_).value();
  EXPECT_EQ(real.layout.tensors(), 2);
  EXPECT_EQ(real.layout.row_length(0), 128);
  EXPECT_EQ(real.layout.row_length(1), 0);
  EXPECT_EQ(real.names,
            (std::vector<std::string>{folder_ + "/round-4-site-0.f32", folder_ + "/round-4-site-1.f32"}));
  EXPECT_EQ(real.load(1).value(), Comb(-2));
  const RealFrameSizes sizes = MeasureRealFrames(real).value();
  EXPECT_EQ(sizes.parameters, 8256);
  EXPECT_EQ(sizes.frames, 2);
  const FrameSizeRow& row = sizes.rows[4];
  EXPECT_EQ(row.k, 64);
  EXPECT_EQ(row.value_bits, 1);
  EXPECT_NEAR(row.positions_bound, 7.364, 0.001);
  // Gap bytes of a block: a 0 and 63 times 63.
  EXPECT_NEAR(row.gap_entropy, 6.0 / 64 + 63 * 0.0227201 / 64, 1e-6);
  EXPECT_LT(row.positions, 2);
}

TEST_F(RealDifferencesTest, WhatIsNoSuchFolderIsRefusedByName) {
  EXPECT_EQ(OpenRealDifferences(folder_).status(), absl::NotFoundError(folder_ + "/index.txt: not there"));
  std::filesystem::create_directories(folder_);
  EXPECT_EQ(OpenRealDifferences(folder_).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(folder_ + "/index.txt") << "tensor a 2\n";
  EXPECT_EQ(MeasureRealFrames(OpenRealDifferences(folder_).value()).status(),
            absl::InvalidArgumentError(folder_ + ": no differences"));
  std::ofstream(folder_ + "/index.txt") << "tensor a 2\ndifference 0 0 x.f32\n";
  const RealDifferences real = OpenRealDifferences(folder_).value();
  const absl::Status absent = MeasureRealFrames(real).status();
  EXPECT_EQ(absent.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(absent.message()), HasSubstr(folder_ + "/x.f32: "));
}

}  // namespace
}  // namespace isthmus
