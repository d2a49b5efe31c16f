// What every summable codec must do whatever it is given: shapes, looks of differences, float modes, claims.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "absl/strings/match.h"
#include "compression/byte_io.h"
#include "compression/codec.h"
#include "compression/frame_format.h"
#include "compression/sealed_bytes.h"
#include "compression/test_fillings.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

// A codec joins in by its spec.
const char* const kSpecs[] = {
    "topk(k=1)",
    "topk(k=64)",
    "topk(k=512)|levels(bits=2)",
    "topk(k=4096)|levels(bits=3)|zstd(3)",
    "topk(k=64)|levels(bits=auto)",
    "topk(k=64,share=energy)|levels(bits=auto)",
    "mask(k=64,seed=3)",
    "mask(k=1024)|levels(bits=3)",
    "dense(bits=24)",
    "dense(bits=8,group=64)",
    "dense(bits=8,group=4096)|zstd(0)",
    "dense(bits=4,group=64)",
    "dense(bits=4,group=64,hadamard=7)",
};

std::vector<Layout> Shapes() {
  return {Layout({}, 1),     Layout({1}, 1),    Layout({4095}, 1),
          Layout({4096}, 1), Layout({4097}, 1), Layout({3, 63, 64, 65, 2 * 4096 + 1234, 1}, 1)};
}

std::unique_ptr<Codec> Parsed(const char* spec) { return std::move(ParseCodecSpec(spec)).value(); }

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return false;
  return a.empty() || std::memcmp(a.data(), b.data(), sizeof(float) * a.size()) == 0;
}

// All values of the layout, in order.
std::vector<float> ValuesOf(const Layout& layout, const DecodedFrame& frame) {
  std::vector<float> values(layout.total());
  for (int t = 0; t < layout.tensors(); ++t) {
    const DecodedTensor& tensor = frame.tensors[t];
    for (size_t i = 0; i < tensor.mantissas.size(); ++i) {
      const int64_t position = tensor.form == TensorForm::kDense ? i : tensor.positions[i];
      values[layout.offset(t) + position] = DecodedValue(tensor.mantissas[i], tensor.exponent);
    }
  }
  return values;
}

void ExpectWellFormed(const Layout& layout, const DecodedFrame& frame, const std::string& what) {
  ASSERT_EQ(frame.tensors.size(), static_cast<size_t>(layout.tensors())) << what;
  for (int t = 0; t < layout.tensors(); ++t) {
    const DecodedTensor& tensor = frame.tensors[t];
    const size_t count = tensor.mantissas.size();
    ASSERT_EQ(count, tensor.form == TensorForm::kDense ? layout.size(t) : tensor.positions.size()) << what;
    for (size_t i = 0; i < tensor.positions.size(); ++i) {
      ASSERT_LT(tensor.positions[i], layout.size(t)) << what;
      ASSERT_TRUE(i == 0 || tensor.positions[i - 1] < tensor.positions[i]) << what;
    }
    for (int32_t m : tensor.mantissas) {
      ASSERT_LT(std::abs(int64_t{m}), int64_t{1} << tensor.mantissa_bits) << what;
      ASSERT_TRUE(std::isfinite(DecodedValue(m, tensor.exponent))) << what;
    }
  }
}

// The encoder's own account of what it kept is the residual it leaves: exactly what the frame does not hold.
void ExpectKeptIsDecoded(const Codec& codec, const Layout& layout, const std::vector<float>& anchor,
                         const std::vector<float>& parameters, const std::string& what) {
  const auto frame = codec.Encode(layout, anchor, parameters);
  ASSERT_TRUE(frame.ok()) << what << ": " << frame.status();
  ASSERT_LE(static_cast<int64_t>(frame->size()), codec.BoundBytes(layout)) << what;
  const auto decoded = codec.Decode(layout, *frame);
  ASSERT_TRUE(decoded.ok()) << what << ": " << decoded.status();
  ExpectWellFormed(layout, *decoded, what);
  const std::vector<float> values = ValuesOf(layout, *decoded), none(layout.total());
  std::vector<float> expected(layout.total()), left(layout.total());
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = (anchor[i] - parameters[i]) - values[i];
  const auto with_residual =
      codec.EncodeResidualTo(layout, anchor, parameters, 0, none, absl::MakeSpan(left));
  ASSERT_TRUE(with_residual.ok()) << what << ": " << with_residual.status();
  EXPECT_TRUE(*with_residual == *frame) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i] == 0) expected[i] = left[i] == 0 ? left[i] : expected[i];  // zeros may differ in sign
  }
  EXPECT_TRUE(SameBits(left, expected)) << what;
}

TEST(CodecPropertyTest, DecodingGivesWhatTheEncoderKeptInEveryShapeAndLook) {
  TestRandom random(13);
  for (const Layout& layout : Shapes()) {
    std::vector<float> anchor(layout.total()), parameters(layout.total());
    for (const Filling& filling : Fillings()) {
      filling.fill(&random, &anchor, &parameters);
      for (const char* spec : kSpecs) {
        ExpectKeptIsDecoded(*Parsed(spec), layout, anchor, parameters,
                            std::string(spec) + ", " + filling.name + ", " + std::to_string(layout.total()));
      }
    }
  }
}

TEST(CodecPropertyTest, WithoutDifferencesAllIsAbsent) {
  for (const Layout& layout : Shapes()) {
    const std::vector<float> anchor = TestRandom(2).Normals(layout.total(), 1);
    for (const char* spec : kSpecs) {
      const auto codec = Parsed(spec);
      const auto decoded = codec->Decode(layout, codec->Encode(layout, anchor, anchor).value());
      ASSERT_TRUE(decoded.ok()) << spec << ": " << decoded.status();
      for (const DecodedTensor& tensor : decoded->tensors)
        EXPECT_EQ(tensor.form, TensorForm::kAbsent) << spec;
    }
  }
}

TEST(CodecPropertyTest, WhatIsNotFiniteIsRefusedAndTheInputUntouched) {
  const Layout layout({4097, 70}, 1);
  std::vector<float> anchor = TestRandom(3).Normals(layout.total(), 1), parameters = anchor;
  const std::vector<float> residual(layout.total());
  for (const char* spec : kSpecs) {
    const auto codec = Parsed(spec);
    for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                      -std::numeric_limits<float>::infinity()}) {
      for (size_t at : {0, 4095, 4096, 4097, 4166}) {
        const float good = std::exchange(parameters[at], bad);
        const std::vector<float> anchor_before = anchor, parameters_before = parameters;
        const auto frame = codec->Encode(layout, anchor, parameters);
        EXPECT_EQ(frame.status().code(), absl::StatusCode::kInvalidArgument) << spec << " at " << at;
        EXPECT_TRUE(absl::StrContains(frame.status().message(), at < 4097 ? "tensor 0" : "tensor 1")) << spec;
        EXPECT_TRUE(SameBits(anchor, anchor_before) && SameBits(parameters, parameters_before)) << spec;
        parameters[at] = good;
      }
    }
  }
}

#if defined(__SSE2__)
TEST(CodecPropertyTest, AFloatingPointModeThatFlushesSubnormalsChangesNothing) {
  const Layout layout({2 * 4096 + 5, 70}, 1);
  const std::vector<float> anchor(layout.total());
  for (double scale : {0x1p-140, 0x1p-130, 1.0}) {
    const std::vector<float> parameters = TestRandom(4).Normals(layout.total(), scale);
    for (const char* spec : kSpecs) {
      const auto codec = Parsed(spec);
      const std::string expected = codec->Encode(layout, anchor, parameters).value();
      const std::vector<float> values = ValuesOf(layout, codec->Decode(layout, expected).value());
      const unsigned mode = _mm_getcsr();
      _mm_setcsr(mode | 0x8040u);
      const auto frame = codec->Encode(layout, anchor, parameters);
      const auto decoded = codec->Decode(layout, expected);
      const unsigned after = _mm_getcsr();
      _mm_setcsr(mode);
      EXPECT_EQ(after & 0x8040u, 0x8040u) << spec;
      ASSERT_TRUE(frame.ok() && decoded.ok()) << spec;
      EXPECT_TRUE(*frame == expected) << spec << ", scale " << scale;
      EXPECT_TRUE(SameBits(ValuesOf(layout, *decoded), values)) << spec << ", scale " << scale;
    }
  }
}
#endif

TEST(CodecPropertyTest, AHundredBytesThatClaimTwoToThe31AreRefused) {
  const Layout layout({4200, 3, 4096}, 1);
  for (const char* spec : kSpecs) {
    const auto codec = Parsed(spec);
    const std::string text = codec->spec();
    for (int stream = 0; stream < 4; ++stream) {
      std::string frame;
      BeginSealed({"frame", "ISFR"}, layout, &frame);
      ByteWriter writer(&frame);
      writer.U16(static_cast<uint16_t>(text.size()));
      writer.Bytes(text);
      writer.U8(stream < 2);               // a piece, or none
      if (stream % 2 == 1) writer.U16(0);  // an empty stream
      writer.Varint(uint64_t{1} << 31);
      writer.Varint(4);
      writer.Bytes("abcd");
      EndSealed(&frame);
      ASSERT_LE(frame.size(), 110u);
      const auto decoded = codec->Decode(layout, frame);
      EXPECT_EQ(decoded.status().code(), absl::StatusCode::kInvalidArgument) << spec;
      EXPECT_TRUE(absl::StrContains(decoded.status().message(), "claims 2147483648 bytes"))
          << spec << ", stream " << stream << ": " << decoded.status();
    }
  }
}

}  // namespace
}  // namespace isthmus
