#include "compression/sparse_decoder.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/bit_pack.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/sparse_blocks.h"

namespace isthmus {
namespace {

const uint8_t* Bytes(const std::string& s) { return reinterpret_cast<const uint8_t*>(s.data()); }

// Walks the streams tensor after tensor and places what each block has. The streams have their slack already;
// how long they are without it is given.
class Placer {
 public:
  Placer(PlaceFullFn place_full, const FrameBody& body, size_t gap_bytes, size_t value_bytes,
         CheckedFrame* checked)
      : place_full_(place_full),
        body_(body),
        gap_bytes_(gap_bytes),
        value_bits_(8 * value_bytes),
        checked_(checked) {}

  // Which rows of a tensor by rows are sent; each takes a byte of the gaps.
  absl::Status Rows(int tensor, int64_t tensor_rows, uint32_t sent, std::vector<uint32_t>* rows) {
    const size_t left = gap_bytes_ - gap_;
    GapReader gaps(absl::string_view(body_.gaps).substr(gap_, left));
    gaps.BeginRange(static_cast<uint64_t>(tensor_rows));
    rows->reserve(std::min<size_t>(sent, left));
    for (uint32_t i = 0; i < sent; ++i) {
      uint32_t row;
      if (!gaps.Position(&row)) {
        return absl::InvalidArgumentError(absl::StrCat(
            "frame: tensor ", tensor, ": gap stream ends, or passes the last of ", tensor_rows, " rows"));
      }
      rows->push_back(row);
    }
    gap_ += left - gaps.left();
    return absl::OkStatus();
  }

  // `tensor_values` are coded, of all rows or of those sent.
  absl::Status Tensor(int tensor, int64_t tensor_values, const TensorHeader& header) {
    const int64_t blocks = BlocksOf(tensor_values), whole = tensor_values / kBlockValues;
    const int levels = LevelsOf(header.value_bits);
    checked_->placed[tensor] = {header.value_bits, block_, level_, entry_};
    uint16_t* counts = checked_->counts.data() + block_;
    for (int64_t b = 0, run_end = 0; b < blocks;) {
      if (!HasLevel(level_ + static_cast<size_t>(b * levels), levels)) {
        counts[b++] = 0;
        continue;
      }
      // As many blocks of the same kind as follow one another.
      if (b < whole) run_end = std::max(run_end, b + 1);
      while (run_end < whole && HasLevel(level_ + static_cast<size_t>(run_end * levels), levels)) ++run_end;
      const int64_t done = b < run_end ? FullBlocks(header, std::min(run_end - b, at_once_), &counts[b]) : 0;
      if (done == 0) {
        const int64_t values = std::min(kBlockValues, tensor_values - b * kBlockValues);
        if (absl::Status s = Block(tensor, b, static_cast<int>(values), header, &counts[b]); !s.ok())
          return s;
      }
      b += std::max<int64_t>(done, 1);
    }
    block_ += static_cast<size_t>(blocks);
    level_ += static_cast<size_t>(blocks * levels);
    return absl::OkStatus();
  }

  // Lets the entries of the tensor just placed go.
  void Drop(int tensor) {
    entry_ = checked_->placed[tensor].first_entry;
    checked_->placed[tensor] = PlacedTensor();
  }

  absl::Status Finish() const {
    if (gap_ != gap_bytes_) return absl::InvalidArgumentError("frame: gap stream has bytes left over");
    const size_t bytes = static_cast<size_t>(PackedBytes(static_cast<int64_t>(bit_), 1));
    if (value_bits_ != 8 * bytes) {
      return absl::InvalidArgumentError(absl::StrCat("frame: value stream of ", value_bits_ / 8,
                                                     " bytes, the values at the positions take ", bytes));
    }
    if (bit_ % 8 != 0 && Bytes(body_.values)[bit_ / 8] >> (bit_ % 8) != 0)
      return absl::InvalidArgumentError("frame: value stream ends in bits that are not 0");
    checked_->entries.resize(entry_ + kEntrySlack);
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kMostAtOnce = 1 << 20;

  bool HasLevel(size_t level, int levels) const {
    const char* of_block = checked_->levels.data() + level;
    return std::any_of(of_block, of_block + levels, [](char c) { return c != 0; });
  }

  // Of up to `blocks` those that are full, up to the first that is not or that the vectors do not reach.
  int64_t FullBlocks(const TensorHeader& header, int64_t blocks, uint16_t* counts) {
    const size_t bits = static_cast<size_t>(header.k) * header.value_bits;
    const int64_t with_values = static_cast<int64_t>((value_bits_ - bit_) / bits);
    const EntryStreams streams{Bytes(body_.gaps) + gap_, gap_bytes_ - gap_, Bytes(body_.values), bit_,
                               header.value_bits};
    const int asked = static_cast<int>(std::min(blocks, with_values));
    const PlacedBlocks placed = place_full_(streams, header.k, asked, checked_->entries.data() + entry_);
    std::fill(counts, counts + placed.blocks, header.k);
    at_once_ = placed.blocks < asked ? 1 : std::clamp<int64_t>(2 * int64_t{asked}, at_once_, kMostAtOnce);
    gap_ += placed.gap_bytes;
    bit_ += placed.blocks * bits;
    entry_ += static_cast<size_t>(placed.blocks) * header.k;
    return placed.blocks;
  }

  absl::Status Block(int tensor, int64_t block, int values, const TensorHeader& header, uint16_t* count) {
    const size_t left = gap_bytes_ - gap_;
    Entry* entries = checked_->entries.data() + entry_;
    const PlacedPositions placed =
        PlacePositions(Bytes(body_.gaps) + gap_, left, KeptValues(header.k, values), values, entries);
    if (!placed.is_good || placed.entries == 0) {
      const char* what = placed.is_good             ? "levels, but no positions"
                         : placed.gap_bytes == left ? "gap stream ends, or passes the block's end"
                                                    : "gaps pass the block's end";
      return absl::InvalidArgumentError(
          absl::StrCat("frame: tensor ", tensor, ", block ", block, ": ", what));
    }
    const size_t bits = static_cast<size_t>(placed.entries) * header.value_bits;
    if (value_bits_ - bit_ < bits)
      return absl::InvalidArgumentError(absl::StrCat("frame: value stream ends in tensor ", tensor));
    AddCodes(Bytes(body_.values), bit_, header.value_bits, placed.entries, entries);
    *count = static_cast<uint16_t>(placed.entries);
    gap_ += placed.gap_bytes;
    bit_ += bits;
    entry_ += static_cast<size_t>(placed.entries);
    return absl::OkStatus();
  }

  const PlaceFullFn place_full_;
  const FrameBody& body_;
  const size_t gap_bytes_, value_bits_;
  CheckedFrame* const checked_;
  size_t block_ = 0, level_ = 0, gap_ = 0, bit_ = 0, entry_ = 0;
  // How many blocks to place at once. What was made ready for more of them than are full is lost, so that
  // after a short one it is one, and then twice as many each time.
  int64_t at_once_ = kMostAtOnce;
};

// How many levels there are, the table says; nothing is made room for before this. Gives the number of
// blocks.
absl::StatusOr<size_t> CheckLevels(const Layout& layout, const FrameBody& body) {
  size_t used = 0, blocks = 0;
  for (int t = 0; t < layout.tensors(); ++t) {
    const TensorHeader& header = body.tensors[t];
    if (header.form == TensorForm::kAbsent) continue;
    const int64_t of_tensor = BlocksOf(CodedValues(layout, header, t));
    const int64_t levels = of_tensor * LevelsOf(header.value_bits);
    if (body.levels.size() - used < static_cast<size_t>(levels)) {
      return absl::InvalidArgumentError(absl::StrCat("frame: level stream ends in tensor ", t));
    }
    used += static_cast<size_t>(levels);
    blocks += static_cast<size_t>(of_tensor);
  }
  if (used == body.levels.size()) return blocks;
  return absl::InvalidArgumentError(
      absl::StrCat("frame: level stream has ", body.levels.size() - used, " bytes left over"));
}

// The values of one tensor's blocks, as `sparse` has room for.
void UnpackTensor(const CheckedFrame& checked, const PlacedTensor& placed, int64_t values,
                  DecodedTensor* sparse) {
  const uint16_t* counts = checked.counts.data() + placed.first_block;
  const int64_t blocks = BlocksOf(values);
  const size_t count = std::accumulate(counts, counts + blocks, size_t{0});
  sparse->positions.resize(count);
  sparse->mantissas.resize(count);
  const int levels = LevelsOf(placed.value_bits);
  const uint8_t* level = Bytes(checked.levels) + placed.first_level;
  const Entry* entry = checked.entries.data() + placed.first_entry;
  const uint32_t code = (1u << placed.value_bits) - 1;
  int32_t mantissas[kMostCodes] = {};
  size_t done = 0;
  for (int64_t b = 0; b < blocks; ++b, level += levels) {
    for (int c = 0; c < levels; ++c) {
      mantissas[2 * c] = LevelValue(level[c]);
      mantissas[2 * c + 1] = -mantissas[2 * c];
    }
    const uint32_t from = static_cast<uint32_t>(b * kBlockValues);
    for (int i = 0; i < counts[b]; ++i, ++entry, ++done) {
      sparse->positions[done] = from + (uint32_t{*entry} >> placed.value_bits);
      sparse->mantissas[done] = mantissas[*entry & code];
    }
  }
}

// Positions among the values of some rows become those in the tensor.
void SpreadRows(const std::vector<uint32_t>& rows, int64_t row_length, std::vector<uint32_t>* positions) {
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

}  // namespace

absl::Status CheckSparse(const SparseLimits& limits, const Layout& layout, PlaceFullFn place_full,
                         FrameBody* opened, CheckedFrame* checked) {
  FrameBody& body = *opened;
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = CheckSparseHeader(limits, layout, body.tensors[t], t); !s.ok()) return s;
  }
  const absl::StatusOr<size_t> blocks = CheckLevels(layout, body);
  if (!blocks.ok()) return blocks.status();
  const size_t gap_bytes = body.gaps.size(), value_bytes = body.values.size();
  checked->levels.swap(body.levels);
  body.gaps.append(kStreamSlack, '\0');
  body.values.append(kStreamSlack, '\0');
  checked->decoded.tensors.assign(layout.tensors(), DecodedTensor());
  checked->placed.assign(layout.tensors(), PlacedTensor());
  checked->counts.resize(*blocks);
  checked->entries.resize(gap_bytes + kEntrySlack);  // each entry takes a byte or more
  Placer placer(place_full, body, gap_bytes, value_bytes, checked);
  for (int t = 0; t < layout.tensors(); ++t) {
    const TensorHeader& header = body.tensors[t];
    if (header.form == TensorForm::kAbsent) continue;
    DecodedTensor& tensor = checked->decoded.tensors[t];
    tensor.form = TensorForm::kSparse;
    tensor.exponent = header.exponent;
    tensor.mantissa_bits = kLevelMantissaBits;
    const int64_t values = CodedValues(layout, header, t);
    std::vector<uint32_t> rows;
    if (header.form == TensorForm::kRows) {
      if (absl::Status s = placer.Rows(t, layout.rows(t), header.rows, &rows); !s.ok()) return s;
    }
    if (absl::Status s = placer.Tensor(t, values, header); !s.ok()) return s;
    if (header.form != TensorForm::kRows) continue;
    // Its blocks are not those of the tensor, so a sum could not go by them.
    UnpackTensor(*checked, checked->placed[t], values, &tensor);
    SpreadRows(rows, layout.row_length(t), &tensor.positions);
    placer.Drop(t);
  }
  return placer.Finish();
}

DecodedFrame UnpackSparse(const Layout& layout, const CheckedFrame& checked) {
  DecodedFrame decoded = checked.decoded;
  for (int t = 0; t < layout.tensors(); ++t) {
    if (checked.is_placed(t)) UnpackTensor(checked, checked.placed[t], layout.size(t), &decoded.tensors[t]);
  }
  return decoded;
}

}  // namespace isthmus
