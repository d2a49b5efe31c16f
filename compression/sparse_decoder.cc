#include "compression/sparse_decoder.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/bit_pack.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/sparse_blocks.h"

namespace isthmus {
namespace {

// Reads the streams tensor after tensor.
class Decoder {
 public:
  explicit Decoder(const FrameBody& body) : body_(body), gaps_(body.gaps), bits_(body.values) {}

  // How many levels there are, the table says; nothing is made room for before this.
  absl::Status CheckLevels(const Layout& layout) const {
    size_t used = 0;
    for (int t = 0; t < layout.tensors(); ++t) {
      const TensorHeader& header = body_.tensors[t];
      if (header.form == TensorForm::kAbsent) continue;
      const int64_t levels = BlocksOf(CodedValues(layout, header, t)) * LevelsOf(header.value_bits);
      if (body_.levels.size() - used < static_cast<size_t>(levels)) {
        return absl::InvalidArgumentError(absl::StrCat("frame: level stream ends in tensor ", t));
      }
      used += static_cast<size_t>(levels);
    }
    if (used == body_.levels.size()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("frame: level stream has ", body_.levels.size() - used, " bytes left over"));
  }

  absl::Status Tensor(int tensor, const Layout& layout, DecodedTensor* out) {
    const TensorHeader& header = body_.tensors[tensor];
    std::vector<uint32_t> rows;
    if (header.form == TensorForm::kRows) {
      if (absl::Status s = Rows(tensor, layout.rows(tensor), &rows); !s.ok()) return s;
    }
    const int64_t tensor_values = CodedValues(layout, header, tensor);
    if (absl::Status s = Values(tensor, tensor_values, out); !s.ok()) return s;
    if (!rows.empty()) SpreadRows(rows, layout.row_length(tensor), &out->positions);
    return absl::OkStatus();
  }

  absl::Status Finish() const {
    if (!gaps_.is_spent()) return absl::InvalidArgumentError("frame: gap stream has bytes left over");
    const int64_t bytes = PackedBytes(bits_taken_, 1);
    if (static_cast<int64_t>(body_.values.size()) != bytes) {
      return absl::InvalidArgumentError(absl::StrCat("frame: value stream of ", body_.values.size(),
                                                     " bytes, the values at the positions take ", bytes));
    }
    if (!bits_.rest_is_zero())
      return absl::InvalidArgumentError("frame: value stream ends in bits that are not 0");
    return absl::OkStatus();
  }

 private:
  // Which rows are sent; each takes a byte of the gaps.
  absl::Status Rows(int tensor, int64_t tensor_rows, std::vector<uint32_t>* rows) {
    const uint32_t sent = body_.tensors[tensor].rows;
    gaps_.BeginRange(static_cast<uint64_t>(tensor_rows));
    rows->reserve(std::min<size_t>(sent, gaps_.left()));
    for (uint32_t i = 0; i < sent; ++i) {
      uint32_t row;
      if (!gaps_.Position(&row)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "frame: tensor ", tensor, ": gap stream ends, or passes the last of ", tensor_rows, " rows"));
      }
      rows->push_back(row);
    }
    return absl::OkStatus();
  }

  // Positions among the values of some rows become those in the tensor.
  static void SpreadRows(const std::vector<uint32_t>& rows, int64_t row_length,
                         std::vector<uint32_t>* positions) {
    size_t row = 0;
    int64_t begin = 0;  // where the row's values begin among those sent
    for (uint32_t& position : *positions) {
      while (position >= begin + row_length) {
        ++row;
        begin += row_length;
      }
      position = static_cast<uint32_t>(rows[row] * row_length + (position - begin));
    }
  }

  absl::Status Values(int tensor, int64_t tensor_values, DecodedTensor* out) {
    const TensorHeader& header = body_.tensors[tensor];
    const int levels = LevelsOf(header.value_bits);
    out->form = TensorForm::kSparse;
    out->exponent = header.exponent;
    out->mantissa_bits = kLevelMantissaBits;
    // Only the gaps say how many values there are, but each takes a byte of them.
    const size_t most = std::min<size_t>(MostSent(header, tensor_values), gaps_.left());
    out->positions.resize(most);
    out->mantissas.resize(most);
    size_t done = 0;
    for (int64_t at = 0; at < tensor_values; at += kBlockValues, level_ += levels) {
      if (!HasLevel(level_, levels)) continue;
      const int64_t values = std::min(kBlockValues, tensor_values - at);
      gaps_.BeginRange(static_cast<uint64_t>(values));
      const int kept = gaps_.PositionsOrEnd(KeptValues(header.k, values), static_cast<uint32_t>(at),
                                            out->positions.data() + done);
      if (kept <= 0) return BadBlock(tensor, at, kept);
      if (!TakeMantissas(header.value_bits, kept, out->mantissas.data() + done)) {
        return absl::InvalidArgumentError(absl::StrCat("frame: value stream ends in tensor ", tensor));
      }
      done += static_cast<size_t>(kept);
    }
    out->positions.resize(done);
    out->mantissas.resize(done);
    return absl::OkStatus();
  }

  bool HasLevel(size_t level, int levels) const {
    for (int c = 0; c < levels; ++c) {
      if (body_.levels[level + c] != 0) return true;
    }
    return false;
  }

  // Most values that the tensor's levels, which are next, let it send.
  size_t MostSent(const TensorHeader& header, int64_t tensor_values) const {
    size_t level = level_, most = 0;
    ForEachBlock(tensor_values, header.k, [&](int64_t, int64_t, int kept) {
      most += HasLevel(level, LevelsOf(header.value_bits)) ? static_cast<size_t>(kept) : 0;
      level += LevelsOf(header.value_bits);
    });
    return most;
  }

  absl::Status BadBlock(int tensor, int64_t at, int kept) const {
    const char* what = kept == 0          ? "levels, but no positions"
                       : gaps_.is_spent() ? "gap stream ends, or passes the block's end"
                                          : "gaps pass the block's end";
    return absl::InvalidArgumentError(
        absl::StrCat("frame: tensor ", tensor, ", block ", at / kBlockValues, ": ", what));
  }

  // Of the block whose levels are next. False when the values end.
  bool TakeMantissas(int value_bits, int kept, int32_t* out) {
    bits_taken_ += int64_t{kept} * value_bits;
    if (bits_taken_ > 8 * static_cast<int64_t>(body_.values.size())) return false;
    int32_t mantissas[2 * kMostLevels];  // by code
    for (int c = 0; c < LevelsOf(value_bits); ++c) {
      mantissas[2 * c] = LevelValue(static_cast<uint8_t>(body_.levels[level_ + c]));
      mantissas[2 * c + 1] = -mantissas[2 * c];
    }
    bits_.TakeEach(value_bits, kept, [&](uint32_t code) { *out++ = mantissas[code]; });
    return true;
  }

  const FrameBody& body_;
  GapReader gaps_;
  BitReader bits_;
  size_t level_ = 0;
  int64_t bits_taken_ = 0;
};

}  // namespace

absl::StatusOr<DecodedFrame> DecodeSparse(const SparseLimits& limits, const Layout& layout,
                                          const FrameBody& body) {
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = CheckSparseHeader(limits, layout, body.tensors[t], t); !s.ok()) return s;
  }
  Decoder decoder(body);
  if (absl::Status s = decoder.CheckLevels(layout); !s.ok()) return s;
  DecodedFrame decoded;
  decoded.tensors.resize(layout.tensors());
  for (int t = 0; t < layout.tensors(); ++t) {
    if (body.tensors[t].form == TensorForm::kAbsent) continue;
    if (absl::Status s = decoder.Tensor(t, layout, &decoded.tensors[t]); !s.ok()) return s;
  }
  if (absl::Status s = decoder.Finish(); !s.ok()) return s;
  return decoded;
}

}  // namespace isthmus
