#include "compression/fake_codecs.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/byte_io.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/frame_format.h"
#include "compression/gap_code.h"
#include "compression/level_table.h"

namespace isthmus {
namespace {

// Both write a frame whose value stream holds mantissas of four bytes; they differ in what they keep.
class FakeCodec : public Codec {
 public:
  FakeCodec(absl::string_view spec, TensorForm form, int mantissa_bits)
      : spec_(spec), form_(form), mantissa_bits_(mantissa_bits) {}

  std::string spec() const override { return spec_; }

  absl::StatusOr<std::string> Encode(const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) const override {
    if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
    const PlainFloatScope plain;
    FrameBody body;
    for (int t = 0; t < layout.tensors(); ++t) {
      std::vector<float> differences(layout.size(t));
      if (!TakeDifference(anchor.subspan(layout.offset(t), layout.size(t)),
                          parameters.subspan(layout.offset(t), layout.size(t)),
                          absl::MakeSpan(differences))) {
        return NonFiniteDifference(layout, t, 0, anchor, parameters);
      }
      DecodedTensor decoded;
      if (absl::Status s = Keep(t, differences, &decoded); !s.ok()) return s;
      Append(decoded, &body);
    }
    return SealFrame(layout, spec_, 1, body);
  }

  absl::StatusOr<DecodedFrame> Decode(const Layout& layout, absl::string_view frame) const override {
    const absl::StatusOr<FrameBody> body = OpenFrame(layout, spec_, Limits(layout), frame);
    if (!body.ok()) return body.status();
    ByteReader values(body->values), counts(body->levels);
    GapReader gaps(body->gaps);
    DecodedFrame decoded;
    decoded.tensors.resize(layout.tensors());
    for (int t = 0; t < layout.tensors(); ++t) {
      const TensorHeader& header = body->tensors[t];
      if (header.form == TensorForm::kAbsent) continue;
      uint32_t count = 0;
      if (header.form != form_ || !counts.U32(&count) || count > layout.size(t) ||
          values.left() / 4 < count || (form_ == TensorForm::kDense && count != layout.size(t)) ||
          header.exponent < kLeastExponent || header.exponent > 100 ||
          !ReadTensor(layout.size(t), count, &gaps, &values, &decoded.tensors[t])) {
        return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", t, " is malformed"));
      }
      decoded.tensors[t].exponent = header.exponent;
    }
    if (values.left() + counts.left() != 0 || !gaps.is_spent()) {
      return absl::InvalidArgumentError("frame: bytes left over");
    }
    return decoded;
  }

  int64_t BoundBytes(const Layout& layout) const override {
    return FrameBound(layout, spec_, Limits(layout));
  }

 protected:
  // Fills exponent, mantissas and, for the sparse form, positions; nothing kept means absent.
  virtual absl::Status Keep(int tensor, absl::Span<const float> differences, DecodedTensor* out) const = 0;

 private:
  static FrameLimits Limits(const Layout& layout) {
    return {4 * int64_t{layout.tensors()}, GapBound(layout.total(), layout.total()), 4 * layout.total()};
  }

  void Append(const DecodedTensor& decoded, FrameBody* body) const {
    TensorHeader header;
    if (!decoded.mantissas.empty()) {
      header.form = form_;
      header.exponent = static_cast<int16_t>(decoded.exponent);
      ByteWriter(&body->levels).U32(static_cast<uint32_t>(decoded.mantissas.size()));
    }
    GapWriter gaps(&body->gaps);
    for (uint32_t position : decoded.positions) gaps.Position(position);
    for (int32_t m : decoded.mantissas) ByteWriter(&body->values).U32(static_cast<uint32_t>(m));
    body->tensors.push_back(header);
  }

  bool ReadTensor(int64_t size, uint32_t count, GapReader* gaps, ByteReader* values,
                  DecodedTensor* out) const {
    out->form = form_;
    out->mantissa_bits = mantissa_bits_;
    gaps->BeginRange(static_cast<uint64_t>(size));
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t position = 0, bits = 0;
      if (form_ == TensorForm::kSparse) {
        if (!gaps->Position(&position)) return false;
        out->positions.push_back(position);
      }
      values->U32(&bits);
      out->mantissas.push_back(static_cast<int32_t>(bits));
      if (std::abs(int64_t{out->mantissas.back()}) >= int64_t{1} << mantissa_bits_) return false;
    }
    return true;
  }

  const std::string spec_;
  const TensorForm form_;
  const int mantissa_bits_;
};

class IdentityCodec : public FakeCodec {
 public:
  IdentityCodec() : FakeCodec("identity", TensorForm::kDense, 24) {}

 private:
  absl::Status Keep(int tensor, absl::Span<const float> differences, DecodedTensor* out) const override {
    int least = 1000;
    for (float d : differences) {
      if (d == 0) continue;
      int exponent;
      int64_t m = static_cast<int64_t>(std::ldexp(std::frexp(static_cast<double>(d), &exponent), 24));
      exponent -= 24;
      for (; m % 2 == 0; m /= 2) ++exponent;
      least = std::min(least, exponent);
    }
    if (least == 1000) return absl::OkStatus();
    out->exponent = least;
    for (size_t i = 0; i < differences.size(); ++i) {
      const double m = std::ldexp(static_cast<double>(differences[i]), -least);
      if (std::fabs(m) >= 1 << 24) {
        return absl::InvalidArgumentError(
            absl::StrCat("encode: identity cannot carry tensor ", tensor, " exactly"));
      }
      out->mantissas.push_back(static_cast<int32_t>(m));
    }
    return absl::OkStatus();
  }
};

class LossyCodec : public FakeCodec {
 public:
  LossyCodec() : FakeCodec("lossy", TensorForm::kSparse, kLevelMantissaBits) {}

 private:
  absl::Status Keep(int, absl::Span<const float> differences, DecodedTensor* out) const override {
    float largest = 0;
    for (size_t i = 0; i < differences.size(); i += 3) largest = std::max(largest, std::fabs(differences[i]));
    int exponent;
    std::frexp(largest, &exponent);
    out->exponent = std::max(exponent - 5, kLeastExponent);
    for (size_t i = 0; i < differences.size(); i += 3) {
      const auto m = static_cast<int32_t>(std::ldexp(static_cast<double>(differences[i]), -out->exponent));
      if (m == 0) continue;
      out->positions.push_back(static_cast<uint32_t>(i));
      out->mantissas.push_back(m);
    }
    return absl::OkStatus();
  }
};

}  // namespace

std::unique_ptr<Codec> MakeIdentityCodec() { return std::make_unique<IdentityCodec>(); }
std::unique_ptr<Codec> MakeLossyCodec() { return std::make_unique<LossyCodec>(); }

}  // namespace isthmus
