#include "compression/sparse_run.h"

#include <algorithm>

#include "compression/float_mode.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/sparse_blocks.h"

namespace isthmus {
namespace {

template <typename T>
int64_t BytesOf(const T& container) {
  return static_cast<int64_t>(container.capacity() * sizeof(container[0]));
}

// Room for the most a run can need.
void Reserve(Run* run) {
  int64_t gap_bytes = 0, words = 0;
  ForEachBlock(run->values, run->plan.k, [&](int64_t, int64_t values, int kept) {
    gap_bytes += GapBound(kept, values);
    words += CodeWords(kept, run->plan.value_bits);
  });
  const size_t blocks = static_cast<size_t>(BlocksOf(run->values));
  run->gaps.resize(static_cast<size_t>(gap_bytes));
  run->codes.resize(static_cast<size_t>(words));
  run->levels.resize(blocks * LevelsOf(run->plan.value_bits));
  run->gap_ends.clear();
  run->gap_ends.reserve(blocks);
  run->kept.clear();
  run->kept.reserve(blocks);
}

}  // namespace

float LikelyLevel(double mean) { return static_cast<float>(FiveBits(mean)); }

int64_t Run::Bytes() const {
  return static_cast<int64_t>(sizeof(Run)) + BytesOf(gaps) + BytesOf(gap_ends) + BytesOf(kept) +
         BytesOf(codes) + BytesOf(levels);
}

bool RunEncoder::Pick(const RunSource& source, int64_t at, int64_t values, int kept) {
  if (source.rows.empty()) {
    const RunSource block = source.Slice(at, values);
    return picker_.Pick(block.anchor, block.parameters, block.residual, kept, &picked_);
  }
  for (int64_t done = 0; done < values;) {
    const int64_t row = (at + done) / source.row_length, column = (at + done) % source.row_length;
    const int64_t count = std::min(source.row_length - column, values - done);
    const int64_t from = source.rows[row] * source.row_length + column;
    std::copy_n(source.anchor.data() + from, count, row_anchor_ + done);
    std::copy_n(source.parameters.data() + from, count, row_parameters_ + done);
    done += count;
  }
  return picker_.Pick(absl::MakeConstSpan(row_anchor_, values), absl::MakeConstSpan(row_parameters_, values),
                      kept, &picked_);
}

void RunEncoder::Encode(const RunSource& source, Run* run) {
  const PlainFloatScope plain;
  Reserve(run);
  run->is_finite = true;
  char* gap = &run->gaps[0];
  uint64_t* word = run->codes.data();
  double* levels = run->levels.data();
  for (int64_t at = 0; at < run->values; at += kBlockValues) {
    const int64_t values = std::min(kBlockValues, run->values - at);
    const int kept = KeptValues(run->plan.k, values);
    if (!Pick(source, run->first + at, values, kept)) {
      run->is_finite = false;
      run->bad_block = run->first + at;
      picker_.Flush();
      return;
    }
    gap = WriteGaps(kept, static_cast<int>(values), gap);
    run->gap_ends.push_back(static_cast<uint32_t>(gap - run->gaps.data()));
    run->kept.push_back(static_cast<uint16_t>(picked_.kept));
    Fit(run->plan, levels);
    if (source.has_residual()) {
      WriteLeft(run->plan.value_bits, levels, source.left.subspan(run->first + at, values));
    }
    levels += LevelsOf(run->plan.value_bits);
    word = WriteCodes(run->plan.value_bits, word);
  }
  picker_.Flush();
  run->gaps.resize(static_cast<size_t>(gap - run->gaps.data()));
}

void RunEncoder::Fit(const TensorPlan& plan, double* levels) {
  const absl::Span<const float> magnitudes = absl::MakeConstSpan(picked_.magnitudes, picked_.kept);
  const absl::Span<uint8_t> classes = absl::MakeSpan(classes_, picked_.kept);
  const absl::Span<double> out = absl::MakeSpan(levels, LevelsOf(plan.value_bits));
  FitLevels(magnitudes, plan.value_bits, classes, out, picker_.fit());
  if (plan.lloyd_steps > 0) {
    RefineLevels(magnitudes, plan.value_bits, plan.lloyd_steps, classes, out, picker_.fit());
  }
}

void RunEncoder::WriteLeft(int value_bits, const double* levels, absl::Span<float> left) {
  float taken[kMostLevels];
  for (int c = 0; c < LevelsOf(value_bits); ++c) taken[c] = LikelyLevel(levels[c]);
  picker_.WriteLeft(picked_, value_bits == 1 ? nullptr : classes_, taken, static_cast<int>(left.size()),
                    left.data());
}

// Where fewer values than `wanted` are kept, but any, the last gap leads to the block's end.
char* RunEncoder::WriteGaps(int wanted, int values, char* out) const {
  int next = 0;
  const auto write = [&](int position) {
    int gap = position - next;
    for (; gap >= 255; gap -= 255) *out++ = '\xFF';
    *out++ = static_cast<char>(gap);
    next = position + 1;
  };
  for (int i = 0; i < picked_.kept; ++i) write(picked_.positions[i]);
  if (picked_.kept > 0 && picked_.kept < wanted) write(values);
  return out;
}

// Bit 0 of a code: the difference is negative; above it the class of its magnitude.
uint64_t* RunEncoder::WriteCodes(int value_bits, uint64_t* out) const {
  if (value_bits == 1) {
    picker_.Signs(picked_, out);
    return out + CodeWords(picked_.kept, 1);
  }
  uint64_t held = 0;
  int bits = 0;
  for (int i = 0; i < picked_.kept; ++i) {
    const uint64_t code = static_cast<uint64_t>(classes_[i]) << 1 | (picked_.differences[i] < 0);
    held |= code << bits;
    bits += value_bits;
    if (bits < 64) continue;
    *out++ = held;
    bits -= 64;
    held = code >> (value_bits - bits);  // what did not fit
  }
  if (bits > 0) *out++ = held;
  return out;
}

}  // namespace isthmus
