#include "compression/sparse_encoder.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/row_form.h"
#include "compression/sparse_merger.h"
#include "compression/sparse_run.h"
#include "compression/tensor_plan.h"

namespace isthmus {
namespace {

// One attempt at a frame. Threads take runs in order, encode them side by side, and whoever finds the next
// one done hands it to the merger.
class Encoding {
 public:
  Encoding(const EncodePlan& plan, const Layout& layout, absl::Span<const TensorWork> work,
           const RunSource& source, const KnownTensors& known, RunMerger* merger)
      : plan_(plan), layout_(layout), work_(work), source_(source), known_(known), merger_(merger) {}

  enum class End { kDone, kAgain, kNotFinite };

  End Encode() {
    const int64_t runs = layout_.total() / (kRunBlocks * kBlockValues) + layout_.tensors();
    const int threads =
        static_cast<int>(std::min<int64_t>(std::max(plan_.threads, 1), std::max<int64_t>(runs, 1)));
    most_in_flight_ = static_cast<size_t>(2 * threads);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back([this] { Work(); });
    Work();
    for (std::thread& other : others) other.join();
    return end_;
  }

  // After kNotFinite.
  absl::Status Error() const {
    if (source_.has_residual()) {
      return NonFiniteSum(layout_, bad_tensor_, bad_block_, source_.anchor, source_.parameters,
                          source_.residual);
    }
    return NonFiniteDifference(layout_, bad_tensor_, bad_block_, source_.anchor, source_.parameters);
  }

 private:
  struct InFlight {
    std::unique_ptr<Run> run;
    bool is_done = false;
  };

  void Work() {
    const auto encoder = std::make_unique<RunEncoder>(plan_.path);
    const absl::MutexLock lock(&mutex_);
    for (;;) {
      if (!is_merging_ && !in_flight_.empty() && in_flight_.front()->is_done) {
        MergeOldest();
      } else if (HasNext() && in_flight_.size() < most_in_flight_) {
        EncodeNext(encoder.get());
      } else if (!HasNext() && in_flight_.empty() && !is_merging_) {
        return;
      } else {
        changed_.Wait(&mutex_);
      }
    }
  }

  bool HasNext() const { return end_ == End::kDone && tensor_ < layout_.tensors(); }

  // Sets what the next run is of, and moves on.
  void PlanNext(Run* run) {
    const TensorWork& work = work_[tensor_];
    const auto known = known_.find(tensor_);
    const bool is_known = known != known_.end();
    if (is_known) by_rows_ = known->second.by_rows;
    run->tensor = tensor_;
    run->plan = work.plan;
    run->rows = {};
    int64_t values = layout_.size(tensor_);
    if (by_rows_) {
      run->plan.k = work.by_rows.k;
      run->rows = work.by_rows.rows;
      values = static_cast<int64_t>(run->rows.size()) * layout_.row_length(tensor_);
    }
    run->first = first_;
    run->values = std::min(kRunBlocks * kBlockValues, values - first_);
    first_ += run->values;
    const bool ends_form = first_ == values;
    run->ends_tensor = ends_form && (is_known || by_rows_ || work.by_rows.rows.empty());
    if (!ends_form) return;
    first_ = 0;
    by_rows_ = !run->ends_tensor;
    tensor_ += run->ends_tensor;
  }

  // Under mutex_, which it lets go while it encodes.
  void EncodeNext(RunEncoder* encoder) {
    auto flight = std::make_shared<InFlight>();
    if (spent_.empty()) spent_.push_back(std::make_unique<Run>());
    flight->run = std::move(spent_.back());
    spent_.pop_back();
    Run* run = flight->run.get();
    PlanNext(run);
    in_flight_.push_back(flight);
    mutex_.Unlock();
    RunSource tensor = source_.Slice(layout_.offset(run->tensor), layout_.size(run->tensor));
    tensor.row_length = layout_.row_length(run->tensor);
    tensor.rows = run->rows;
    encoder->Encode(tensor, run);
    mutex_.Lock();
    flight->is_done = true;
    changed_.SignalAll();
  }

  // Likewise, while the merger takes the run.
  void MergeOldest() {
    std::unique_ptr<Run> run = std::move(in_flight_.front()->run);
    in_flight_.pop_front();
    changed_.SignalAll();
    if (end_ != End::kDone) return;  // it comes too late
    if (!run->is_finite) {
      end_ = End::kNotFinite;
      bad_tensor_ = run->tensor;
      bad_block_ = run->bad_block;
      return;
    }
    is_merging_ = true;
    mutex_.Unlock();
    std::vector<std::unique_ptr<Run>> spent;
    const bool fits = merger_->Take(std::move(run), &spent);
    mutex_.Lock();
    is_merging_ = false;
    if (!fits) end_ = End::kAgain;
    for (std::unique_ptr<Run>& s : spent) spent_.push_back(std::move(s));
    changed_.SignalAll();
  }

  const EncodePlan& plan_;
  const Layout& layout_;
  const absl::Span<const TensorWork> work_;
  const RunSource& source_;
  const KnownTensors& known_;
  RunMerger* const merger_;
  size_t most_in_flight_ = 0;

  absl::Mutex mutex_;
  absl::CondVar changed_;
  // Guarded by mutex_.
  int tensor_ = 0;        // the next run's
  bool by_rows_ = false;  // its tensor's rows are next
  int64_t first_ = 0;
  std::deque<std::shared_ptr<InFlight>> in_flight_;  // in order
  std::vector<std::unique_ptr<Run>> spent_;          // memory for others
  bool is_merging_ = false;
  End end_ = End::kDone;
  int bad_tensor_ = 0;
  int64_t bad_block_ = 0;
};

std::vector<TensorWork> PlanWork(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                 const RunSource& source) {
  const std::vector<TensorPlan> plans =
      PlanTensors(spec, layout, source.anchor, source.parameters, plan.path);
  std::vector<TensorWork> work(plans.size());
  for (int t = 0; t < layout.tensors(); ++t) {
    work[t].plan = plans[t];
    if (source.has_residual()) continue;
    const RunSource tensor = source.Slice(layout.offset(t), layout.size(t));
    work[t].by_rows = FindRowForm(plans[t].k, layout.row_length(t), tensor.anchor, tensor.parameters);
  }
  return work;
}

// Where the levels are not the likely ones the residual is made anew, from sums made anew.
class ResidualAmender {
 public:
  // `source` is the tensor's, which has a residual.
  ResidualAmender(const RunSource& source, int exponent) : source_(source), exponent_(exponent) {}

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
      word += CodeWords(run.kept[block], run.plan.value_bits);
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
      const RunSource one =
          source_.Slice(run.first + static_cast<int64_t>(block) * kBlockValues + position, 1);
      float sum;
      TakeSum(one.anchor, one.parameters, one.residual, absl::MakeSpan(&sum, 1));
      const float level = taken[code >> 1];
      one.left[0] = sum - ((code & 1) != 0 ? -level : level);
    }
  }

  const RunSource& source_;
  const int exponent_;
};

absl::StatusOr<std::string> EncodeAll(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                      const RunSource& source, int64_t held_bytes) {
  const PlainFloatScope plain;
  const std::vector<TensorWork> work = PlanWork(spec, plan, layout, source);
  AmendRun amend;
  if (source.has_residual()) {
    amend = [&](const Run& run, int exponent) {
      const RunSource tensor = source.Slice(layout.offset(run.tensor), layout.size(run.tensor));
      ResidualAmender(tensor, exponent).Amend(run);
    };
  }
  KnownTensors known;  // grows with each attempt
  for (;;) {
    const KnownTensors before = known;
    RunMerger merger(spec, layout, work, held_bytes, &known, amend);
    Encoding encoding(plan, layout, work, source, before, &merger);
    const Encoding::End end = encoding.Encode();
    if (end == Encoding::End::kNotFinite) return encoding.Error();
    if (end == Encoding::End::kDone) return merger.Finish();
  }
}

}  // namespace

absl::StatusOr<std::string> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                         absl::Span<const float> anchor, absl::Span<const float> parameters,
                                         int64_t held_bytes) {
  RunSource source;
  source.anchor = anchor;
  source.parameters = parameters;
  return EncodeAll(spec, plan, layout, source, held_bytes);
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

absl::StatusOr<std::string> EncodeSparse(const CodecSpec& spec, const EncodePlan& plan, const Layout& layout,
                                         absl::Span<const float> anchor, absl::Span<const float> parameters,
                                         const ResidualPass& residual, int64_t held_bytes) {
  RunSource source;
  source.anchor = anchor;
  source.parameters = parameters;
  source.residual = residual.before;
  source.left = residual.left;
  return EncodeAll(spec, plan, layout, source, held_bytes);
}

}  // namespace isthmus
