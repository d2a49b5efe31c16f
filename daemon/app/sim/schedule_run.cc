#include "daemon/app/sim/schedule_run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

constexpr int64_t kMostEvents = 3000000;  // far beyond any schedule: a loop that time does not move

class ScheduleRunner {
 public:
  ScheduleRunner(const FaultSchedule& schedule, const std::function<void(const std::string&)>& trace)
      : schedule_(schedule),
        trace_(trace),
        run_(OptionsOf(schedule)),
        start_(run_.clock().SteadyNow()),
        away_(schedule.stays_away.begin(), schedule.stays_away.end()),
        invariants_(&run_, &frames_, &updates_, InvariantOptions(schedule)) {}

  ScheduleOutcome Run() {
    for (const Fault& f : schedule_.faults) run_.network().Inject(f);
    KeepTicking();
    invariants_.CalmFrom(start_ + schedule_.calm);
    StartCoordinator();
    for (const std::string& site : schedule_.at_start) Start(site);
    for (const FaultAct& act : schedule_.acts) waiting_.push_back(act);
    const absl::Time calm = start_ + schedule_.calm, end = calm + schedule_.patience;
    while (!run_.is_finished() && invariants_.violations().empty()) {
      const absl::Time now = run_.clock().SteadyNow();
      if (!is_calm_ && now >= calm) BecomeCalm();
      if (now >= end || ++events_ > kMostEvents) {
        invariants_.Report(Invariant::kProgress, NotFinished());
        break;
      }
      if (!run_.RunNext()) {
        invariants_.Report(Invariant::kProgress, "nothing is left to happen");
        break;
      }
      invariants_.AfterEvent();
      DoDueActs();
      MindProcesses();
    }
    return Finish();
  }

 private:
  SimRunOptions OptionsOf(const FaultSchedule& schedule) {
    SimRunOptions o = schedule.options;
    // What a test plants stays below what the invariants record.
    o.make_ops = [this, &schedule](const std::string& process, int64_t id) {
      const auto& planted = schedule.options.make_ops;
      return frames_.Wrap(planted ? planted(process, id) : MakeCpuDeviceOps(), process, id);
    };
    o.wrap_ledger = [this, &schedule](std::unique_ptr<Ledger> ledger) {
      if (schedule.options.wrap_ledger) ledger = schedule.options.wrap_ledger(std::move(ledger));
      return std::make_unique<RecordingLedger>(std::move(ledger), &updates_);
    };
    return o;
  }

  static SimInvariants::Options InvariantOptions(const FaultSchedule& schedule) {
    SimInvariants::Options o;
    o.counts_forfeits = !schedule.has_duplicates;
    o.is_exact = schedule.is_exact;
    return o;
  }

  // Something happens even when every process is down.
  void KeepTicking() {
    run_.loop().RunAfter(absl::Seconds(1), [this] { KeepTicking(); });
  }

  void Trace(const std::string& what) {
    if (trace_)
      trace_(absl::StrCat("--- ", absl::FormatDuration(run_.clock().SteadyNow() - start_), ": ", what));
  }

  std::string NotFinished() {
    std::string text =
        absl::StrCat("not finished ", absl::FormatDuration(schedule_.patience), " after the last fault");
    if (run_.coordinator() != nullptr && run_.coordinator()->role != nullptr) {
      const RunStatus s = run_.coordinator()->role->Status(false);
      absl::StrAppend(&text, ": phase ", s.phase(), ", round ", s.round(), ", ", s.rounds_committed(),
                      " committed, ", s.rounds_aborted(), " aborted, waiting for ", s.waiting_for());
    }
    return text;
  }

  void Start(const std::string& site) {
    restart_at_.erase(site);
    if (SimRun::WorkerProcess* p = run_.worker(site); p != nullptr && !p->worker->has_ended()) return;
    invariants_.ProcessEnds(site);
    Trace(absl::StrCat("start worker ", site));
    run_.StartWorker(site);
  }

  void Kill(const std::string& site, absl::Duration away) {
    SimRun::WorkerProcess* p = run_.worker(site);
    if (p == nullptr || p->worker->has_ended()) return;
    invariants_.ProcessEnds(site);
    ++resend_faults_;
    run_.KillWorker(site);
    restart_at_[site] = run_.clock().SteadyNow() + away;
  }

  void StartCoordinator() {
    const absl::Status started = run_.StartCoordinator();
    if (started.ok()) return;
    Trace(absl::StrCat("coordinator does not start: ", started.message()));
    const bool is_expected = run_.disk().is_crashed() || !run_.disk().is_accepting_writes();
    if (!is_expected)
      invariants_.Report(Invariant::kEnded, absl::StrCat("coordinator: ", started.ToString()));
    coordinator_at_ = run_.clock().SteadyNow() + absl::Seconds(2);
    run_.KillCoordinator();
  }

  void KillCoordinator(absl::Duration away) {
    if (run_.coordinator() == nullptr) return;
    ++restarts_;
    ++resend_faults_;
    run_.KillCoordinator();
    coordinator_at_ = run_.clock().SteadyNow() + away;
  }

  void BecomeCalm() {
    is_calm_ = true;
    Trace("calm");
    run_.network().ClearFaults();
    run_.disk().RefuseWrites(absl::OkStatus());
    run_.disk().CrashAfter(int64_t{1} << 60);
    if (coordinator_at_ != absl::InfiniteFuture()) coordinator_at_ = run_.clock().SteadyNow();
    for (const SimSite& s : schedule_.options.sites) {
      if (away_.count(s.name) == 0) restart_at_[s.name] = run_.clock().SteadyNow();
    }
  }

  void DoDueActs() {
    if (is_calm_) return;
    const absl::Time now = run_.clock().SteadyNow();
    for (size_t i = 0; i < waiting_.size();) {
      if (start_ + waiting_[i].at > now || waiting_[i].after_events-- > 0) {
        ++i;
        continue;
      }
      const FaultAct act = waiting_[i];
      waiting_.erase(waiting_.begin() + i);
      Do(act);
    }
    if (refuses_until_ <= now) {
      refuses_until_ = absl::InfiniteFuture();
      run_.disk().RefuseWrites(absl::OkStatus());
    }
  }

  void Do(const FaultAct& act) {
    Trace(DescribeAct(act));
    SimRun::WorkerProcess* p = run_.worker(act.site);
    Replica* replica = p == nullptr || p->worker->has_ended() ? nullptr : p->worker->mutable_replica();
    switch (act.kind) {
      case FaultAct::Kind::kStartWorker:
        return Start(act.site);
      case FaultAct::Kind::kKillWorker:
        return Kill(act.site, act.length);
      case FaultAct::Kind::kLeaveWorker:
        if (p != nullptr) leaving_.insert(act.site);
        return run_.LeaveWorker(act.site);
      case FaultAct::Kind::kKillCoordinator:
        return KillCoordinator(act.length);
      case FaultAct::Kind::kCrashAfterWrites:
        crash_length_ = act.length;
        return run_.disk().CrashAfter(act.count);
      case FaultAct::Kind::kRefuseWrites:
        refuses_until_ = run_.clock().SteadyNow() + act.length;
        return run_.disk().RefuseWrites(absl::ResourceExhaustedError("the disk is full"));
      case FaultAct::Kind::kNanInParameters:
        if (replica == nullptr || replica->anchor().empty()) return;
        replica->trainer().parameters()[act.count % schedule_.options.values] =
            std::numeric_limits<float>::quiet_NaN();
        return;
      case FaultAct::Kind::kFlippedAnchorBit:
        if (replica == nullptr || replica->anchor().empty()) return;
        invariants_.NoteFlip(act.site);
        return replica->FlipAnchorBit(act.count);
      case FaultAct::Kind::kBreakSession:
        ++resend_faults_;
        return run_.network().BreakSession(act.site);
      case FaultAct::Kind::kClog:
        ++resend_faults_;
        return run_.network().Clog(act.site, act.side, act.length);
    }
  }

  // What a person or a supervisor does: starts again what ended.
  void MindProcesses() {
    const absl::Time now = run_.clock().SteadyNow();
    SimRun::CoordinatorProcess* c = run_.coordinator();
    if (c != nullptr && (!c->failed.ok() || run_.disk().is_crashed())) {
      Trace(absl::StrCat("coordinator ended: ", std::string(c->failed.message())));
      const bool is_expected = run_.disk().is_crashed() || !run_.disk().is_accepting_writes();
      if (!c->failed.ok() && !is_expected && !absl::StrContains(c->failed.message(), "disk is full"))
        invariants_.Report(Invariant::kEnded, absl::StrCat("coordinator: ", c->failed.ToString()));
      KillCoordinator(crash_length_);
    }
    if (run_.coordinator() == nullptr && now >= coordinator_at_) {
      coordinator_at_ = absl::InfiniteFuture();
      Trace("start coordinator");
      StartCoordinator();
    }
    for (const auto& [site, process] : run_.workers()) {
      if (!process->worker->has_ended() || restart_at_.count(site) > 0 || minded_.count(process->id) > 0)
        continue;
      minded_.insert(process->id);
      Trace(absl::StrCat("worker ", site, " ended: ", process->ended.ToString()));
      // A newcomer whose former self is still thought alive is turned away, and tries again.
      const bool is_held = absl::StrContains(process->ended.message(), "is held by");
      if (process->ended.ok() ? leaving_.count(site) == 0 && !run_.is_finished() && !IsOver() : !is_held) {
        invariants_.Report(Invariant::kEnded, absl::StrCat("worker ", site, ": ", process->ended.ToString()));
      }
      if (is_held || (!is_calm_ && away_.count(site) == 0)) restart_at_[site] = now + absl::Seconds(3);
      if (is_calm_ && away_.count(site) == 0 && !IsOver()) restart_at_[site] = now + absl::Seconds(3);
      leaving_.erase(site);
    }
    for (auto it = restart_at_.begin(); it != restart_at_.end();) {
      const auto next = std::next(it);
      if (it->second <= now) Start(std::string(it->first));
      it = next;
    }
  }

  bool IsOver() {
    if (run_.coordinator() == nullptr || run_.coordinator()->role == nullptr) return false;
    return run_.coordinator()->role->Status(false).phase() == "FINISHED";
  }

  ScheduleOutcome Finish() {
    ScheduleOutcome out;
    out.is_finished = run_.is_finished();
    int64_t strikes = 0;
    for (int kind = 0; kind <= static_cast<int>(FaultKind::kBroken); ++kind)
      strikes += run_.network().struck(static_cast<FaultKind>(kind));
    if (invariants_.violations().empty()) {
      invariants_.AtEnd(resend_faults_ + strikes - schedule_.unaccounted_resends);
      if (run_.coordinator() != nullptr && run_.coordinator()->role != nullptr)
        out.status = run_.coordinator()->role->Status(true);
    }
    out.violations = invariants_.violations();
    out.events = events_;
    out.strikes = strikes;
    out.restarts = restarts_;
    out.took = run_.clock().SteadyNow() - start_;
    return out;
  }

  const FaultSchedule& schedule_;
  const std::function<void(const std::string&)>& trace_;
  FrameRecorder frames_;  // before the run, whose processes use it to their end
  UpdateBytes updates_;
  SimRun run_;
  const absl::Time start_;
  const std::set<std::string> away_;
  SimInvariants invariants_;
  std::vector<FaultAct> waiting_;
  std::map<std::string, absl::Time> restart_at_;
  std::set<std::string> leaving_;
  std::set<int64_t> minded_;  // processes whose end was dealt with
  absl::Time coordinator_at_ = absl::InfiniteFuture(), refuses_until_ = absl::InfiniteFuture();
  absl::Duration crash_length_ = absl::Seconds(1);
  bool is_calm_ = false;
  int64_t events_ = 0, restarts_ = 0, resend_faults_ = 0;
};

}  // namespace

std::string ReplayCommand(uint64_t seed) {
  return absl::StrCat("bazel run //daemon/app/sim:replay -- --seed=", seed);
}

std::string ScheduleOutcome::Text(uint64_t seed) const {
  std::string text;
  for (const auto& [invariant, what] : violations) absl::StrAppend(&text, what, "\n");
  return absl::StrCat(text, "replay: ", ReplayCommand(seed));
}

ScheduleOutcome RunSchedule(const FaultSchedule& schedule,
                            const std::function<void(const std::string&)>& trace) {
  return ScheduleRunner(schedule, trace).Run();
}

}  // namespace isthmus
