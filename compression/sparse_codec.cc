#include "compression/sparse_codec.h"

#include "absl/strings/str_cat.h"
#include "compression/bit_pack.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/sparse_blocks.h"

namespace isthmus {
namespace {

// Reads the streams of a frame tensor after tensor.
class SparseDecoder {
 public:
  SparseDecoder(const CodecSpec& spec, const FrameBody& body)
      : spec_(spec), levels_(LevelsOf(spec.value_bits)), body_(body), gaps_(body.gaps), bits_(body.values) {}

  // The level stream says how many positions there are: checks that the value stream holds as many.
  absl::Status CheckCounts(const Layout& layout) const {
    size_t level = 0;
    int64_t kept_values = 0;
    for (int t = 0; t < layout.tensors(); ++t) {
      if (body_.tensors[t].form == TensorForm::kAbsent) continue;
      if (body_.levels.size() - level < static_cast<size_t>(BlocksOf(layout.size(t)) * levels_)) {
        return absl::InvalidArgumentError(absl::StrCat("frame: level stream ends in tensor ", t));
      }
      ForEachBlock(layout.size(t), spec_.k, [&](int64_t, int64_t, int kept) {
        kept_values += HasLevel(level) ? kept : 0;
        level += levels_;
      });
    }
    if (level != body_.levels.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("frame: level stream has ", body_.levels.size() - level, " bytes left over"));
    }
    const int64_t value_bytes = PackedBytes(kept_values, spec_.value_bits);
    if (static_cast<int64_t>(body_.values.size()) != value_bytes) {
      return absl::InvalidArgumentError(absl::StrCat("frame: value stream of ", body_.values.size(),
                                                     " bytes, ", kept_values, " kept values take ",
                                                     value_bytes));
    }
    return absl::OkStatus();
  }

  absl::Status Tensor(int tensor, int64_t tensor_values, DecodedTensor* out) {
    out->form = TensorForm::kSparse;
    out->exponent = body_.tensors[tensor].exponent;
    out->mantissa_bits = kLevelMantissaBits;
    size_t level = level_, count = 0, done = 0;
    ForEachBlock(tensor_values, spec_.k, [&](int64_t, int64_t, int kept) {
      count += HasLevel(level) ? kept : 0;
      level += levels_;
    });
    out->positions.resize(count);
    out->mantissas.resize(count);
    absl::Status status;
    ForEachBlock(tensor_values, spec_.k, [&](int64_t at, int64_t values, int kept) {
      const size_t of_block = level_;
      level_ += levels_;
      if (!status.ok() || !HasLevel(of_block)) return;
      gaps_.BeginRange(static_cast<uint64_t>(values));
      if (!gaps_.Positions(kept, static_cast<uint32_t>(at), &out->positions[done])) {
        status = absl::InvalidArgumentError(
            absl::StrCat("frame: tensor ", tensor, ", block ", at / kBlockValues, ": ",
                         gaps_.is_spent() ? "gap stream ends, or passes" : "gaps pass", " the block's end"));
        return;
      }
      Mantissas(of_block, kept, &out->mantissas[done]);
      done += kept;
    });
    return status;
  }

  absl::Status Finish() const {
    if (!gaps_.is_spent()) return absl::InvalidArgumentError("frame: gap stream has bytes left over");
    if (!bits_.rest_is_zero())
      return absl::InvalidArgumentError("frame: value stream ends in bits that are not 0");
    return absl::OkStatus();
  }

 private:
  bool HasLevel(size_t level) const {
    for (int c = 0; c < levels_; ++c) {
      if (body_.levels[level + c] != 0) return true;
    }
    return false;
  }

  void Mantissas(size_t level, int kept, int32_t* out) {
    int32_t mantissas[2 * kMostLevels];  // by code
    for (int c = 0; c < levels_; ++c) {
      mantissas[2 * c] = LevelValue(static_cast<uint8_t>(body_.levels[level + c]));
      mantissas[2 * c + 1] = -mantissas[2 * c];
    }
    bits_.TakeEach(spec_.value_bits, kept, [&](uint32_t code) { *out++ = mantissas[code]; });
  }

  const CodecSpec spec_;
  const int levels_;
  const FrameBody& body_;
  GapReader gaps_;
  BitReader bits_;
  size_t level_ = 0;
};

}  // namespace

SparseCodec::SparseCodec(const CodecSpec& spec, const EncodePlan& plan)
    : spec_(spec), plan_(plan), text_(SpecText(spec)) {}

absl::StatusOr<std::string> SparseCodec::Encode(const Layout& layout, absl::Span<const float> anchor,
                                                absl::Span<const float> parameters) const {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  const PlainFloatScope plain;
  const absl::StatusOr<FrameBody> body = EncodeSparse(spec_, plan_, layout, anchor, parameters);
  if (!body.ok()) return body.status();
  return SealFrame(layout, text_, spec_.zstd_level, *body);
}

absl::StatusOr<DecodedFrame> SparseCodec::Decode(const Layout& layout, absl::string_view frame) const {
  const absl::StatusOr<FrameBody> body = OpenFrame(layout, text_, Limits(layout), frame);
  if (!body.ok()) return body.status();
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = CheckHeader(body->tensors[t], t); !s.ok()) return s;
  }
  SparseDecoder decoder(spec_, *body);
  if (absl::Status s = decoder.CheckCounts(layout); !s.ok()) return s;
  DecodedFrame decoded;
  decoded.tensors.resize(layout.tensors());
  for (int t = 0; t < layout.tensors(); ++t) {
    if (body->tensors[t].form == TensorForm::kAbsent) continue;
    if (absl::Status s = decoder.Tensor(t, layout.size(t), &decoded.tensors[t]); !s.ok()) return s;
  }
  if (absl::Status s = decoder.Finish(); !s.ok()) return s;
  return decoded;
}

int64_t SparseCodec::BoundBytes(const Layout& layout) const {
  return FrameBound(layout, text_, Limits(layout));
}

FrameLimits SparseCodec::Limits(const Layout& layout) const {
  FrameLimits limits;
  int64_t kept_values = 0;
  for (int t = 0; t < layout.tensors(); ++t) {
    limits.level_bytes += BlocksOf(layout.size(t)) * LevelsOf(spec_.value_bits);
    ForEachBlock(layout.size(t), spec_.k, [&](int64_t, int64_t values, int kept) {
      kept_values += kept;
      limits.gap_bytes += GapBound(kept, values);
    });
  }
  limits.value_bytes = PackedBytes(kept_values, spec_.value_bits);
  return limits;
}

absl::Status SparseCodec::CheckHeader(const TensorHeader& header, int tensor) const {
  const auto error = [tensor](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", tensor, ": ", what...));
  };
  if (header.form == TensorForm::kAbsent) return absl::OkStatus();
  if (header.form != TensorForm::kSparse) return error("not of the sparse form");
  if (header.k > kBlockValues) return error("k ", header.k, " is beyond a block of ", kBlockValues);
  if (header.k != spec_.k) return error("k ", header.k, ", the codec spec says ", spec_.k);
  if (header.value_bits != spec_.value_bits) {
    return error(header.value_bits, " value bits, the codec spec says ", spec_.value_bits);
  }
  if (header.exponent < kLeastExponent || header.exponent > kMostLevelExponent) {
    return error("exponent ", header.exponent, " is outside ", kLeastExponent, " to ", kMostLevelExponent,
                 ", where values are finite");
  }
  return absl::OkStatus();
}

}  // namespace isthmus
