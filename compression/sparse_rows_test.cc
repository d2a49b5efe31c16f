// Matrices of which some rows have no difference: the form by rows, end to end.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "compression/codec_spec.h"
#include "compression/frame_format.h"
#include "compression/row_form.h"
#include "compression/sparse_codec.h"
#include "compression/sparse_limits.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

struct Shape {
  int64_t rows = 0, row_length = 0;
};

Layout LayoutOf(const Shape& shape) { return Layout({shape.rows * shape.row_length}, 1, {shape.row_length}); }

CodecSpec Spec(int k, int bits = 1) {
  CodecSpec spec;
  spec.k = k;
  spec.value_bits = bits;
  return spec;
}

std::string EncodedBy(const CodecSpec& spec, const Layout& layout, const std::vector<float>& differences,
                      SimdPath path = BestSimdPath()) {
  const std::vector<float> zeros(differences.size());
  return SparseCodec(spec, {path, 2}).Encode(layout, differences, zeros).value();
}

DecodedTensor DecodedBy(const CodecSpec& spec, const Layout& layout, const std::string& frame) {
  const auto decoded = SparseCodec(spec, {SimdPath::kPortable, 1}).Decode(layout, frame);
  EXPECT_TRUE(decoded.ok()) << decoded.status();
  return decoded.ok() ? decoded->tensors[0] : DecodedTensor();
}

TensorHeader HeaderOf(const CodecSpec& spec, const Layout& layout, const std::string& frame) {
  const FrameLimits limits = SparseFrameLimits(SparseLimits(spec), layout);
  return OpenFrame(layout, SpecText(spec), limits, frame).value().tensors[0];
}

// Differences in each row with a certain chance.
std::vector<float> Touched(const Shape& shape, double chance, TestRandom* random) {
  std::vector<float> differences(shape.rows * shape.row_length);
  for (int64_t r = 0; r < shape.rows; ++r) {
    if (!random->Chance(chance)) continue;
    for (int64_t c = 0; c < shape.row_length; ++c) {
      // Alike in magnitude, so that no survey asks for refined levels.
      const double magnitude = 1 + 0.2 * random->Uniform();
      differences[r * shape.row_length + c] =
          static_cast<float>(random->Chance(0.5) ? magnitude : -magnitude);
    }
  }
  return differences;
}

void ExpectSame(const DecodedTensor& a, const DecodedTensor& b, const std::string& what) {
  EXPECT_EQ(a.form, b.form) << what;
  EXPECT_EQ(a.exponent, b.exponent) << what;
  EXPECT_EQ(a.mantissa_bits, b.mantissa_bits) << what;
  EXPECT_EQ(a.positions, b.positions) << what;
  EXPECT_EQ(a.mantissas, b.mantissas) << what;
}

// What the touched rows decode to when they are a tensor of their own.
DecodedTensor OfRowsAlone(const CodecSpec& spec, const Shape& shape, const std::vector<float>& differences,
                          const RowForm& form) {
  std::vector<float> alone;
  for (uint32_t r : form.rows) {
    const auto begin = differences.begin() + r * shape.row_length;
    alone.insert(alone.end(), begin, begin + shape.row_length);
  }
  CodecSpec of_rows = spec;
  of_rows.k = form.k;
  const Layout layout({static_cast<int64_t>(alone.size())}, 1);
  DecodedTensor decoded = DecodedBy(of_rows, layout, EncodedBy(of_rows, layout, alone));
  for (uint32_t& p : decoded.positions) {
    p = static_cast<uint32_t>(form.rows[p / shape.row_length] * shape.row_length + p % shape.row_length);
  }
  return decoded;
}

TEST(SparseRowsTest, RowsDecodeAsATensorOfTheirOwnWouldAtTheirPlaces) {
  TestRandom random(61);
  std::map<TensorForm, int> seen;
  for (const Shape& shape : {Shape{4000, 64}, {1000, 100}, {300, 1000}, {7, 4096}, {40, 5000}, {5000, 1}}) {
    for (double chance : {0.002, 0.05, 0.3, 0.6}) {
      for (int bits : {1, 2, 3}) {
        const CodecSpec spec = Spec(16, bits);
        const Layout layout = LayoutOf(shape);
        const std::vector<float> differences = Touched(shape, chance, &random);
        const std::vector<float> zeros(differences.size());
        const std::string frame = EncodedBy(spec, layout, differences);
        const TensorHeader header = HeaderOf(spec, layout, frame);
        const std::string what = std::to_string(shape.rows) + " × " + std::to_string(shape.row_length) +
                                 ", " + std::to_string(chance) + ", bits " + std::to_string(bits);
        ++seen[header.form];
        if (header.form == TensorForm::kRows) {
          const RowForm form = FindRowForm(16, shape.row_length, differences, zeros);
          EXPECT_EQ(header.rows, form.rows.size()) << what;
          ExpectSame(DecodedBy(spec, layout, frame), OfRowsAlone(spec, shape, differences, form), what);
        } else {
          const Layout without({layout.size(0)}, 1);
          EXPECT_EQ(frame, EncodedBy(spec, without, differences)) << what;
        }
      }
    }
  }
  EXPECT_GT(seen[TensorForm::kRows], 10);
  EXPECT_GT(seen[TensorForm::kSparse], 10);
}

TEST(SparseRowsTest, FramesAreNotLargerThanWithoutRows) {
  TestRandom random(62);
  double with = 0, without = 0;
  for (const Shape& shape : {Shape{16384, 64}, {8192, 128}, {2048, 512}}) {
    for (double chance : {0.02, 0.05, 0.2, 0.5, 0.9}) {
      const Layout layout = LayoutOf(shape), plain({layout.total()}, 1);
      const std::vector<float> differences = Touched(shape, chance, &random);
      const size_t rows = EncodedBy(Spec(64), layout, differences).size();
      const size_t whole = EncodedBy(Spec(64), plain, differences).size();
      EXPECT_LT(rows, whole * 1.01 + 20) << shape.rows << " rows, " << chance;
      with += static_cast<double>(rows);
      without += static_cast<double>(whole);
    }
  }
  EXPECT_LT(with, 0.98 * without);
}

TEST(SparseRowsTest, NoRowOneRowSomeRowsAndAllRows) {
  const Shape shape{2560, 480};  // 300 blocks
  const Layout layout = LayoutOf(shape);
  const auto touching = [&](const std::vector<int64_t>& rows) {
    std::vector<float> differences(layout.total());
    for (int64_t r : rows) {
      for (int64_t c = 0; c < 480; ++c) differences[r * 480 + c] = c % 2 == 0 ? 0.25f : -0.25f;
    }
    return differences;
  };
  const auto expect_values = [&](const DecodedTensor& decoded, size_t count, int64_t step) {
    EXPECT_EQ(decoded.positions.size(), count);
    for (size_t i = 0; i < decoded.positions.size(); ++i) {
      EXPECT_EQ(decoded.positions[i] / 480 % step, 1);
      EXPECT_EQ(DecodedValue(decoded.mantissas[i], decoded.exponent),
                decoded.positions[i] % 2 == 0 ? 0.25f : -0.25f);
    }
  };
  const std::string none = EncodedBy(Spec(64), layout, touching({}));
  EXPECT_EQ(HeaderOf(Spec(64), layout, none).form, TensorForm::kAbsent);
  expect_values(DecodedBy(Spec(64), layout, EncodedBy(Spec(64), layout, touching({1001}))), 64, 1000);

  std::vector<int64_t> tenth, all;
  for (int64_t r = 1; r < 2560; r += 10) tenth.push_back(r);
  for (int64_t r = 0; r < 2560; ++r) all.push_back(r);
  const std::string some = EncodedBy(Spec(64), layout, touching(tenth));
  const TensorHeader header = HeaderOf(Spec(64), layout, some);
  EXPECT_EQ(header.form, TensorForm::kRows);
  EXPECT_EQ(header.rows, 256);
  expect_values(DecodedBy(Spec(64), layout, some), MostKept(256 * 480, header.k), 10);

  EXPECT_EQ(HeaderOf(Spec(64), layout, EncodedBy(Spec(64), layout, touching(all))).form, TensorForm::kSparse);
}

TEST(SparseRowsTest, WhatIsTooSmallForALevelIsAbsentWithItsRows) {
  const Layout layout({200 * 64, 64}, 1, {64, 0});
  std::vector<float> differences(layout.total());
  differences[0] = 0x1p-149f;  // below half a level at the least exponent
  differences.back() = 1;
  const std::string frame = EncodedBy(Spec(64), layout, differences);
  EXPECT_EQ(HeaderOf(Spec(64), layout, frame).form, TensorForm::kAbsent);
  EXPECT_EQ(
      SparseCodec(Spec(64), {SimdPath::kPortable, 1}).Decode(layout, frame)->tensors[1].positions.size(), 1);
}

TEST(SparseRowsTest, EveryPathAndAnyThreadsGiveTheSameFrames) {
  TestRandom random(63);
  for (const Shape& shape : {Shape{20000, 64}, {700, 1000}}) {
    const Layout layout = LayoutOf(shape);
    const std::vector<float> differences = Touched(shape, 0.1, &random), zeros(differences.size());
    for (int bits : {1, 2, kAutoValueBits}) {
      const std::string oracle = EncodedBy(Spec(64, bits), layout, differences, SimdPath::kPortable);
      EXPECT_EQ(HeaderOf(Spec(64, bits), layout, oracle).form, TensorForm::kRows);
      for (SimdPath path : kAllSimdPaths) {
        if (!HasSimdPath(path)) continue;  // sparse_paths_test says which
        for (int threads : {1, 3}) {
          EXPECT_EQ(SparseCodec(Spec(64, bits), {path, threads}).Encode(layout, differences, zeros).value(),
                    oracle);
        }
      }
    }
  }
}

TEST(SparseRowsTest, AValueThatIsNotFiniteIsNamedByItsPlaceInTheTensor) {
  const Layout layout({5, 2000 * 64}, 1, {0, 64});
  std::vector<float> differences(layout.total()), zeros(layout.total());
  differences[5 + 1000 * 64 + 3] = 1;
  differences[5 + 1500 * 64 + 7] = std::numeric_limits<float>::infinity();
  const auto frame = SparseCodec(Spec(64), {BestSimdPath(), 3}).Encode(layout, differences, zeros);
  EXPECT_EQ(
      frame.status().message(),
      "encode: the difference of tensor 1 at position 96007 is not finite (anchor Inf, parameter finite)");
}

}  // namespace
}  // namespace isthmus
