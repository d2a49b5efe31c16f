#include "daemon/training/learning_run.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compression/codec.h"
#include "compression/recompress.h"
#include "compression/update.h"
#include "daemon/base/status.h"
#include "daemon/training/permutation.h"
#include "daemon/training/schedule.h"

namespace isthmus {
namespace {

constexpr char kDenseSpec[] = "dense(bits=24)";
constexpr double kNesterovRate = 0.5, kNesterovMomentum = 0.5;

std::string TopKSpec(int64_t k, int64_t bits) {
  return absl::StrCat("topk(k=", k, ",block=4096)|levels(bits=", bits, ")|gaps|zstd(1)");
}

absl::Status CheckCase(const LearningCase& c) {
  const bool counts =
      c.tokens >= 1 && c.sites >= 1 && c.sites <= 1024 && c.inner_steps >= 1 && c.sequences >= 1;
  bool others = c.peak_rate > 0 && c.outer_rate >= 0 && c.kept_per_block >= 0 && c.outcome_delay_steps >= 0 &&
                c.down_kept_per_block >= 0 && c.outer_momentum >= 0 && c.carry_decay >= 0 &&
                c.carry_decay <= 1;
  // A separate residual and a delayed outcome do not go together: the reset would undo the steps since.
  others = others && (c.feedback == LearningFeedback::kCarried || c.outcome_delay_steps == 0);
  bool is_slow_enough = c.slowness.empty() || c.slowness.size() == c.sites;
  for (double s : c.slowness) is_slow_enough = is_slow_enough && s >= 0.25 && s <= 1e6;
  if (counts && others && is_slow_enough) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("learning case: impossible numbers in ", LearningCaseKey(c)));
}

// The sequences in the order of the seed, one cursor for all sites.
class Sequences {
 public:
  Sequences(const TrainingData* data, uint64_t seed) : data_(data), seed_(seed) {}

  absl::StatusOr<Batch> Next(int64_t count) {
    const int64_t n = data_->training_sequences();
    std::vector<int64_t> chosen;
    for (int64_t i = 0; i < count; ++i, ++position_) {
      chosen.push_back(PassPermutation(n, seed_, position_ / n).At(position_ % n));
    }
    return data_->TrainingBatch(chosen);
  }

 private:
  const TrainingData* data_;
  uint64_t seed_;
  int64_t position_ = 0;
};

// A closed round's outcome as a site is about to apply it.
struct Outcome {
  std::shared_ptr<const Update> update;
  OuterStep step;
  std::shared_ptr<const DecodedFrame> own;
  std::vector<bool> own_included;  // per tensor
};

struct Site {
  std::unique_ptr<Trainer> trainer;
  std::vector<float> anchor, momentum;
  std::vector<float> residual;  // kSeparate
  int64_t round_steps = 1;      // H_r
  std::unique_ptr<Outcome> pending;
};

class Run {
 public:
  Run(const LearningSetup& setup, const LearningCase& c)
      : setup_(setup), case_(c), layout_(setup.table->layout()), sequences_(setup.data, c.seed) {}

  absl::StatusOr<LearningResult> Go() {
    initial_ = setup_.table->InitialValues(case_.seed);
    result_.parameters = layout_.total();
    if (case_.form == LearningForm::kSynchronous) {
      ISTHMUS_RETURN_IF_ERROR(RunSynchronous());
    } else {
      ISTHMUS_RETURN_IF_ERROR(SetUpSites());
      for (int64_t round = 0; round < result_.rounds; ++round) ISTHMUS_RETURN_IF_ERROR(RunRound(round));
      Trainer* trainer = sites_[0].trainer.get();
      ISTHMUS_ASSIGN_OR_RETURN(result_.loss, EvaluateBatches(trainer, anchor_, setup_.held_out));
    }
    return result_;
  }

 private:
  absl::Status RunSynchronous() {
    const int64_t length = setup_.held_out.at(0).length;
    const int64_t step_tokens = case_.sites * case_.sequences * length;
    result_.steps = std::max<int64_t>(1, case_.tokens / step_tokens);
    schedule_.total_steps = result_.steps;
    schedule_.peak_rate = case_.peak_rate;
    result_.up_bytes = result_.down_bytes = 4;
    ISTHMUS_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, setup_.make_trainer(initial_));
    double loss = 0;
    for (int64_t s = 0; s < result_.steps; ++s) {
      ISTHMUS_ASSIGN_OR_RETURN(const Batch batch, sequences_.Next(case_.sites * case_.sequences));
      ISTHMUS_ASSIGN_OR_RETURN(const StepResult step, trainer->Step(batch, LearningRate(schedule_, s)));
      result_.tokens += step.tokens;
      loss = step.loss;
      ISTHMUS_RETURN_IF_ERROR(AfterPart(s + 1, result_.steps, loss, trainer.get(), trainer->parameters()));
    }
    ISTHMUS_ASSIGN_OR_RETURN(result_.loss,
                             EvaluateBatches(trainer.get(), trainer->parameters(), setup_.held_out));
    return absl::OkStatus();
  }

  absl::Status SetUpSites() {
    int64_t round_steps = 0;
    for (int64_t r = 0; r < case_.sites; ++r) {
      Site site;
      const double slowness = case_.slowness.empty() ? 1 : case_.slowness[r];
      site.round_steps =
          std::max<int64_t>(1, std::llround(static_cast<double>(case_.inner_steps) / slowness));
      round_steps += site.round_steps;
      ISTHMUS_ASSIGN_OR_RETURN(site.trainer, setup_.make_trainer(initial_));
      site.anchor = initial_;
      if (case_.feedback == LearningFeedback::kSeparate) site.residual.assign(initial_.size(), 0.0f);
      sites_.push_back(std::move(site));
    }
    anchor_ = initial_;
    const int64_t length = setup_.held_out.at(0).length;
    result_.rounds = std::max<int64_t>(
        1, std::llround(static_cast<double>(case_.tokens) / (round_steps * case_.sequences * length)));
    result_.steps = result_.rounds * case_.inner_steps;
    schedule_.total_steps = result_.steps;
    schedule_.peak_rate = case_.peak_rate;
    return ChooseCodec();
  }

  absl::Status ChooseCodec() {
    std::string spec = kDenseSpec;
    result_.outer_rate = 1;
    step_.momentum = static_cast<float>(case_.outer_momentum);
    if (case_.form == LearningForm::kSparse) {
      result_.kept_per_block =
          case_.kept_per_block > 0 ? case_.kept_per_block : AutoKeptPerBlock(result_.rounds);
      result_.outer_rate = case_.outer_rate > 0 ? case_.outer_rate : AutoOuterRate(result_.steps);
      spec = case_.codec.empty() ? TopKSpec(result_.kept_per_block, case_.value_bits) : case_.codec;
    }
    if (case_.form == LearningForm::kDenseNesterov) {
      step_.momentum = static_cast<float>(kNesterovMomentum);
      result_.outer_rate = kNesterovRate;
    }
    if (step_.momentum > 0) {
      step_.form = OuterForm::kNesterov;
      momentum_.assign(layout_.total(), 0.0f);
      for (Site& site : sites_) site.momentum = momentum_;
    }
    step_.rate = static_cast<float>(result_.outer_rate);
    ISTHMUS_ASSIGN_OR_RETURN(codec_, ParseCodecSpec(spec));
    const bool is_flushed = case_.form == LearningForm::kSparse && !case_.last_codec.empty();
    if (is_flushed) {
      ISTHMUS_ASSIGN_OR_RETURN(last_codec_, ParseCodecSpec(case_.last_codec));
    }
    if (case_.down_kept_per_block > 0) {
      ISTHMUS_ASSIGN_OR_RETURN(down_codec_,
                               ParseCodecSpec(TopKSpec(case_.down_kept_per_block, case_.down_value_bits)));
      hub_residual_.assign(layout_.total(), 0.0f);
    }
    return absl::OkStatus();
  }

  absl::Status RunRound(int64_t round) {
    double loss = 0;
    for (Site& site : sites_) {
      ISTHMUS_ASSIGN_OR_RETURN(const double site_loss, TrainSite(&site, round));
      loss += site_loss / static_cast<double>(case_.sites);
    }
    ISTHMUS_RETURN_IF_ERROR(CloseRound(round));
    return AfterPart(round + 1, result_.rounds, loss, sites_[0].trainer.get(), anchor_);
  }

  // The site's steps of one round; the mean loss of them.
  absl::StatusOr<double> TrainSite(Site* site, int64_t round) {
    double loss = 0;
    for (int64_t i = 0; i < site->round_steps; ++i) {
      if (i >= case_.outcome_delay_steps) ISTHMUS_RETURN_IF_ERROR(ApplyPending(site));
      StepPosition position;
      position.is_frame_pending = site->pending != nullptr;
      position.schedule_step = (round - (position.is_frame_pending ? 1 : 0)) * case_.inner_steps;
      position.inner_steps_per_round = case_.inner_steps;
      position.assigned_steps = site->round_steps;
      position.steps_done = i;
      ISTHMUS_ASSIGN_OR_RETURN(const Batch batch, sequences_.Next(case_.sequences));
      ISTHMUS_ASSIGN_OR_RETURN(const StepResult step,
                               site->trainer->Step(batch, LearningRate(schedule_, ScheduleStepOf(position))));
      result_.tokens += step.tokens;
      loss += step.loss / static_cast<double>(site->round_steps);
    }
    ISTHMUS_RETURN_IF_ERROR(ApplyPending(site));
    return loss;
  }

  absl::Status ApplyPending(Site* site) {
    if (site->pending == nullptr) return absl::OkStatus();
    const std::unique_ptr<Outcome> outcome = std::move(site->pending);
    if (case_.feedback == LearningFeedback::kSeparate) {
      ISTHMUS_RETURN_IF_ERROR(setup_.ops->ApplyToAnchor(layout_, *outcome->update, outcome->step,
                                                        absl::MakeSpan(site->anchor),
                                                        absl::MakeSpan(site->momentum)));
      std::copy(site->anchor.begin(), site->anchor.end(), site->trainer->parameters().begin());
    } else {
      OwnFrame own;
      own.frame = outcome->own.get();
      own.included = outcome->own_included;
      ISTHMUS_RETURN_IF_ERROR(setup_.ops->ApplyOutcome(
          layout_, *outcome->update, outcome->step, own, absl::MakeSpan(site->anchor),
          absl::MakeSpan(site->momentum), site->trainer->parameters()));
    }
    if (std::memcmp(site->anchor.data(), anchor_.data(), anchor_.size() * sizeof(float)) != 0) {
      return absl::InternalError(
          absl::StrCat("site ", site - sites_.data(), ": its anchor is not the hub's"));
    }
    return absl::OkStatus();
  }

  std::vector<bool> IncludedTensors(const Update& update, int64_t site) const {
    std::vector<bool> included(layout_.tensors(), true);
    for (int t = 0; t < layout_.tensors(); ++t) {
      for (uint16_t out : update.tensors[t].left_out) included[t] = included[t] && out != site;
    }
    return included;
  }

  absl::Status CloseRound(int64_t round) {
    const bool is_last = round + 1 == result_.rounds;
    const bool is_flush = is_last && last_codec_ != nullptr;
    const Codec& codec = is_flush ? *last_codec_ : *codec_;
    OuterStep step = step_;
    if (is_flush) step.rate = 1;
    std::vector<std::shared_ptr<const DecodedFrame>> frames;
    std::vector<int64_t> measures;
    int64_t up = 0;
    for (Site& site : sites_) {
      ISTHMUS_ASSIGN_OR_RETURN(const std::string frame, EncodeSite(codec, round, &site));
      up += frame.size();
      ISTHMUS_ASSIGN_OR_RETURN(DecodedFrame decoded, codec.Decode(layout_, frame));
      frames.push_back(std::make_shared<const DecodedFrame>(std::move(decoded)));
      measures.push_back(MeasureOf(site));
    }
    const std::vector<int32_t> weights = ContributionWeights(measures);
    std::vector<WeightedFrame> weighted;
    for (size_t i = 0; i < frames.size(); ++i) weighted.push_back({frames[i].get(), weights[i]});
    ISTHMUS_ASSIGN_OR_RETURN(Update update, setup_.ops->Sum(layout_, weighted, case_.averaging));
    for (size_t i = 0; i < sites_.size(); ++i) {
      sites_[i].pending =
          std::make_unique<Outcome>(Outcome{nullptr, step, frames[i], IncludedTensors(update, i)});
    }
    if (down_codec_ != nullptr) {
      const absl::Span<float> residual = absl::MakeSpan(hub_residual_);
      ISTHMUS_ASSIGN_OR_RETURN(update, is_last ? FlushResidual(layout_, update, residual)
                                               : Recompress(layout_, *down_codec_, update, residual));
    }
    CountBytes(is_last, up, EncodeUpdate(layout_, update).size());
    ISTHMUS_RETURN_IF_ERROR(
        setup_.ops->ApplyToAnchor(layout_, update, step, absl::MakeSpan(anchor_), absl::MakeSpan(momentum_)));
    const auto shared = std::make_shared<const Update>(std::move(update));
    for (Site& site : sites_) site.pending->update = shared;
    return absl::OkStatus();
  }

  int64_t MeasureOf(const Site& site) const {
    if (case_.weights == LearningWeights::kEqual) return 1;
    return case_.sequences * (case_.weights == LearningWeights::kTokens ? site.round_steps : 1);
  }

  // The site's frame. In the separate form its residual holds what the frame leaves then.
  absl::StatusOr<std::string> EncodeSite(const Codec& codec, int64_t round, Site* site) {
    const absl::Span<float> parameters = site->trainer->parameters();
    const float beta = static_cast<float>(case_.carry_decay);
    if (case_.feedback == LearningFeedback::kSeparate) {
      ISTHMUS_RETURN_IF_ERROR(ShowDifference(round, *site, beta));
      return codec.EncodeResidual(layout_, site->anchor, parameters, beta, absl::MakeSpan(site->residual));
    }
    if (beta != 1) {
      for (size_t i = 0; i < site->anchor.size(); ++i) {
        parameters[i] = site->anchor[i] - beta * (site->anchor[i] - parameters[i]);
      }
    }
    ISTHMUS_RETURN_IF_ERROR(ShowDifference(round, *site, beta));
    return setup_.ops->Encode(codec, layout_, site->anchor, parameters);
  }

  absl::Status ShowDifference(int64_t round, const Site& site, float beta) {
    if (!setup_.on_difference) return absl::OkStatus();
    const absl::Span<const float> parameters = site.trainer->parameters();
    std::vector<float> difference(site.anchor.size());
    for (size_t i = 0; i < difference.size(); ++i) {
      difference[i] = site.anchor[i] - parameters[i];
      if (!site.residual.empty()) difference[i] += beta * site.residual[i];
    }
    return setup_.on_difference(round, &site - sites_.data(), difference);
  }

  void CountBytes(bool is_last, int64_t up, int64_t down) {
    const double parameters = static_cast<double>(layout_.total());
    const double up_each = static_cast<double>(up) / static_cast<double>(case_.sites) / parameters;
    const double down_each = static_cast<double>(down) / parameters;
    if (is_last) {
      result_.last_up_bytes = up_each;
      result_.last_down_bytes = down_each;
    } else {
      result_.up_bytes += up_each / static_cast<double>(result_.rounds - 1);
      result_.down_bytes += down_each / static_cast<double>(result_.rounds - 1);
    }
  }

  // Reports progress about ten times a run, and evaluates after each quarter but the last.
  absl::Status AfterPart(int64_t done, int64_t all, double loss, Trainer* trainer,
                         absl::Span<const float> parameters) {
    for (int quarter = 1; quarter <= 3; ++quarter) {
      if (done != all * quarter / 4) continue;
      ISTHMUS_ASSIGN_OR_RETURN(const double held_out,
                               EvaluateBatches(trainer, parameters, setup_.held_out_subset));
      result_.curve.push_back(held_out);
    }
    if (setup_.report && done % std::max<int64_t>(1, all / 10) == 0) {
      setup_.report(
          absl::StrFormat("%s: %d of %d, training loss %.4f", LearningCaseKey(case_), done, all, loss));
    }
    return absl::OkStatus();
  }

  const LearningSetup& setup_;
  const LearningCase& case_;
  const Layout& layout_;
  Sequences sequences_;
  ScheduleOptions schedule_;
  OuterStep step_;
  std::unique_ptr<Codec> codec_, last_codec_, down_codec_;  // the last two may be null
  std::vector<float> initial_, anchor_, momentum_, hub_residual_;
  std::vector<Site> sites_;
  LearningResult result_;
};

void AppendSparseKey(const LearningCase& c, std::string* key) {
  const LearningCase nominal;
  if (!c.codec.empty()) absl::StrAppend(key, " codec=", c.codec);
  if (c.kept_per_block > 0) absl::StrAppend(key, " k=", c.kept_per_block);
  if (c.value_bits != 1) absl::StrAppend(key, " bits=", c.value_bits);
  if (c.outer_rate > 0) absl::StrAppend(key, " alpha=", c.outer_rate);
  if (c.outer_momentum > 0) absl::StrAppend(key, " mu=", c.outer_momentum);
  if (c.feedback == LearningFeedback::kSeparate) absl::StrAppend(key, " separate");
  if (c.carry_decay != 1) absl::StrAppend(key, " beta=", c.carry_decay);
  if (c.last_codec.empty()) absl::StrAppend(key, " no-flush");
  if (!c.last_codec.empty() && c.last_codec != nominal.last_codec)
    absl::StrAppend(key, " last=", c.last_codec);
  if (c.down_kept_per_block > 0)
    absl::StrAppend(key, " down=", c.down_kept_per_block, ",", c.down_value_bits);
}

}  // namespace

std::string LearningFormName(LearningForm form) {
  switch (form) {
    case LearningForm::kSynchronous:
      return "synchronous";
    case LearningForm::kDense:
      return "dense";
    case LearningForm::kDenseNesterov:
      return "dense-nesterov";
    case LearningForm::kSparse:
      return "sparse";
  }
  return "";
}

double LearningResult::all_up_bytes() const {
  return rounds == 0 ? up_bytes * static_cast<double>(steps)
                     : up_bytes * static_cast<double>(rounds - 1) + last_up_bytes;
}

double LearningResult::all_down_bytes() const {
  return rounds == 0 ? down_bytes * static_cast<double>(steps)
                     : down_bytes * static_cast<double>(rounds - 1) + last_down_bytes;
}

std::string LearningCaseKey(const LearningCase& c) {
  std::string key =
      absl::StrCat(LearningFormName(c.form), " rate=", c.peak_rate, " seed=", c.seed, " tokens=", c.tokens,
                   " sites=", c.sites, " H=", c.inner_steps, " batch=", c.sequences);
  if (!c.slowness.empty()) absl::StrAppend(&key, " slowness=", absl::StrJoin(c.slowness, ","));
  if (c.form == LearningForm::kSparse) AppendSparseKey(c, &key);
  if (c.outcome_delay_steps > 0) absl::StrAppend(&key, " delay=", c.outcome_delay_steps);
  if (c.weights == LearningWeights::kTokens) absl::StrAppend(&key, " weights=tokens");
  if (c.weights == LearningWeights::kEqual) absl::StrAppend(&key, " weights=equal");
  if (c.averaging == Averaging::kContributors) absl::StrAppend(&key, " contributors");
  return key;
}

absl::StatusOr<LearningResult> RunLearningCase(const LearningSetup& setup, const LearningCase& c) {
  ISTHMUS_RETURN_IF_ERROR(CheckCase(c));
  if (setup.held_out.empty()) return absl::InvalidArgumentError("learning case: nothing is held out");
  absl::StatusOr<LearningResult> result = Run(setup, c).Go();
  if (!result.ok()) return Annotate(result.status(), LearningCaseKey(c));
  return result;
}

absl::StatusOr<double> EvaluateBatches(Trainer* trainer, absl::Span<const float> parameters,
                                       const std::vector<Batch>& batches) {
  double sum = 0, tokens = 0;
  for (const Batch& batch : batches) {
    ISTHMUS_ASSIGN_OR_RETURN(const double loss, trainer->Evaluate(parameters, batch));
    const double weight = static_cast<double>(batch.sequences * batch.length);
    sum += loss * weight;
    tokens += weight;
  }
  return tokens > 0 ? sum / tokens : 0;
}

}  // namespace isthmus
