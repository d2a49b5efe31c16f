#include "compression/sparse_decoder.h"

#include <algorithm>
#include <memory>
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

// Walks the streams tensor after tensor and writes down what each block takes of them. The streams have their
// slack already; how long they are without it is given.
class Checker {
 public:
  Checker(const EntryScan& scan, size_t gap_bytes, size_t value_bytes, CheckedFrame* checked)
      : scan_(scan), gap_bytes_(gap_bytes), value_bytes_(value_bytes), checked_(checked) {}

  // Which rows of a tensor by rows are sent; each takes a byte of the gaps.
  absl::Status Rows(int tensor, int64_t tensor_rows, uint32_t sent, std::vector<uint32_t>* rows) {
    const size_t left = gap_bytes_ - gap_;
    GapReader gaps(absl::string_view(checked_->gaps).substr(gap_, left));
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
    checked_->packed[tensor] = {header.value_bits, block_, level_, gap_, bit_};
    GapExtent* extents = checked_->blocks.data() + block_;
    for (int64_t b = 0, run_end = 0; b < blocks;) {
      if (!HasLevel(level_ + static_cast<size_t>(b * levels), levels)) {
        extents[b++] = GapExtent();
        continue;
      }
      // As many blocks of the same kind as follow one another.
      if (b < whole) run_end = std::max(run_end, b + 1);
      while (run_end < whole && HasLevel(level_ + static_cast<size_t>(run_end * levels), levels)) ++run_end;
      int64_t done = 0;
      if (b < run_end) {
        done = scan_.measure_full(Bytes(checked_->gaps) + gap_, gap_bytes_ - gap_, header.k,
                                  static_cast<int>(std::min<int64_t>(run_end - b, kMostAtOnce)), &extents[b]);
      }
      if (done == 0) {
        const int64_t values = std::min(kBlockValues, tensor_values - b * kBlockValues);
        if (absl::Status s = Block(tensor, b, static_cast<int>(values), header.k, &extents[b]); !s.ok())
          return s;
        done = 1;
      }
      for (; done > 0; --done, ++b) {
        gap_ += extents[b].bytes;
        bit_ += static_cast<size_t>(extents[b].entries) * header.value_bits;
      }
    }
    if (bit_ > 8 * value_bytes_) {
      return absl::InvalidArgumentError(absl::StrCat("frame: value stream ends in tensor ", tensor));
    }
    block_ += static_cast<size_t>(blocks);
    level_ += static_cast<size_t>(blocks * levels);
    return absl::OkStatus();
  }

  absl::Status Finish() const {
    if (gap_ != gap_bytes_) return absl::InvalidArgumentError("frame: gap stream has bytes left over");
    const int64_t bytes = PackedBytes(static_cast<int64_t>(bit_), 1);
    if (static_cast<int64_t>(value_bytes_) != bytes) {
      return absl::InvalidArgumentError(absl::StrCat("frame: value stream of ", value_bytes_,
                                                     " bytes, the values at the positions take ", bytes));
    }
    if (bit_ % 8 != 0 && Bytes(checked_->values)[bit_ / 8] >> (bit_ % 8) != 0)
      return absl::InvalidArgumentError("frame: value stream ends in bits that are not 0");
    return absl::OkStatus();
  }

 private:
  static constexpr int64_t kMostAtOnce = 1 << 20;

  bool HasLevel(size_t level, int levels) const {
    const char* of_block = checked_->levels.data() + level;
    return std::any_of(of_block, of_block + levels, [](char c) { return c != 0; });
  }

  absl::Status Block(int tensor, int64_t block, int values, int k, GapExtent* extent) const {
    const size_t left = gap_bytes_ - gap_;
    const bool fits = MeasureGaps(Bytes(checked_->gaps) + gap_, left, KeptValues(k, values), values, extent);
    if (fits && extent->entries > 0) return absl::OkStatus();
    const char* what = fits                    ? "levels, but no positions"
                       : extent->bytes == left ? "gap stream ends, or passes the block's end"
                                               : "gaps pass the block's end";
    return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", tensor, ", block ", block, ": ", what));
  }

  const EntryScan& scan_;
  const size_t gap_bytes_, value_bytes_;
  CheckedFrame* const checked_;
  size_t block_ = 0, level_ = 0, gap_ = 0, bit_ = 0;
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
void UnpackTensor(const CheckedFrame& checked, const PackedTensor& packed, int64_t values,
                  const EntryScan& scan, UnpackedEntries* scratch, DecodedTensor* sparse) {
  const GapExtent* extents = checked.blocks.data() + packed.first_block;
  const int64_t blocks = BlocksOf(values);
  size_t count = 0;
  for (int64_t b = 0; b < blocks; ++b) count += extents[b].entries;
  sparse->positions.resize(count);
  sparse->mantissas.resize(count);
  const int levels = LevelsOf(packed.value_bits);
  const uint8_t* level = Bytes(checked.levels) + packed.first_level;
  const uint8_t* gaps = Bytes(checked.gaps) + packed.first_gap;
  int32_t mantissas[kMostCodes] = {};
  PackedEntries block;
  block.values = Bytes(checked.values);
  block.first_bit = packed.first_bit;
  block.value_bits = packed.value_bits;
  block.mantissas = mantissas;
  size_t done = 0;
  for (int64_t b = 0; b < blocks; ++b, level += levels) {
    if (extents[b].entries == 0) continue;
    for (int c = 0; c < levels; ++c) {
      mantissas[2 * c] = LevelValue(level[c]);
      mantissas[2 * c + 1] = -mantissas[2 * c];
    }
    block.gaps = gaps;
    block.gap_bytes = extents[b].bytes;
    block.entries = extents[b].entries;
    scan.unpack(block, scratch);
    const uint32_t from = static_cast<uint32_t>(b * kBlockValues);
    for (int i = 0; i < block.entries; ++i) sparse->positions[done + i] = from + scratch->positions[i];
    std::copy(scratch->mantissas, scratch->mantissas + block.entries, sparse->mantissas.begin() + done);
    done += static_cast<size_t>(block.entries);
    gaps += extents[b].bytes;
    block.first_bit += static_cast<size_t>(block.entries * packed.value_bits);
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

absl::Status CheckSparse(const SparseLimits& limits, const Layout& layout, const EntryScan& scan,
                         FrameBody&& body, CheckedFrame* checked) {
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = CheckSparseHeader(limits, layout, body.tensors[t], t); !s.ok()) return s;
  }
  const absl::StatusOr<size_t> blocks = CheckLevels(layout, body);
  if (!blocks.ok()) return blocks.status();
  const size_t gap_bytes = body.gaps.size(), value_bytes = body.values.size();
  checked->levels = std::move(body.levels);
  checked->gaps = std::move(body.gaps);
  checked->values = std::move(body.values);
  checked->gaps.append(kStreamSlack, '\0');
  checked->values.append(kStreamSlack, '\0');
  checked->decoded.tensors.assign(layout.tensors(), DecodedTensor());
  checked->packed.assign(layout.tensors(), PackedTensor());
  checked->blocks.resize(*blocks);
  Checker checker(scan, gap_bytes, value_bytes, checked);
  const auto scratch = std::make_unique<UnpackedEntries>();
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
      if (absl::Status s = checker.Rows(t, layout.rows(t), header.rows, &rows); !s.ok()) return s;
    }
    if (absl::Status s = checker.Tensor(t, values, header); !s.ok()) return s;
    if (header.form != TensorForm::kRows) continue;
    // Its blocks are not those of the tensor, so a sum could not go by them.
    UnpackTensor(*checked, checked->packed[t], values, scan, scratch.get(), &tensor);
    SpreadRows(rows, layout.row_length(t), &tensor.positions);
    checked->packed[t] = PackedTensor();
  }
  return checker.Finish();
}

DecodedFrame UnpackSparse(const Layout& layout, const EntryScan& scan, const CheckedFrame& checked) {
  DecodedFrame decoded = checked.decoded;
  const auto scratch = std::make_unique<UnpackedEntries>();
  for (int t = 0; t < layout.tensors(); ++t) {
    if (checked.is_packed(t))
      UnpackTensor(checked, checked.packed[t], layout.size(t), scan, scratch.get(), &decoded.tensors[t]);
  }
  return decoded;
}

}  // namespace isthmus
