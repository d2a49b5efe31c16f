#include "daemon/app/round_bench.h"

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/bench_fleet.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"
#include "google/protobuf/util/time_util.h"

namespace isthmus {
namespace {

constexpr int64_t kDenseK = 512, kSparseK = 64;
constexpr int64_t kWithoutEnd = 100000;   // rounds of a run that is killed again and again
constexpr int64_t kFirstQuietRounds = 8;  // before the first kill: the grace is learned from these
constexpr int64_t kQuietRounds = 2;       // between kills
constexpr int64_t kUncountedRounds = 2;   // at the start of a watched run
constexpr int32_t kWatchedHeartbeatNanos = 250000000;
constexpr int64_t kTextBytes = 2 << 20;

absl::Time TimeOf(const google::protobuf::Timestamp& t) {
  return absl::FromUnixNanos(google::protobuf::util::TimeUtil::TimestampToNanoseconds(t));
}

const CommitSummary* FindCommit(const RunStatus& status, int64_t round) {
  for (const CommitSummary& c : status.commits()) {
    if (c.round() == round) return &c;
  }
  return nullptr;
}

const SiteStatus* FindSite(const RunStatus& status, const std::string& site) {
  for (const SiteStatus& s : status.sites()) {
    if (s.site() == site) return &s;
  }
  return nullptr;
}

std::string RuleOf(CloseKind kind) {
  return kind == ALL_ARRIVED ? "all" : kind == QUORUM_AND_GRACE ? "grace" : "deadline";
}

// Median over the commits told of that nobody was missing from.
double QuietMedian(const RunStatus& status, double (CommitSummary::*figure)() const) {
  std::vector<double> values;
  for (const CommitSummary& c : status.commits()) {
    if (c.included() == c.expected() && c.round_seconds() > 0) values.push_back((c.*figure)());
  }
  return MedianOf(std::move(values));
}

// The measurement under way.
class Bench {
 public:
  Bench(const RoundBenchOptions& options, Clock* clock, InterruptWatch* watch, std::string folder,
        std::string data)
      : options_(options),
        clock_(clock),
        watch_(watch),
        folder_(std::move(folder)),
        data_(std::move(data)),
        random_(static_cast<uint64_t>(options.shape.seed)) {}

  absl::StatusOr<RoundBenchReport> Run();

 private:
  // A round that is open and was so for a seeded share of its usual length.
  struct Moment {
    RunStatus status;
    double phase_fraction = 0;
  };

  bool IsWanted(const std::string& part) const { return options_.part == "all" || options_.part == part; }
  void Say(const std::string& line) const {
    if (options_.progress) options_.progress(line);
  }
  BenchFleet MakeFleet(RunFile run, int64_t upload_bytes_per_second = 0) const;
  // Waits for as many quiet rounds with every site active, and learns how long a round is.
  absl::Status AwaitQuiet(BenchFleet* fleet, int64_t rounds);
  absl::StatusOr<Moment> AwaitMoment(BenchFleet* fleet);

  absl::Status KillWorkers();
  absl::StatusOr<WorkerKill> KillWorker(BenchFleet* fleet, int64_t index);
  absl::Status KillCoordinators();
  absl::StatusOr<CoordinatorKill> KillCoordinator(BenchFleet* fleet);
  absl::Status WatchWaiting();
  absl::StatusOr<WaitingRun> WatchWaitingRun(bool is_overlap_on, int64_t uplink, double* frame_bytes);
  absl::Status WatchBytes();
  absl::StatusOr<BytesRun> WatchBytesRun(int64_t k);

  const RoundBenchOptions& options_;
  Clock* const clock_;
  InterruptWatch* const watch_;
  const std::string folder_, data_;
  Random random_;
  RoundBenchReport report_;
};

BenchFleet Bench::MakeFleet(RunFile run, int64_t upload_bytes_per_second) const {
  FleetOptions fleet;
  fleet.program = options_.program;
  fleet.data = data_;
  fleet.run = std::move(run);
  fleet.sites = options_.shape.sites;
  fleet.upload_bytes_per_second = upload_bytes_per_second;
  return BenchFleet(std::move(fleet), folder_, clock_, watch_);
}

absl::StatusOr<RoundBenchReport> Bench::Run() {
  report_.sites = options_.shape.sites;
  report_.inner_steps = options_.shape.inner_steps;
  report_.seed = options_.shape.seed;
  report_.is_text_given = !options_.data.empty();
  if (getloadavg(&report_.load_average, 1) != 1) report_.load_average = 0;
  if (IsWanted("worker-kill")) ISTHMUS_RETURN_IF_ERROR(KillWorkers());
  if (IsWanted("coordinator-kill")) ISTHMUS_RETURN_IF_ERROR(KillCoordinators());
  if (IsWanted("waiting")) ISTHMUS_RETURN_IF_ERROR(WatchWaiting());
  if (IsWanted("bytes")) ISTHMUS_RETURN_IF_ERROR(WatchBytes());
  return report_;
}

absl::Status Bench::AwaitQuiet(BenchFleet* fleet, int64_t rounds) {
  int64_t first = -1;
  const auto is_quiet = [&](const RunStatus& status) {
    int64_t active = 0;
    for (const SiteStatus& s : status.sites()) active += s.state() == "active";
    if (active < options_.shape.sites) first = -1;
    if (active == options_.shape.sites && first < 0) first = status.rounds_committed();
    return first >= 0 && status.rounds_committed() >= first + rounds;
  };
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus status, fleet->Await("a quiet run", is_quiet));
  report_.parameters = status.parameters();
  report_.usual_round_seconds = QuietMedian(status, &CommitSummary::round_seconds);
  report_.quiet_close_delay_seconds = QuietMedian(status, &CommitSummary::close_delay_seconds);
  return absl::OkStatus();
}

absl::StatusOr<Bench::Moment> Bench::AwaitMoment(BenchFleet* fleet) {
  // Into the first nine tenths, so that the round is still open then.
  const absl::Duration into = absl::Seconds(report_.usual_round_seconds * 0.9 * random_.Uniform());
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus before, fleet->Ask(false));
  const auto is_new = [&](const RunStatus& s) {
    return s.phase() == "ROUND_OPEN" && s.round() > before.round();
  };
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus opened, fleet->Await("the next round", is_new));
  ISTHMUS_RETURN_IF_ERROR(fleet->Pause(into - absl::Seconds(opened.seconds_since_open())));
  const auto is_open = [](const RunStatus& s) { return s.phase() == "ROUND_OPEN"; };
  Moment moment;
  ISTHMUS_ASSIGN_OR_RETURN(moment.status, fleet->Await("an open round", is_open));
  moment.phase_fraction = moment.status.seconds_since_open() / std::max(1e-3, report_.usual_round_seconds);
  return moment;
}

absl::Status Bench::KillWorkers() {
  BenchFleet fleet = MakeFleet(MakeBenchRun(options_.shape, "worker-kill", kDenseK, kWithoutEnd));
  ISTHMUS_RETURN_IF_ERROR(fleet.Start());
  ISTHMUS_RETURN_IF_ERROR(AwaitQuiet(&fleet, kFirstQuietRounds));
  for (int64_t i = 0; i < options_.repeats; ++i) {
    const int64_t index = random_.Below(options_.shape.sites);
    ISTHMUS_ASSIGN_OR_RETURN(const WorkerKill kill, KillWorker(&fleet, index));
    report_.worker_kills.push_back(kill);
    Say(absl::StrFormat("kill %d of %d: %s in round %d closed it %.3f s after the last arrival", i + 1,
                        options_.repeats, kill.site, kill.round, kill.close_delay_seconds));
    ISTHMUS_RETURN_IF_ERROR(fleet.StartSite(index));
    ISTHMUS_RETURN_IF_ERROR(AwaitQuiet(&fleet, kQuietRounds));
  }
  return absl::OkStatus();
}

absl::StatusOr<WorkerKill> Bench::KillWorker(BenchFleet* fleet, int64_t index) {
  ISTHMUS_ASSIGN_OR_RETURN(const Moment moment, AwaitMoment(fleet));
  fleet->KillSite(index);
  const absl::Time killed_at = clock_->SteadyNow();
  WorkerKill kill;
  kill.site = BenchFleet::NameOf(index);
  kill.round = moment.status.round();
  kill.phase_fraction = moment.phase_fraction;
  const SiteStatus* site = FindSite(moment.status, kill.site);
  kill.had_contributed = site != nullptr && site->has_contributed();
  absl::Time found_dead_at = absl::InfiniteFuture();
  int64_t last_expecting = kill.round;
  const auto is_over = [&](const RunStatus& status) {
    const SiteStatus* s = FindSite(status, kill.site);
    const bool is_dead = s == nullptr || s->state() == "dead";
    if (!is_dead) last_expecting = std::max(last_expecting, status.round());
    if (is_dead) found_dead_at = std::min(found_dead_at, clock_->SteadyNow());
    return is_dead && FindCommit(status, last_expecting) != nullptr;
  };
  ISTHMUS_RETURN_IF_ERROR(fleet->Await("the commit after a kill", is_over).status());
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus after, fleet->Ask(/*all_commits=*/true));
  const CommitSummary* hit = FindCommit(after, kill.round);
  if (hit == nullptr) {
    return absl::InternalError(
        absl::StrCat("round ", kill.round, " was not committed after ", kill.site, " was killed in it"));
  }
  kill.close_delay_seconds = hit->close_delay_seconds();
  kill.close_rule = RuleOf(hit->close_kind());
  kill.found_dead_seconds = absl::ToDoubleSeconds(found_dead_at - killed_at);
  for (int64_t round = kill.round + 1; round <= last_expecting; ++round) {
    const CommitSummary* later = FindCommit(after, round);
    if (later == nullptr || later->expected() < options_.shape.sites) continue;
    ++kill.later_rounds;
    kill.later_delay_seconds += later->close_delay_seconds();
  }
  return kill;
}

absl::Status Bench::KillCoordinators() {
  BenchFleet fleet = MakeFleet(MakeBenchRun(options_.shape, "coordinator-kill", kDenseK, kWithoutEnd));
  ISTHMUS_RETURN_IF_ERROR(fleet.Start());
  ISTHMUS_RETURN_IF_ERROR(AwaitQuiet(&fleet, kFirstQuietRounds));
  for (int64_t i = 0; i < options_.repeats; ++i) {
    ISTHMUS_ASSIGN_OR_RETURN(const CoordinatorKill kill, KillCoordinator(&fleet));
    report_.coordinator_kills.push_back(kill);
    Say(absl::StrFormat("kill %d of %d: the coordinator in round %d, next commit %.3f s after its start",
                        i + 1, options_.repeats, kill.round, kill.commit_seconds));
    ISTHMUS_RETURN_IF_ERROR(AwaitQuiet(&fleet, kQuietRounds));
  }
  return absl::OkStatus();
}

absl::StatusOr<CoordinatorKill> Bench::KillCoordinator(BenchFleet* fleet) {
  ISTHMUS_ASSIGN_OR_RETURN(const Moment moment, AwaitMoment(fleet));
  const absl::Time killed_at = clock_->Now();
  fleet->KillCoordinator();
  const absl::Time started_at = clock_->Now();
  ISTHMUS_RETURN_IF_ERROR(fleet->StartCoordinator());
  const absl::Time listened_at = clock_->Now();
  absl::Time committed_at;
  const auto has_committed = [&](const RunStatus& status) {
    if (status.commits().empty()) return false;
    committed_at = TimeOf(status.commits().rbegin()->committed_at());
    return committed_at > started_at;
  };
  ISTHMUS_RETURN_IF_ERROR(fleet->Await("a commit after a restart", has_committed).status());
  CoordinatorKill kill;
  kill.round = moment.status.round();
  kill.phase_fraction = moment.phase_fraction;
  kill.listen_seconds = absl::ToDoubleSeconds(listened_at - started_at);
  kill.commit_seconds = absl::ToDoubleSeconds(committed_at - started_at);
  kill.outage_seconds = absl::ToDoubleSeconds(committed_at - killed_at);
  const double rest = report_.usual_round_seconds - moment.status.seconds_since_open();
  kill.added_seconds = kill.outage_seconds - std::max(0.0, rest);
  return kill;
}

absl::Status Bench::WatchWaiting() {
  double frame_bytes = 0;
  for (const bool is_overlap_on : {true, false}) {
    ISTHMUS_ASSIGN_OR_RETURN(const WaitingRun free, WatchWaitingRun(is_overlap_on, 0, &frame_bytes));
    report_.waiting.push_back(free);
  }
  const int64_t uplink = QuarterRoundUplink(frame_bytes, report_.waiting.front().round_seconds);
  for (const bool is_overlap_on : {true, false}) {
    ISTHMUS_ASSIGN_OR_RETURN(const WaitingRun limited, WatchWaitingRun(is_overlap_on, uplink, &frame_bytes));
    report_.waiting.push_back(limited);
  }
  return absl::OkStatus();
}

absl::StatusOr<WaitingRun> Bench::WatchWaitingRun(bool is_overlap_on, int64_t uplink, double* frame_bytes) {
  RunFile run = MakeBenchRun(
      options_.shape, absl::StrCat("overlap-", is_overlap_on ? "on" : "off", uplink > 0 ? "-limited" : ""),
      kDenseK, options_.rounds);
  run.mutable_rounds()->set_overlap(is_overlap_on);
  // A dense frame through a limited uplink would take longer than all that is measured.
  run.mutable_rounds()->set_dense_last_round(false);
  // Seconds are told with heartbeats: often enough for short rounds.
  run.mutable_membership()->mutable_heartbeat()->set_nanos(kWatchedHeartbeatNanos);
  Say(absl::StrCat("run ", run.name(), ", ", options_.rounds, " rounds"));
  BenchFleet fleet = MakeFleet(run, uplink);
  ISTHMUS_RETURN_IF_ERROR(fleet.Start());
  const auto is_over = [](const RunStatus& s) { return s.phase() == "FINISHED"; };
  ISTHMUS_RETURN_IF_ERROR(fleet.Await("the end", is_over).status());
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus status, fleet.Ask(/*all_commits=*/true));
  report_.parameters = status.parameters();
  WaitingRun found;
  found.is_overlap_on = is_overlap_on;
  found.upload_bytes_per_second = uplink;
  found.held_out_loss = status.held_out_loss_end();
  std::vector<double> seconds, frames;
  for (const CommitSummary& c : status.commits()) {
    // The first rounds learn how long they are; the last one waits for all by its nature.
    if (c.round() <= kUncountedRounds || c.is_last()) continue;
    ++found.rounds;
    found.compute_seconds += c.compute_seconds();
    found.wait_seconds += c.wait_seconds();
    seconds.push_back(c.round_seconds());
    frames.push_back(static_cast<double>(c.bytes_up()) / std::max<int64_t>(1, c.included()));
  }
  found.round_seconds = MedianOf(seconds);
  *frame_bytes = MedianOf(frames);
  if (uplink > 0 && found.round_seconds > 0)
    found.sending_fraction = *frame_bytes / static_cast<double>(uplink) / found.round_seconds;
  return found;
}

absl::Status Bench::WatchBytes() {
  for (const int64_t k : {kSparseK, kDenseK}) {
    ISTHMUS_ASSIGN_OR_RETURN(const BytesRun run, WatchBytesRun(k));
    report_.bytes.push_back(run);
  }
  return absl::OkStatus();
}

// Sums over the sites that are in both, per parameter, site and round of its own anchor in between.
void SocketBytes(const RunStatus& from, const RunStatus& to, BytesRun* found) {
  double up = 0, down = 0, rounds = 0;
  for (const SiteStatus& end : to.sites()) {
    const SiteStatus* begin = FindSite(from, end.site());
    if (begin == nullptr) continue;
    up += static_cast<double>(end.progress().bytes_out() - begin->progress().bytes_out());
    down += static_cast<double>(end.progress().bytes_in() - begin->progress().bytes_in());
    rounds += static_cast<double>(end.progress().anchor_round() - begin->progress().anchor_round());
  }
  const double per = std::max(1.0, rounds) * static_cast<double>(std::max<int64_t>(1, to.parameters()));
  found->socket_up = up / per;
  found->socket_down = down / per;
}

absl::StatusOr<BytesRun> Bench::WatchBytesRun(int64_t k) {
  const RunFile run = MakeBenchRun(options_.shape, absl::StrCat("bytes-k", k), k, options_.rounds);
  Say(absl::StrCat("run ", run.name(), ", ", options_.rounds, " rounds"));
  BenchFleet fleet = MakeFleet(run);
  ISTHMUS_RETURN_IF_ERROR(fleet.Start());
  const auto has_begun = [](const RunStatus& s) { return s.rounds_committed() >= kUncountedRounds; };
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus begun, fleet.Await("the first rounds", has_begun));
  const int64_t last = options_.rounds;
  const auto is_last_open = [&](const RunStatus& s) { return s.rounds_committed() >= last - 1; };
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus ending, fleet.Await("the last round", is_last_open));
  const auto is_over = [](const RunStatus& s) { return s.phase() == "FINISHED"; };
  ISTHMUS_RETURN_IF_ERROR(fleet.Await("the end", is_over).status());
  ISTHMUS_ASSIGN_OR_RETURN(const RunStatus status, fleet.Ask(/*all_commits=*/true));
  BytesRun found;
  found.k = k;
  found.parameters = report_.parameters = status.parameters();
  found.tokens = status.tokens();
  found.loss_before = status.held_out_loss_start();
  found.loss_after = status.held_out_loss_end();
  SocketBytes(begun, ending, &found);
  const double parameters = static_cast<double>(std::max<int64_t>(1, found.parameters));
  for (const CommitSummary& c : status.commits()) {
    const double up = static_cast<double>(c.bytes_up()) / parameters / std::max<int64_t>(1, c.included());
    const double down = static_cast<double>(c.bytes_down()) / parameters / options_.shape.sites;
    if (c.is_last()) {
      found.last_up = up;
      found.last_down = down;
      continue;
    }
    ++found.rounds;
    found.frames_fraction += static_cast<double>(c.included()) / options_.shape.sites;
    found.frame_up += up;
    found.update_down += down;
  }
  found.frame_up /= std::max<int64_t>(1, found.rounds);
  found.update_down /= std::max<int64_t>(1, found.rounds);
  found.frames_fraction /= std::max<int64_t>(1, found.rounds);
  return found;
}

}  // namespace

absl::StatusOr<RoundBenchReport> RunRoundBench(const RoundBenchOptions& options, Clock* clock,
                                               InterruptWatch* watch) {
  ISTHMUS_ASSIGN_OR_RETURN(const auto folder, TemporaryFolder::Make());
  std::string data = options.data;
  if (data.empty()) {
    data = folder->path() + "/made-up.txt";
    ISTHMUS_RETURN_IF_ERROR(
        WriteWholeFile(data, MakeSeededText(kTextBytes, static_cast<uint64_t>(options.shape.seed))));
  }
  return Bench(options, clock, watch, folder->path(), data).Run();
}

}  // namespace isthmus
