#include "compression/mask_codec.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/bit_pack.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/sparse_blocks.h"
#include "compression/split_mix.h"

namespace isthmus {
namespace {

template <typename... What>
absl::Status TensorError(int tensor, const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", tensor, ": ", what...));
}

// Encodes tensor after tensor into a frame.
class MaskEncoder {
 public:
  MaskEncoder(const CodecSpec& spec, FrameBody* body)
      : spec_(spec), levels_(LevelsOf(spec.value_bits)), body_(body), bits_(&body->values) {}

  // −1, or the first position of a block with a difference that is not finite.
  int64_t Tensor(int tensor, absl::Span<const float> anchor, absl::Span<const float> parameters) {
    codes_.clear();
    means_.clear();
    int64_t bad = -1;
    ForEachBlock(anchor.size(), spec_.k, [&](int64_t at, int64_t values, int kept) {
      if (bad >= 0) return;
      if (!TakeDifference(anchor.subspan(at, values), parameters.subspan(at, values),
                          absl::MakeSpan(differences_, values))) {
        bad = at;
        return;
      }
      MaskPositions(spec_.seed, tensor, at / kBlockValues, static_cast<int>(values),
                    absl::MakeSpan(positions_, kept));
      Block(kept);
    });
    if (bad < 0) Finish(static_cast<int64_t>(anchor.size()));
    return bad;
  }

  void Finish() { bits_.Finish(); }

 private:
  void Block(int kept) {
    for (int i = 0; i < kept; ++i) magnitudes_[i] = std::fabs(differences_[positions_[i]]);
    double means[kMostLevels];
    FitLevels(absl::MakeConstSpan(magnitudes_, kept), spec_.value_bits, absl::MakeSpan(classes_, kept),
              absl::MakeSpan(means, levels_));
    means_.insert(means_.end(), means, means + levels_);
    for (int i = 0; i < kept; ++i) {
      codes_.push_back(static_cast<uint8_t>(classes_[i] << 1 | (differences_[positions_[i]] < 0)));
    }
  }

  void Finish(int64_t values) {
    TensorHeader header;
    const double largest = means_.empty() ? 0 : *std::max_element(means_.begin(), means_.end());
    const size_t first_level = body_->levels.size();
    bool any = false;
    if (largest > 0) {
      const int exponent = LevelExponent(largest);
      const double scale = std::ldexp(1.0, -exponent);
      size_t mean = 0, code = 0;
      ForEachBlock(values, spec_.k, [&](int64_t, int64_t, int kept) {
        bool block_any = false;
        for (int c = 0; c < levels_; ++c) {
          const uint8_t level = NearestLevel(means_[mean++] * scale);
          body_->levels.push_back(static_cast<char>(level));
          block_any |= level != 0;
        }
        for (int i = 0; block_any && i < kept; ++i) bits_.Put(codes_[code + i], spec_.value_bits);
        code += kept;
        any |= block_any;
      });
      if (any)
        header = {TensorForm::kSparse, static_cast<uint8_t>(spec_.value_bits), static_cast<uint16_t>(spec_.k),
                  static_cast<int16_t>(exponent)};
    }
    if (!any) body_->levels.resize(first_level);
    body_->tensors.push_back(header);
  }

  const CodecSpec spec_;
  const int levels_;
  FrameBody* body_;
  BitWriter bits_;
  std::vector<uint8_t> codes_;  // of the tensor
  std::vector<double> means_;
  float differences_[kBlockValues], magnitudes_[kBlockValues];
  uint16_t positions_[kBlockValues];
  uint8_t classes_[kBlockValues];
};

// Decodes tensor after tensor of a frame whose table has been checked.
class MaskDecoder {
 public:
  MaskDecoder(const CodecSpec& spec, const FrameBody& body)
      : spec_(spec), levels_(LevelsOf(spec.value_bits)), body_(body), bits_(body.values) {}

  // Whether levels and values are as many as the table and the levels say.
  absl::Status CheckCounts(const Layout& layout) const {
    size_t level = 0;
    int64_t kept_values = 0;
    for (int t = 0; t < layout.tensors(); ++t) {
      if (body_.tensors[t].form == TensorForm::kAbsent) continue;
      if (body_.levels.size() - level < static_cast<size_t>(BlocksOf(layout.size(t)) * levels_)) {
        return TensorError(t, "level stream ends");
      }
      ForEachBlock(layout.size(t), spec_.k, [&](int64_t, int64_t, int kept) {
        kept_values += HasLevel(level) ? kept : 0;
        level += levels_;
      });
    }
    const int64_t bytes = PackedBytes(kept_values, spec_.value_bits);
    if (level != body_.levels.size() || bytes != static_cast<int64_t>(body_.values.size())) {
      return absl::InvalidArgumentError(absl::StrCat("frame: level stream has ", body_.levels.size() - level,
                                                     " bytes left over, value stream ", body_.values.size(),
                                                     " bytes for ", kept_values, " values"));
    }
    return absl::OkStatus();
  }

  void Tensor(int tensor, int64_t tensor_values, DecodedTensor* out) {
    out->form = TensorForm::kSparse;
    out->exponent = body_.tensors[tensor].exponent;
    out->mantissa_bits = kLevelMantissaBits;
    ForEachBlock(tensor_values, spec_.k, [&](int64_t at, int64_t values, int kept) {
      const size_t level = level_;
      level_ += levels_;
      if (!HasLevel(level)) return;
      MaskPositions(spec_.seed, tensor, at / kBlockValues, static_cast<int>(values),
                    absl::MakeSpan(positions_, kept));
      const uint16_t* position = positions_;
      bits_.TakeEach(spec_.value_bits, kept, [&](uint32_t code) {
        const int32_t magnitude = LevelValue(static_cast<uint8_t>(body_.levels[level + (code >> 1)]));
        out->positions.push_back(static_cast<uint32_t>(at) + *position++);
        out->mantissas.push_back(code & 1 ? -magnitude : magnitude);
      });
    });
  }

  bool rest_is_zero() const { return bits_.rest_is_zero(); }

 private:
  bool HasLevel(size_t level) const {
    for (int c = 0; c < levels_; ++c) {
      if (body_.levels[level + c] != 0) return true;
    }
    return false;
  }

  const CodecSpec spec_;
  const int levels_;
  const FrameBody& body_;
  BitReader bits_;
  size_t level_ = 0;
  uint16_t positions_[kBlockValues];
};

}  // namespace

void MaskPositions(int seed, int tensor, int64_t block, int values, absl::Span<uint16_t> positions) {
  const uint64_t of_tensor =
      SplitMix(SplitMix(static_cast<uint64_t>(seed)).Next() + static_cast<uint64_t>(tensor)).Next();
  SplitMix random(of_tensor + static_cast<uint64_t>(block));
  uint64_t taken[kBlockValues / 64] = {};
  const auto take = [&taken](int at) {
    uint64_t* word = &taken[at / 64];
    const uint64_t bit = uint64_t{1} << (at % 64);
    const bool is_free = (*word & bit) == 0;
    *word |= bit;
    return is_free;
  };
  // Every set of positions is as likely as any other (Floyd's sample).
  for (int next = values - static_cast<int>(positions.size()); next < values; ++next) {
    const uint64_t high = random.Next() >> 32;
    if (!take(static_cast<int>(high * static_cast<uint64_t>(next + 1) >> 32))) take(next);
  }
  uint16_t* out = positions.data();
  for (int word = 0; word < kBlockValues / 64; ++word) {
    for (uint64_t left = taken[word]; left != 0; left &= left - 1) {
      *out++ = static_cast<uint16_t>(64 * word + __builtin_ctzll(left));
    }
  }
}

MaskCodec::MaskCodec(const CodecSpec& spec) : spec_(spec), text_(SpecText(spec)) {}

absl::StatusOr<std::string> MaskCodec::Encode(const Layout& layout, absl::Span<const float> anchor,
                                              absl::Span<const float> parameters) const {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  const PlainFloatScope plain;
  FrameBody body;
  const auto encoder = std::make_unique<MaskEncoder>(spec_, &body);
  for (int t = 0; t < layout.tensors(); ++t) {
    const int64_t bad = encoder->Tensor(t, anchor.subspan(layout.offset(t), layout.size(t)),
                                        parameters.subspan(layout.offset(t), layout.size(t)));
    if (bad >= 0) return NonFiniteDifference(layout, t, bad, anchor, parameters);
  }
  encoder->Finish();
  return SealFrame(layout, text_, spec_.zstd_level, body);
}

absl::StatusOr<DecodedFrame> MaskCodec::Decode(const Layout& layout, absl::string_view frame) const {
  const absl::StatusOr<FrameBody> body = OpenFrame(layout, text_, Limits(layout), frame);
  if (!body.ok()) return body.status();
  for (int t = 0; t < layout.tensors(); ++t) {
    const TensorHeader& header = body->tensors[t];
    if (header.form == TensorForm::kAbsent) continue;
    if (header.form != TensorForm::kSparse) return TensorError(t, "not of the sparse form");
    if (header.k != spec_.k || header.value_bits != spec_.value_bits) {
      return TensorError(t, "other settings than the codec spec");
    }
    if (header.exponent < kLeastExponent || header.exponent > kMostLevelExponent) {
      return TensorError(t, "exponent ", header.exponent, " is outside ", kLeastExponent, " to ",
                         kMostLevelExponent, ", where values are finite");
    }
  }
  const auto decoder = std::make_unique<MaskDecoder>(spec_, *body);
  if (absl::Status s = decoder->CheckCounts(layout); !s.ok()) return s;
  DecodedFrame decoded;
  decoded.tensors.resize(layout.tensors());
  for (int t = 0; t < layout.tensors(); ++t) {
    if (body->tensors[t].form != TensorForm::kAbsent) {
      decoder->Tensor(t, layout.size(t), &decoded.tensors[t]);
    }
  }
  if (!decoder->rest_is_zero()) {
    return absl::InvalidArgumentError("frame: value stream ends in bits that are not 0");
  }
  return decoded;
}

int64_t MaskCodec::BoundBytes(const Layout& layout) const {
  return FrameBound(layout, text_, Limits(layout));
}

FrameLimits MaskCodec::Limits(const Layout& layout) const {
  FrameLimits limits;
  int64_t kept_values = 0;
  for (int t = 0; t < layout.tensors(); ++t) {
    limits.level_bytes += BlocksOf(layout.size(t)) * LevelsOf(spec_.value_bits);
    ForEachBlock(layout.size(t), spec_.k, [&](int64_t, int64_t, int kept) { kept_values += kept; });
  }
  limits.value_bytes = PackedBytes(kept_values, spec_.value_bits);
  return limits;
}

}  // namespace isthmus
