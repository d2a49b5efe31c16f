#include "compression/sparse_encoder.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "compression/bit_budget.h"
#include "compression/bit_pack.h"
#include "compression/block_picker.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/row_form.h"
#include "compression/sparse_blocks.h"
#include "compression/tensor_plan.h"

namespace isthmus {
namespace {

constexpr int64_t kRunBlocks = 256;  // a share of work: long enough to hide its cost, short enough to divide

// All tensors' values or one's, all of them or those of some of its rows.
struct Source {
  absl::Span<const float> anchor, parameters;
  DecayedResidual residual;  // without values: there is none
  absl::Span<float> left;    // the residual after, where there is one
  int64_t row_length = 0;
  absl::Span<const uint32_t> rows;  // none: all values; without a residual only

  bool has_residual() const { return !residual.values.empty(); }
  Source Slice(int64_t at, int64_t values) const {
    Source slice;
    slice.anchor = anchor.subspan(at, values);
    slice.parameters = parameters.subspan(at, values);
    if (!has_residual()) return slice;
    slice.residual = {residual.values.subspan(at, values), residual.beta};
    slice.left = left.subspan(at, values);
    return slice;
  }
};

// What a decoder will most likely read for a class of this mean: levels have five bits in all of a tensor's
// range but its ends, and those are known only when the whole tensor is.
float LikelyLevel(double mean) { return static_cast<float>(FiveBits(mean)); }

// Consecutive blocks of one tensor, encoded but for what the tensor's exponent decides.
struct Run {
  int tensor = 0;
  TensorPlan plan;
  absl::Span<const uint32_t> rows;  // as in Source
  int64_t first = 0, values = 0;    // among the source's
  bool is_finite = true;
  int64_t bad_block = 0;  // when not finite: first position of the block

  std::string gaps;                // as in the frame, of all blocks
  std::vector<uint32_t> gap_ends;  // per block: end of its bytes in `gaps`
  std::vector<uint16_t> kept;      // per block: values kept
  std::vector<uint64_t> codes;     // bits of the value stream; every block begins a new word
  std::vector<double> levels;      // per block: means of the classes
};

int64_t WordsOf(int kept, int value_bits) { return (int64_t{kept} * value_bits + 63) / 64; }

// One thread's means to encode runs.
class RunEncoder {
 public:
  explicit RunEncoder(SimdPath path) : picker_(path) {}

  void Encode(const Source& source, Run* run) {
    const PlainFloatScope plain;
    Reserve(run);
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

 private:
  bool Pick(const Source& source, int64_t at, int64_t values, int kept) {
    if (source.rows.empty()) {
      const Source block = source.Slice(at, values);
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
    return picker_.Pick(absl::MakeConstSpan(row_anchor_, values),
                        absl::MakeConstSpan(row_parameters_, values), kept, &picked_);
  }

  static void Reserve(Run* run) {
    int64_t gap_bytes = 0, words = 0;
    ForEachBlock(run->values, run->plan.k, [&](int64_t, int64_t values, int kept) {
      gap_bytes += GapBound(kept, values);
      words += WordsOf(kept, run->plan.value_bits);
    });
    run->gaps.resize(static_cast<size_t>(gap_bytes));
    run->codes.resize(static_cast<size_t>(words));
    run->levels.resize(static_cast<size_t>(BlocksOf(run->values) * LevelsOf(run->plan.value_bits)));
    run->gap_ends.reserve(static_cast<size_t>(BlocksOf(run->values)));
    run->kept.reserve(static_cast<size_t>(BlocksOf(run->values)));
  }

  void Fit(const TensorPlan& plan, double* levels) {
    const absl::Span<const float> magnitudes = absl::MakeConstSpan(picked_.magnitudes, picked_.kept);
    const absl::Span<uint8_t> classes = absl::MakeSpan(classes_, picked_.kept);
    const absl::Span<double> out = absl::MakeSpan(levels, LevelsOf(plan.value_bits));
    FitLevels(magnitudes, plan.value_bits, classes, out, picker_.fit());
    if (plan.lloyd_steps > 0) {
      RefineLevels(magnitudes, plan.value_bits, plan.lloyd_steps, classes, out, picker_.fit());
    }
  }

  void WriteLeft(int value_bits, const double* levels, absl::Span<float> left) {
    float taken[kMostLevels];
    for (int c = 0; c < LevelsOf(value_bits); ++c) taken[c] = LikelyLevel(levels[c]);
    picker_.WriteLeft(picked_, value_bits == 1 ? nullptr : classes_, taken, static_cast<int>(left.size()),
                      left.data());
  }

  // Where fewer values than `wanted` are kept, but any, the last gap leads to the block's end.
  char* WriteGaps(int wanted, int values, char* out) const {
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
  uint64_t* WriteCodes(int value_bits, uint64_t* out) const {
    if (value_bits == 1) {
      picker_.Signs(picked_, out);
      return out + WordsOf(picked_.kept, 1);
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

  BlockPicker picker_;
  PickedBlock picked_;
  uint8_t classes_[kBlockValues];
  float row_anchor_[kBlockValues], row_parameters_[kBlockValues];  // a block of rows
};

// How a tensor is encoded: as it is, and where it has rows by these as well, to see which is smaller.
struct TensorWork {
  TensorPlan plan;
  RowForm by_rows;
};

std::vector<TensorWork> PlanWork(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                 const Source& source) {
  const std::vector<TensorPlan> plans =
      PlanTensors(spec, layout, source.anchor, source.parameters, plan.path);
  std::vector<TensorWork> work(plans.size());
  for (int t = 0; t < layout.tensors(); ++t) {
    work[t].plan = plans[t];
    if (source.has_residual()) continue;
    const Source tensor = source.Slice(layout.offset(t), layout.size(t));
    work[t].by_rows = FindRowForm(plans[t].k, layout.row_length(t), tensor.anchor, tensor.parameters);
  }
  return work;
}

void AddRuns(const Run& like, int64_t values, std::vector<Run>* runs) {
  for (int64_t first = 0; first < values; first += kRunBlocks * kBlockValues) {
    Run run = like;
    run.first = first;
    run.values = std::min(kRunBlocks * kBlockValues, values - first);
    runs->push_back(std::move(run));
  }
}

// Divides the tensors into runs; no run spans two. Those by rows come after the others of a tensor.
std::vector<Run> DivideIntoRuns(const Layout& layout, absl::Span<const TensorWork> work) {
  std::vector<Run> runs;
  for (int t = 0; t < layout.tensors(); ++t) {
    Run run;
    run.tensor = t;
    run.plan = work[t].plan;
    AddRuns(run, layout.size(t), &runs);
    if (work[t].by_rows.rows.empty()) continue;
    run.rows = work[t].by_rows.rows;
    run.plan.k = work[t].by_rows.k;
    AddRuns(run, static_cast<int64_t>(run.rows.size()) * layout.row_length(t), &runs);
  }
  return runs;
}

// Encodes all runs; when one is not finite, those after it may be left undone.
void EncodeRuns(const EncodePlan& plan, const Layout& layout, const Source& source, std::vector<Run>* runs) {
  std::atomic<size_t> next{0}, first_bad{runs->size()};
  const auto work = [&] {
    const auto encoder = std::make_unique<RunEncoder>(plan.path);  // too large for a small stack
    for (size_t i = next++; i < runs->size() && i < first_bad; i = next++) {
      Run& run = (*runs)[i];
      Source tensor = source.Slice(layout.offset(run.tensor), layout.size(run.tensor));
      tensor.row_length = layout.row_length(run.tensor);
      tensor.rows = run.rows;
      encoder->Encode(tensor, &run);
      size_t bad = first_bad;
      while (!run.is_finite && i < bad && !first_bad.compare_exchange_weak(bad, i)) {
      }
    }
  };
  std::vector<std::thread> others;
  const size_t threads = std::min<size_t>(std::max(plan.threads, 1), runs->size());
  for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& other : others) other.join();
}

// What runs of one tensor come to, in parts of a bit, when each byte of gaps is coded by itself.
int64_t CostOf(absl::Span<const Run> runs, absl::string_view row_gaps) {
  int64_t counts[256] = {}, bits = 0;
  for (char byte : row_gaps) ++counts[static_cast<uint8_t>(byte)];
  for (const Run& run : runs) {
    for (char byte : run.gaps) ++counts[static_cast<uint8_t>(byte)];
    for (int kept : run.kept) {
      if (kept > 0) bits += kept * run.plan.value_bits + kLevelBits * LevelsOf(run.plan.value_bits);
    }
  }
  return SymbolCost(counts) + bits * kPartsPerBit;
}

std::string RowGaps(absl::Span<const uint32_t> rows) {
  std::string gaps;
  GapWriter writer(&gaps);
  for (uint32_t row : rows) writer.Position(row);
  return gaps;
}

// Takes in runs in order: quantizes levels by the tensor's exponent and writes what is left.
class RunMerger {
 public:
  explicit RunMerger(FrameBody* body) : body_(body), bits_(&body->values) {}

  // All runs of the next tensor, those by its rows apart: there may be none.
  void Tensor(absl::Span<const Run> whole, absl::Span<const Run> by_rows) {
    const std::string row_gaps = by_rows.empty() ? "" : RowGaps(by_rows[0].rows);
    if (by_rows.empty() || CostOf(whole, "") <= CostOf(by_rows, row_gaps)) {
      TensorHeader header;
      header.form = TensorForm::kSparse;
      Tensor(header, "", whole);
    } else {
      TensorHeader header;
      header.form = TensorForm::kRows;
      header.rows = static_cast<uint32_t>(by_rows[0].rows.size());
      Tensor(header, row_gaps, by_rows);
    }
  }

  void Finish() { bits_.Finish(); }

 private:
  // The next tensor, whose header has form and rows already.
  void Tensor(TensorHeader header, absl::string_view row_gaps, absl::Span<const Run> runs) {
    double largest = 0;
    for (const Run& run : runs) {
      largest = std::max(largest, *std::max_element(run.levels.begin(), run.levels.end()));
    }
    const size_t first_level = body_->levels.size(), first_gap = body_->gaps.size();
    body_->gaps.append(row_gaps.data(), row_gaps.size());
    bool any = false;
    if (largest > 0) {
      header.exponent = static_cast<int16_t>(LevelExponent(largest));
      for (const Run& run : runs) any |= Merge(run, header.exponent);
    }
    if (any) {
      header.value_bits = static_cast<uint8_t>(runs[0].plan.value_bits);
      header.k = static_cast<uint16_t>(runs[0].plan.k);
    } else {
      header = {};
      body_->levels.resize(first_level);
      body_->gaps.resize(first_gap);
    }
    body_->tensors.push_back(header);
  }

  // Whether any of its blocks has a level.
  bool Merge(const Run& run, int exponent) {
    const int levels = LevelsOf(run.plan.value_bits);
    const double scale = std::ldexp(1.0, -exponent);  // a power of two well within double's range: exact
    const uint64_t* word = run.codes.data();
    size_t written = 0;  // bytes of run.gaps dealt with
    bool any = false;
    for (size_t block = 0; block < run.kept.size(); ++block) {
      const int kept = run.kept[block];
      bool block_any = false;
      for (int c = 0; c < levels; ++c) {
        const uint8_t level = NearestLevel(run.levels[block * levels + c] * scale);
        body_->levels.push_back(static_cast<char>(level));
        block_any |= level != 0;
      }
      if (block_any) {
        PutCodes(word, kept * run.plan.value_bits);
      } else {  // its gaps are left out
        const size_t begin = block == 0 ? 0 : run.gap_ends[block - 1];
        body_->gaps.append(run.gaps, written, begin - written);
        written = run.gap_ends[block];
      }
      word += WordsOf(kept, run.plan.value_bits);
      any |= block_any;
    }
    body_->gaps.append(run.gaps, written, std::string::npos);
    return any;
  }

  void PutCodes(const uint64_t* word, int bits) {
    for (int left = bits; left > 0; left -= 64, ++word) {
      bits_.Put(static_cast<uint32_t>(*word), std::min(left, 32));
      if (left > 32) bits_.Put(static_cast<uint32_t>(*word >> 32), std::min(left - 32, 32));
    }
  }

  FrameBody* body_;
  BitWriter bits_;
};

// Where the levels are not the likely ones the residual is made anew, from sums made anew.
class ResidualAmender {
 public:
  // `source` is the tensor's, which has a residual.
  ResidualAmender(const Source& source, int exponent) : source_(source), exponent_(exponent) {}

  void Amend(const Run& run) const {
    const int levels = LevelsOf(run.plan.value_bits);
    const double scale = std::ldexp(1.0, -exponent_);
    const uint64_t* word = run.codes.data();
    for (size_t block = 0; block < run.kept.size(); ++block) {
      float taken[kMostLevels];
      bool is_likely = true;
      for (int c = 0; c < levels; ++c) {
        const double mean = run.levels[block * levels + c];
        taken[c] = static_cast<float>(std::ldexp(LevelValue(NearestLevel(mean * scale)), exponent_));
        is_likely &= taken[c] == LikelyLevel(mean);
      }
      if (!is_likely) AmendBlock(run, block, word, taken);
      word += WordsOf(run.kept[block], run.plan.value_bits);
    }
  }

 private:
  void AmendBlock(const Run& run, size_t block, const uint64_t* word, const float* taken) const {
    const size_t begin = block == 0 ? 0 : run.gap_ends[block - 1];
    GapReader gaps(absl::string_view(run.gaps).substr(begin, run.gap_ends[block] - begin));
    gaps.BeginRange(kBlockValues);
    const int bits = run.plan.value_bits;
    for (int i = 0, bit = 0; i < run.kept[block]; ++i, bit += bits) {
      uint32_t position = 0;
      gaps.Position(&position);
      uint64_t code = word[bit / 64] >> (bit % 64);
      if (bit % 64 + bits > 64) code |= word[bit / 64 + 1] << (64 - bit % 64);
      code &= (uint64_t{1} << bits) - 1;
      const Source one = source_.Slice(run.first + static_cast<int64_t>(block) * kBlockValues + position, 1);
      float sum;
      TakeSum(one.anchor, one.parameters, one.residual, absl::MakeSpan(&sum, 1));
      const float level = taken[code >> 1];
      one.left[0] = sum - ((code & 1) != 0 ? -level : level);
    }
  }

  const Source& source_;
  const int exponent_;
};

absl::Status NotFinite(const Layout& layout, const Run& run, const Source& source) {
  if (source.has_residual()) {
    return NonFiniteSum(layout, run.tensor, run.bad_block, source.anchor, source.parameters, source.residual);
  }
  return NonFiniteDifference(layout, run.tensor, run.bad_block, source.anchor, source.parameters);
}

absl::StatusOr<FrameBody> EncodeAll(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                    const Source& source) {
  const std::vector<TensorWork> work = PlanWork(spec, plan, layout, source);
  std::vector<Run> runs = DivideIntoRuns(layout, work);
  EncodeRuns(plan, layout, source, &runs);
  FrameBody body;
  RunMerger merger(&body);
  const absl::Span<const Run> all = runs;
  size_t begin = 0, end = 0;
  for (int t = 0; t < layout.tensors(); ++t, begin = end) {
    for (; end < all.size() && all[end].tensor == t; ++end) {
      if (!all[end].is_finite) return NotFinite(layout, all[end], source);
    }
    size_t rows = begin;
    while (rows < end && all[rows].rows.empty()) ++rows;
    merger.Tensor(all.subspan(begin, rows - begin), all.subspan(rows, end - rows));
    if (!source.has_residual()) continue;
    const Source tensor = source.Slice(layout.offset(t), layout.size(t));
    const ResidualAmender amender(tensor, body.tensors.back().exponent);
    for (const Run& run : all.subspan(begin, end - begin)) amender.Amend(run);
  }
  merger.Finish();
  return body;
}

}  // namespace

absl::StatusOr<FrameBody> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                       absl::Span<const float> anchor, absl::Span<const float> parameters) {
  Source source;
  source.anchor = anchor;
  source.parameters = parameters;
  return EncodeAll(spec, plan, layout, source);
}

bool EncodesInOnePass(const CodecSpec& spec, const Layout& layout, absl::Span<const float> anchor,
                      absl::Span<const float> parameters, const DecayedResidual& residual) {
  if (PlansByValues(spec)) return false;
  for (int t = 0; t < layout.tensors(); ++t) {
    const int64_t at = layout.offset(t), values = layout.size(t);
    if (HasUntouchedRow(layout.row_length(t), anchor.subspan(at, values), parameters.subspan(at, values),
                        {residual.values.subspan(at, values), residual.beta})) {
      return false;
    }
  }
  return true;
}

absl::StatusOr<FrameBody> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                       absl::Span<const float> anchor, absl::Span<const float> parameters,
                                       const ResidualPass& residual) {
  Source source;
  source.anchor = anchor;
  source.parameters = parameters;
  source.residual = residual.before;
  source.left = residual.left;
  return EncodeAll(spec, plan, layout, source);
}

}  // namespace isthmus
