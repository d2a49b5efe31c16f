#include "compression/sparse_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/bit_pack.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/selection.h"

namespace isthmus {
namespace {

int64_t BlocksOf(int64_t values) { return (values + kBlockValues - 1) / kBlockValues; }

// Calls visit(values in block, kept values) for each block of a tensor, in order.
template <typename Visit>
void ForEachBlock(int64_t tensor_values, int k, Visit visit) {
  for (int64_t at = 0; at < tensor_values; at += kBlockValues) {
    const int64_t values = std::min(kBlockValues, tensor_values - at);
    visit(at, values, KeptValues(k, values));
  }
}

// Encodes tensors one after another into the streams of a frame.
class SparseEncoder {
 public:
  SparseEncoder(const CodecSpec& spec, FrameBody* body)
      : spec_(spec),
        levels_(LevelsOf(spec.value_bits)),
        body_(body),
        gaps_(&body->gaps),
        bits_(&body->values) {}

  // False when a difference is not finite; *bad_block is then the first position of its block.
  bool Tensor(absl::Span<const float> anchor, absl::Span<const float> parameters, int64_t* bad_block) {
    positions_.clear();
    codes_.clear();
    fitted_.clear();
    bool finite = true;
    ForEachBlock(anchor.size(), spec_.k, [&](int64_t at, int64_t values, int kept) {
      if (!finite) return;
      finite = Block(anchor.subspan(at, values), parameters.subspan(at, values), kept);
      *bad_block = at;
    });
    if (finite) Emit(anchor.size());
    return finite;
  }

  void Finish() { bits_.Finish(); }

 private:
  // Selects and fits; the levels wait for the tensor's exponent.
  bool Block(absl::Span<const float> anchor, absl::Span<const float> parameters, int kept) {
    const size_t values = anchor.size();
    if (!TakeDifference(anchor, parameters, absl::MakeSpan(differences_, values))) return false;
    for (size_t i = 0; i < values; ++i) {
      uint32_t bits;
      std::memcpy(&bits, &differences_[i], sizeof bits);
      magnitudes_[i] = bits & 0x7FFFFFFFu;
    }
    const size_t first = positions_.size();
    positions_.resize(first + kept);
    codes_.resize(first + kept);
    const absl::Span<uint16_t> positions = absl::MakeSpan(positions_).subspan(first);
    const absl::Span<uint8_t> codes = absl::MakeSpan(codes_).subspan(first);
    selector_.Select(absl::MakeConstSpan(magnitudes_, values), positions);
    for (int i = 0; i < kept; ++i) kept_[i] = std::fabs(differences_[positions[i]]);
    double levels[kMostLevels];
    FitLevels(absl::MakeConstSpan(kept_, kept), spec_.value_bits, codes, absl::MakeSpan(levels, levels_));
    for (int i = 0; i < kept; ++i) {
      codes[i] = static_cast<uint8_t>(codes[i] << 1 | (differences_[positions[i]] < 0));
    }
    fitted_.insert(fitted_.end(), levels, levels + levels_);
    return true;
  }

  // Quantizes the levels by the tensor's exponent and writes what is left.
  void Emit(int64_t tensor_values) {
    TensorHeader header;
    const double largest = *std::max_element(fitted_.begin(), fitted_.end());
    if (largest > 0) {
      header.form = TensorForm::kSparse;
      header.value_bits = static_cast<uint8_t>(spec_.value_bits);
      header.k = static_cast<uint16_t>(spec_.k);
      header.exponent = static_cast<int16_t>(LevelExponent(largest));
    }
    const size_t first_level = body_->levels.size();
    bool any = false;
    size_t at = 0, block = 0;
    ForEachBlock(largest > 0 ? tensor_values : 0, spec_.k, [&](int64_t, int64_t, int kept) {
      bool block_any = false;
      for (int c = 0; c < levels_; ++c) {
        const uint8_t level = NearestLevel(std::ldexp(fitted_[block * levels_ + c], -header.exponent));
        body_->levels.push_back(static_cast<char>(level));
        block_any |= level != 0;
      }
      if (block_any) EmitBlock(at, kept);
      any |= block_any;
      at += kept;
      ++block;
    });
    if (!any) {
      body_->levels.resize(first_level);
      header = TensorHeader();
    }
    body_->tensors.push_back(header);
  }

  void EmitBlock(size_t at, int kept) {
    gaps_.BeginRange();
    for (size_t i = at; i < at + kept; ++i) {
      gaps_.Position(positions_[i]);
      bits_.Put(codes_[i], spec_.value_bits);
    }
  }

  const CodecSpec spec_;
  const int levels_;
  FrameBody* body_;
  GapWriter gaps_;
  BitWriter bits_;
  BlockSelector selector_;
  float differences_[kBlockValues], kept_[kBlockValues];
  uint32_t magnitudes_[kBlockValues];
  // Of the tensor at hand, block after block.
  std::vector<uint16_t> positions_;
  std::vector<uint8_t> codes_;  // bit 0: negative; above it the class of the magnitude
  std::vector<double> fitted_;
};

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
    absl::Status status;
    ForEachBlock(tensor_values, spec_.k, [&](int64_t at, int64_t values, int kept) {
      const size_t level = level_;
      level_ += levels_;
      if (!status.ok() || !HasLevel(level)) return;
      if (!Block(at, values, kept, level, out)) {
        status = absl::InvalidArgumentError(
            absl::StrCat("frame: tensor ", tensor, ", block ", at / kBlockValues, ": ",
                         gaps_.is_spent() ? "gap stream ends, or passes" : "gaps pass", " the block's end"));
      }
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

  bool Block(int64_t at, int64_t values, int kept, size_t level, DecodedTensor* out) {
    int32_t mantissas[2 * kMostLevels];  // by code
    for (int c = 0; c < levels_; ++c) {
      mantissas[2 * c] = LevelValue(static_cast<uint8_t>(body_.levels[level + c]));
      mantissas[2 * c + 1] = -mantissas[2 * c];
    }
    gaps_.BeginRange(static_cast<uint64_t>(values));
    for (int i = 0; i < kept; ++i) {
      uint32_t position;
      if (!gaps_.Position(&position)) return false;
      out->positions.push_back(static_cast<uint32_t>(at) + position);
      out->mantissas.push_back(mantissas[bits_.Take(spec_.value_bits)]);
    }
    return true;
  }

  const CodecSpec spec_;
  const int levels_;
  const FrameBody& body_;
  GapReader gaps_;
  BitReader bits_;
  size_t level_ = 0;
};

}  // namespace

SparseCodec::SparseCodec(const CodecSpec& spec) : spec_(spec), text_(SpecText(spec)) {}

absl::StatusOr<std::string> SparseCodec::Encode(const Layout& layout, absl::Span<const float> anchor,
                                                absl::Span<const float> parameters) const {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  const PlainFloatScope plain;
  FrameBody body;
  body.tensors.reserve(layout.tensors());
  const auto encoder = std::make_unique<SparseEncoder>(spec_, &body);  // too large for a small stack
  for (int t = 0; t < layout.tensors(); ++t) {
    int64_t bad_block = 0;
    if (!encoder->Tensor(anchor.subspan(layout.offset(t), layout.size(t)),
                         parameters.subspan(layout.offset(t), layout.size(t)), &bad_block)) {
      return NonFiniteDifference(layout, t, bad_block, anchor, parameters);
    }
  }
  encoder->Finish();
  return SealFrame(layout, text_, spec_.zstd_level, body);
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
