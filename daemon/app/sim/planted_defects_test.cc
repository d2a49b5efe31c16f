// A checker that never complains proves nothing: each invariant has a defect here that it must find.
#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "daemon/app/sim/schedule_run.h"
#include "daemon/base/logging.h"
#include "daemon/rounds/data_leases.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

// Four sites, dense frames, all four in every round.
FaultSchedule CalmSchedule() {
  InitLogging(LogForm::kText, LogLevel::kError);
  FaultSchedule s;
  SimRunOptions& o = s.options;
  o.run = SimRunFile(8, 4);
  o.run.mutable_rounds()->set_start_sites(4);
  o.run.mutable_rounds()->set_quorum(4);
  o.run.mutable_rounds()->set_minimum(4);
  o.run.mutable_rounds()->mutable_longest_round()->set_seconds(20);
  o.planned_rounds = 8;
  o.codec = "dense(bits=24)|zstd(1)";
  o.values = 32;
  for (const char* name : {"a", "b", "c", "d"}) {
    SimSite site;
    site.name = name;
    o.sites.push_back(site);
    s.at_start.push_back(name);
  }
  s.calm = absl::Minutes(2);
  s.patience = absl::Minutes(5);
  return s;
}

FaultAct ActAt(FaultAct::Kind kind, const std::string& site, int64_t seconds) {
  FaultAct act;
  act.kind = kind;
  act.site = site;
  act.at = absl::Seconds(seconds);
  act.length = absl::Seconds(2);
  return act;
}

void KillCoordinatorOften(FaultSchedule* schedule) {
  for (int64_t at = 8; at < 60; at += 5) {
    schedule->acts.push_back(ActAt(FaultAct::Kind::kKillCoordinator, "", at));
    schedule->acts.back().length = absl::Milliseconds(300);
  }
}

bool Finds(const ScheduleOutcome& outcome, Invariant invariant) {
  return std::any_of(outcome.violations.begin(), outcome.violations.end(),
                     [&](const auto& v) { return v.first == invariant; });
}

// Everything passed on; a defect overrides one thing.
class DefectiveOps : public DeviceOps {
 public:
  std::string name() const override { return "defective"; }
  absl::StatusOr<std::string> Encode(const Codec& codec, const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) override {
    return ops_->Encode(codec, layout, anchor, parameters);
  }
  absl::StatusOr<Update> Sum(const Layout& layout, absl::Span<const WeightedFrame> frames,
                             Averaging averaging) override {
    return ops_->Sum(layout, frames, averaging);
  }
  absl::Status ApplyToAnchor(const Layout& layout, const Update& update, const OuterStep& step,
                             absl::Span<float> anchor, absl::Span<float> momentum) override {
    return ops_->ApplyToAnchor(layout, update, step, anchor, momentum);
  }
  absl::Status ApplyOutcome(const Layout& layout, const Update& update, const OuterStep& step,
                            const OwnFrame& own, absl::Span<float> anchor, absl::Span<float> momentum,
                            absl::Span<float> parameters) override {
    return ops_->ApplyOutcome(layout, update, step, own, anchor, momentum, parameters);
  }
  absl::Status MoveToAnchor(const Layout& layout, absl::Span<const float> new_anchor, const OwnFrame& own,
                            absl::Span<float> anchor, absl::Span<float> parameters) override {
    return ops_->MoveToAnchor(layout, new_anchor, own, anchor, parameters);
  }

 protected:
  const std::unique_ptr<DeviceOps> ops_ = MakeCpuDeviceOps();
};

// `Ops` in the process named, the reference elsewhere.
template <typename Ops>
void PlantOps(FaultSchedule* schedule, const std::string& where) {
  schedule->options.make_ops = [where](const std::string& process, int64_t) -> std::unique_ptr<DeviceOps> {
    if (process == where) return std::make_unique<Ops>();
    return MakeCpuDeviceOps();
  };
}

class DefectiveLedger : public RecordingLedger {
 public:
  using Defect = std::function<void(LedgerState*)>;
  DefectiveLedger(std::unique_ptr<Ledger> ledger, UpdateBytes* updates, Defect defect)
      : RecordingLedger(std::move(ledger), updates), defect_(std::move(defect)) {}
  absl::StatusOr<LedgerState> Load() override {
    absl::StatusOr<LedgerState> state = ledger_->Load();
    if (state.ok()) defect_(&*state);
    return state;
  }

 private:
  const Defect defect_;
};

// What a restarted coordinator reads is changed by `defect`.
void PlantInLedger(FaultSchedule* schedule, UpdateBytes* updates, DefectiveLedger::Defect defect) {
  schedule->options.wrap_ledger = [updates, defect](std::unique_ptr<Ledger> ledger) {
    return std::make_unique<DefectiveLedger>(std::move(ledger), updates, defect);
  };
}

TEST(PlantedDefectsTest, WithoutADefectNothingIsFoundAndMassesAgreeToTheBit) {
  FaultSchedule s = CalmSchedule();
  s.is_exact = true;
  s.acts.push_back(ActAt(FaultAct::Kind::kKillCoordinator, "", 12));
  s.acts.push_back(ActAt(FaultAct::Kind::kKillWorker, "c", 20));
  const ScheduleOutcome outcome = RunSchedule(s, nullptr);
  EXPECT_TRUE(outcome.violations.empty()) << outcome.Text(0);
  EXPECT_TRUE(outcome.is_finished);
  EXPECT_EQ(outcome.status.rounds_committed(), 8);
}

// The same with a residual beside the parameters; each frame leaves most of it.
FaultSchedule CalmSeparateSchedule() {
  FaultSchedule s = CalmSchedule();
  s.options.run.mutable_exchange()->set_error_feedback(ExchangeConfig::SEPARATE);
  s.options.codec = "topk(k=512,block=4096)|levels(bits=2)|gaps|zstd(1)";
  return s;
}

TEST(PlantedDefectsTest, WithoutADefectMassesWithASeparateResidualAgreeToo) {
  FaultSchedule s = CalmSeparateSchedule();
  s.acts.push_back(ActAt(FaultAct::Kind::kKillWorker, "c", 20));
  s.acts.push_back(ActAt(FaultAct::Kind::kNanInParameters, "b", 25));
  ScheduleOutcome outcome = RunSchedule(s, nullptr);
  EXPECT_TRUE(outcome.violations.empty()) << outcome.Text(0);
  EXPECT_EQ(outcome.status.rounds_committed(), 8);
  EXPECT_EQ(outcome.status.error_feedback(), "SEPARATE");
  s.options.codec = "dense(bits=24)|zstd(1)";
  s.is_exact = true;
  outcome = RunSchedule(s, nullptr);
  EXPECT_TRUE(outcome.violations.empty()) << outcome.Text(0);
}

TEST(PlantedDefectsTest, WhatDecayTakesFromAResidualIsInTheRunsAccount) {
  FaultSchedule s = CalmSeparateSchedule();
  s.options.run.mutable_exchange()->set_carry_decay(0.95);
  const ScheduleOutcome outcome = RunSchedule(s, nullptr);
  EXPECT_TRUE(outcome.violations.empty()) << outcome.Text(0);
  ASSERT_EQ(outcome.status.sites_size(), 4);
  for (const SiteStatus& site : outcome.status.sites()) {
    const double told = site.progress().forfeited_square_sum();
    EXPECT_GT(told, 0) << site.site();
    EXPECT_NEAR(site.forfeited_square_sum(), told, 1e-9 * told) << site.site();
  }
}

// The residual keeps what the frame took: it is sent twice.
class SubtractsNothing : public DefectiveOps {
 public:
  absl::StatusOr<std::string> EncodeResidualTo(const Codec& codec, const Layout& layout,
                                               absl::Span<const float> anchor,
                                               absl::Span<const float> parameters, float beta,
                                               absl::Span<const float> residual,
                                               absl::Span<float> left) override {
    const auto frame = ops_->EncodeResidualTo(codec, layout, anchor, parameters, beta, residual, left);
    for (size_t i = 0; i < left.size(); ++i) left[i] = residual[i] + (anchor[i] - parameters[i]);
    return frame;
  }
};

TEST(PlantedDefectsTest, AResidualThatKeepsWhatWasSentIsFound) {
  FaultSchedule s = CalmSeparateSchedule();
  PlantOps<SubtractsNothing>(&s, "c");
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kMass));
}

// The residual is lost with each frame.
class ForgetsResidual : public DefectiveOps {
 public:
  absl::StatusOr<std::string> EncodeResidualTo(const Codec& codec, const Layout& layout,
                                               absl::Span<const float> anchor,
                                               absl::Span<const float> parameters, float beta,
                                               absl::Span<const float> residual,
                                               absl::Span<float> left) override {
    const std::vector<float> nothing(residual.size(), 0.0f);
    return ops_->EncodeResidualTo(codec, layout, anchor, parameters, beta, nothing, left);
  }
};

TEST(PlantedDefectsTest, AResidualThatIsForgottenIsFound) {
  FaultSchedule s = CalmSeparateSchedule();
  PlantOps<ForgetsResidual>(&s, "d");
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kMass));
}

TEST(PlantedDefectsTest, ARoundThatIsCommittedTwiceIsFound) {
  FaultSchedule s = CalmSchedule();
  UpdateBytes updates;
  PlantInLedger(&s, &updates, [](LedgerState* state) {
    // Where a snapshot has it already: elsewhere the rebuilt anchor gives it away at once.
    if (state->commits.empty() || state->commits.back().key().round() != state->snapshots.back().round())
      return;
    state->commits.push_back(state->commits.back());
  });
  KillCoordinatorOften(&s);
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kOneCommit));
}

TEST(PlantedDefectsTest, ACommitThatIsLostOverARestartIsFound) {
  FaultSchedule s = CalmSchedule();
  UpdateBytes updates;
  PlantInLedger(&s, &updates, [](LedgerState* state) {
    if (state->commits.empty() || state->snapshots.back().round() >= state->commits.back().key().round())
      return;
    state->commits.pop_back();
  });
  KillCoordinatorOften(&s);
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kNoGoingBack));
}

TEST(PlantedDefectsTest, ACommitThatChangesOverARestartIsFound) {
  FaultSchedule s = CalmSchedule();
  UpdateBytes updates;
  PlantInLedger(&s, &updates, [](LedgerState* state) {
    if (!state->commits.empty()) state->commits.front().mutable_included(0)->set_weight(65);
  });
  s.acts.push_back(ActAt(FaultAct::Kind::kKillCoordinator, "", 15));
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kNoGoingBack));
}

TEST(PlantedDefectsTest, ACommitOnAnotherBaseThanTheLastStateIsFound) {
  FaultSchedule s = CalmSchedule();
  UpdateBytes updates;
  PlantInLedger(&s, &updates, [](LedgerState* state) {
    if (!state->open.empty()) state->open.back().set_base_digest(std::string(16, 'x'));
  });
  s.acts.push_back(ActAt(FaultAct::Kind::kKillCoordinator, "", 15));
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kBase));
}

class AnchorOffByOneUlp : public DefectiveOps {
 public:
  absl::Status ApplyOutcome(const Layout& layout, const Update& update, const OuterStep& step,
                            const OwnFrame& own, absl::Span<float> anchor, absl::Span<float> momentum,
                            absl::Span<float> parameters) override {
    const absl::Status status = ops_->ApplyOutcome(layout, update, step, own, anchor, momentum, parameters);
    if (++calls_ == 3) anchor[5] = std::nextafter(anchor[5], 1.0f);
    return status;
  }

 private:
  int calls_ = 0;
};

TEST(PlantedDefectsTest, OneBitOfAnAnchorThatDeviatesIsFound) {
  FaultSchedule s = CalmSchedule();
  PlantOps<AnchorOffByOneUlp>(&s, "b");
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kDigests));
}

// Sends twice: the own frame's term of the outcome rule is left out.
class ForgetsOwnFrame : public DefectiveOps {
 public:
  absl::Status ApplyOutcome(const Layout& layout, const Update& update, const OuterStep& step,
                            const OwnFrame&, absl::Span<float> anchor, absl::Span<float> momentum,
                            absl::Span<float> parameters) override {
    return ops_->ApplyOutcome(layout, update, step, OwnFrame(), anchor, momentum, parameters);
  }
};

TEST(PlantedDefectsTest, MassThatIsSentTwiceIsFound) {
  FaultSchedule s = CalmSchedule();
  PlantOps<ForgetsOwnFrame>(&s, "c");
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kMass));
}

class SumOffByOne : public DefectiveOps {
 public:
  absl::StatusOr<Update> Sum(const Layout& layout, absl::Span<const WeightedFrame> frames,
                             Averaging averaging) override {
    absl::StatusOr<Update> update = ops_->Sum(layout, frames, averaging);
    if (update.ok() && !update->tensors[1].sums.empty()) ++update->tensors[1].sums[2];
    return update;
  }
};

TEST(PlantedDefectsTest, AnUpdateThatIsNotTheWeightedSumIsFound) {
  FaultSchedule s = CalmSchedule();
  PlantOps<SumOffByOne>(&s, "coordinator");
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kSum));
}

class NeverEncodes : public DefectiveOps {
 public:
  absl::StatusOr<std::string> Encode(const Codec&, const Layout&, absl::Span<const float>,
                                     absl::Span<const float>) override {
    return absl::InvalidArgumentError("planted");
  }
};

TEST(PlantedDefectsTest, ARunThatNeverFinishesIsFound) {
  FaultSchedule s = CalmSchedule();
  PlantOps<NeverEncodes>(&s, "d");
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kProgress));
}

TEST(PlantedDefectsTest, FramesThatAreSentAgainForNoReasonAreFound) {
  FaultSchedule s = CalmSchedule();
  s.options.values = 20000;
  Fault flips;
  flips.kind = FaultKind::kBytesFlipped;
  flips.target = FaultTarget::kUpload;
  flips.site = "a";
  flips.budget = 4;
  s.faults.push_back(flips);
  const ScheduleOutcome accounted = RunSchedule(s, nullptr);
  EXPECT_TRUE(accounted.violations.empty()) << accounted.Text(0);
  s.unaccounted_resends = 4;
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kBytes));
}

TEST(PlantedDefectsTest, DataThatIsLeasedTwiceIsFound) {
  FaultSchedule s = CalmSchedule();
  UpdateBytes updates;
  // The cursor stands before what is leased.
  PlantInLedger(&s, &updates, [](LedgerState* state) {
    LeaseRow* space = nullptr;
    for (LeaseRow& row : state->lease_rows) {
      if (row.kind() == static_cast<int>(LeaseRecord::Kind::kSpace)) space = &row;
      if (row.kind() == static_cast<int>(LeaseRecord::Kind::kUnused) && row.begin() < space->begin())
        space->set_begin(row.begin());
    }
  });
  s.acts.push_back(ActAt(FaultAct::Kind::kKillCoordinator, "", 15));
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kLeases));
}

TEST(PlantedDefectsTest, StepsOfAKilledProcessThatNobodyCountsAreFound) {
  FaultSchedule s = CalmSchedule();
  UpdateBytes updates;
  PlantInLedger(&s, &updates, [](LedgerState* state) {
    for (EventRecord& e : state->events) {
      if (e.kind() == EventRecord::FORFEITED) e.clear_steps();
    }
  });
  s.acts.push_back(ActAt(FaultAct::Kind::kKillWorker, "b", 15));
  s.acts.push_back(ActAt(FaultAct::Kind::kKillCoordinator, "", 30));
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kForfeited));
}

class RefusesToApply : public DefectiveOps {
 public:
  absl::Status ApplyOutcome(const Layout&, const Update&, const OuterStep&, const OwnFrame&,
                            absl::Span<float>, absl::Span<float>, absl::Span<float>) override {
    return absl::InvalidArgumentError("planted");
  }
};

TEST(PlantedDefectsTest, AProcessThatEndsForNoReasonIsFound) {
  FaultSchedule s = CalmSchedule();
  PlantOps<RefusesToApply>(&s, "a");
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kEnded));
}

// Hands a restarted coordinator another residual than the last commit's.
class StaleResidualLedger : public RecordingLedger {
 public:
  using RecordingLedger::RecordingLedger;
  absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const BlobName& name) override {
    BlobName older = name;
    if (name.kind == RESIDUAL && name.round > 1) --older.round;
    return ledger_->OpenBlob(older);
  }
};

TEST(PlantedDefectsTest, AResidualOfAnotherRoundIsNotTakenForTheCommittedOne) {
  FaultSchedule s = CalmSchedule();
  s.options.run.mutable_exchange()->set_update_codec("topk(k=64,block=4096)|levels(bits=1)|gaps|zstd(1)");
  KillCoordinatorOften(&s);
  EXPECT_TRUE(RunSchedule(s, nullptr).violations.empty());
  UpdateBytes updates;
  s.options.wrap_ledger = [&updates](std::unique_ptr<Ledger> ledger) {
    return std::make_unique<StaleResidualLedger>(std::move(ledger), &updates);
  };
  EXPECT_TRUE(Finds(RunSchedule(s, nullptr), Invariant::kMass) ||
              Finds(RunSchedule(s, nullptr), Invariant::kSum));
}

}  // namespace
}  // namespace isthmus
