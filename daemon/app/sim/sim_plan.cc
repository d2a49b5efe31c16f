#include "daemon/app/sim/sim_plan.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/run_file.h"
#include "daemon/app/sim/sim_file.h"
#include "daemon/app/sim/sim_run.h"
#include "daemon/app/text_table.h"
#include "daemon/base/logging.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"
#include "google/protobuf/util/json_util.h"

namespace isthmus {
namespace {

constexpr uint64_t kFaultStream = 0xfa;

absl::Duration DurationOf(const google::protobuf::Duration& d) {
  return absl::Seconds(d.seconds()) + absl::Nanoseconds(d.nanos());
}

// Starts what is to run, and lets go wrong what the rates say.
class Simulation {
 public:
  Simulation(const SimFile& file, SimRunOptions options)
      : file_(file),
        run_(std::move(options)),
        random_(run_.options().seed, kFaultStream),
        away_(file.faults().has_away() ? DurationOf(file.faults().away()) : absl::Seconds(10)) {}

  absl::Status Run() {
    ISTHMUS_RETURN_IF_ERROR(run_.StartCoordinator());
    size_t next = 0;
    for (const SimSiteGroup& group : file_.sites()) {
      for (int64_t i = 0; i < std::max<int64_t>(1, group.count()); ++i) {
        const std::string site = run_.options().sites[next++].name;
        run_.loop().RunAfter(DurationOf(group.starts_at()), [this, site] { run_.StartWorker(site); });
        Arm(file_.faults().worker_kills(), [this, site] { KillWorker(site); });
        Arm(file_.faults().session_breaks(), [this, site] { run_.network().BreakSession(site); });
        Arm(file_.faults().clogs(), [this, site] { run_.network().Clog(site, FaultSide::kUp, away_); });
      }
    }
    Arm(file_.faults().coordinator_kills(), [this] { kill_coordinator_ = true; });
    const absl::Time start = run_.clock().SteadyNow();
    const absl::Time end = start + (file_.has_longest() ? DurationOf(file_.longest()) : absl::Hours(24));
    while (!run_.is_finished() && run_.clock().SteadyNow() < end) {
      if (!run_.RunNext()) break;
      // Between events: a process cannot be taken away from under its own feet.
      DoKills();
    }
    took_ = run_.clock().SteadyNow() - start;
    return absl::OkStatus();
  }

  SimReport Report();

 private:
  // `fault` strikes at seeded random times, `rate` an hour.
  void Arm(double rate, std::function<void()> fault) {
    if (rate <= 0) return;
    const absl::Duration wait = absl::Hours(-std::log(1 - random_.Uniform()) / rate);
    run_.loop().RunAfter(wait, [this, rate, fault = std::move(fault)] {
      fault();
      Arm(rate, fault);
    });
  }

  void KillWorker(const std::string& site) { kill_workers_.push_back(site); }

  void DoKills() {
    for (const std::string& site : kill_workers_) {
      SimRun::WorkerProcess* p = run_.worker(site);
      if (p == nullptr || p->worker->has_ended()) continue;
      ++worker_kills_;
      run_.KillWorker(site);
      run_.loop().RunAfter(away_, [this, site] { start_workers_.push_back(site); });
    }
    kill_workers_.clear();
    for (const std::string& site : start_workers_) run_.StartWorker(site);
    start_workers_.clear();
    if (kill_coordinator_ && run_.coordinator() != nullptr) {
      ++coordinator_kills_;
      run_.KillCoordinator();
      run_.loop().RunAfter(away_, [this] { start_coordinator_ = true; });
    }
    kill_coordinator_ = false;
    if (start_coordinator_) run_.StartCoordinator().IgnoreError();
    start_coordinator_ = false;
    // A newcomer that was turned away, since its former self was thought alive, tries again.
    for (const auto& [site, process] : run_.workers()) {
      if (process->worker->has_ended() && !process->ended.ok()) {
        run_.loop().RunAfter(away_, [this, site = site] { start_workers_.push_back(site); });
        process->ended = absl::OkStatus();
      }
    }
  }

  void AddRounds(const RunStatus& status, SimReport* report) const;
  void AddSites(const RunStatus& status, SimReport* report);

  const SimFile& file_;
  SimRun run_;
  Random random_;
  const absl::Duration away_;
  std::vector<std::string> kill_workers_, start_workers_;
  bool kill_coordinator_ = false, start_coordinator_ = false;
  int64_t worker_kills_ = 0, coordinator_kills_ = 0;
  absl::Duration took_;
};

double Percentile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * (values.size() - 1) + 0.5)];
}

double Share(double part, double rest) { return part + rest > 0 ? part / (part + rest) : 0; }

void Simulation::AddRounds(const RunStatus& status, SimReport* report) const {
  std::vector<double> seconds;
  int64_t steps = 0;
  for (const CommitSummary& c : status.commits()) {
    seconds.push_back(c.round_seconds());
    steps += c.steps();
    report->set_closed_by_all(report->closed_by_all() + (c.close_kind() == ALL_ARRIVED));
    report->set_closed_by_grace(report->closed_by_grace() + (c.close_kind() == QUORUM_AND_GRACE));
    report->set_closed_by_deadline(report->closed_by_deadline() + (c.close_kind() == DEADLINE));
  }
  report->set_steps(steps);
  report->set_round_seconds_median(Percentile(seconds, 0.5));
  report->set_round_seconds_p95(Percentile(seconds, 0.95));
}

void Simulation::AddSites(const RunStatus& status, SimReport* report) {
  std::map<std::string, const SiteStatus*> known;
  for (const SiteStatus& s : status.sites()) known[s.site()] = &s;
  double waited = 0, computed = 0;
  int64_t up = 0, down = 0;
  bool are_equal = true;
  for (const SimSite& site : run_.options().sites) {
    SimSiteReport* r = report->add_sites();
    r->set_site(site.name);
    r->set_steps_per_second(site.steps_per_second);
    const SiteTraffic& traffic = run_.network().traffic(site.name);
    r->set_bytes_up(traffic.data_up + traffic.control_up);
    r->set_bytes_down(traffic.data_down + traffic.control_down);
    up += r->bytes_up();
    down += r->bytes_down();
    if (SimRun::WorkerProcess* p = run_.worker(site.name); p != nullptr && p->worker->replica() != nullptr) {
      const SiteProgress progress = p->worker->Progress();
      waited += progress.wait_seconds();
      computed += progress.compute_seconds();
      r->set_waiting_share(Share(progress.wait_seconds(), progress.compute_seconds()));
      const Replica& replica = *p->worker->replica();
      if (!status.commits().empty() && replica.stamp().round == status.commits().rbegin()->round())
        are_equal &= replica.AnchorDigest().ToBytes() == status.state_digest();
    }
    auto s = known.find(site.name);
    if (s == known.end()) continue;
    r->set_rounds_included(s->second->rounds_included());
    r->set_rounds_missed(s->second->rounds_missed());
    r->set_forfeited_steps(s->second->forfeited_steps());
    r->set_incarnation(s->second->incarnation());
    r->set_last_miss_reason(s->second->last_miss_reason());
  }
  const double rounds = std::max<double>(1, status.rounds_committed()) * run_.options().sites.size();
  report->set_bytes_up_per_round(up / rounds);
  report->set_bytes_down_per_round(down / rounds);
  report->set_waiting_share(Share(waited, computed));
  report->set_are_final_digests_equal(are_equal);
}

SimReport Simulation::Report() {
  SimReport report;
  report.set_seed(run_.options().seed);
  report.set_is_finished(run_.is_finished());
  report.set_seconds(absl::ToDoubleSeconds(took_));
  report.set_values(run_.options().values);
  report.set_codec(run_.options().codec);
  report.set_worker_kills(worker_kills_);
  report.set_coordinator_kills(coordinator_kills_);
  if (run_.coordinator() == nullptr || run_.coordinator()->role == nullptr) return report;
  const RunStatus status = run_.coordinator()->role->Status(/*all_commits=*/true);
  report.set_rounds_committed(status.rounds_committed());
  report.set_rounds_aborted(status.rounds_aborted());
  report.set_forfeited_steps(status.forfeited_steps());
  report.set_held_out_loss_start(status.held_out_loss_start());
  report.set_held_out_loss_end(status.held_out_loss_end());
  report.set_digests_compared(status.digests_compared());
  report.set_digests_deviating(status.digests_deviating());
  AddRounds(status, &report);
  AddSites(status, &report);
  return report;
}

std::string Percent(double share) { return absl::StrFormat("%.1f %%", 100 * share); }

}  // namespace

absl::StatusOr<SimReport> SimulateRun(const SimFile& file, uint64_t seed) {
  ISTHMUS_ASSIGN_OR_RETURN(SimRunOptions options, SimRunOptionsOf(file, seed));
  Simulation simulation(file, std::move(options));
  ISTHMUS_RETURN_IF_ERROR(simulation.Run());
  return simulation.Report();
}

std::string SimReportTable(const SimReport& r) {
  TextTable run({"<run", "<"});
  const auto row = [&](const std::string& name, const std::string& value) { run.AddRow({name, value}); };
  row("finished", r.is_finished() ? "yes" : "no");
  row("seed", absl::StrCat(r.seed()));
  row("codec", r.codec());
  row("values", absl::StrCat(r.values()));
  row("time", absl::StrFormat("%.1f s", r.seconds()));
  row("rounds committed / aborted", absl::StrCat(r.rounds_committed(), " / ", r.rounds_aborted()));
  row("closed by all / quorum and grace / deadline",
      absl::StrCat(r.closed_by_all(), " / ", r.closed_by_grace(), " / ", r.closed_by_deadline()));
  row("round time, median / 95 %",
      absl::StrFormat("%.2f s / %.2f s", r.round_seconds_median(), r.round_seconds_p95()));
  row("waiting", Percent(r.waiting_share()));
  row("bytes per site and round, up / down",
      absl::StrFormat("%.0f / %.0f", r.bytes_up_per_round(), r.bytes_down_per_round()));
  row("steps committed / forfeited", absl::StrCat(r.steps(), " / ", r.forfeited_steps()));
  row("held-out loss, start / end",
      absl::StrFormat("%.4f / %.4f", r.held_out_loss_start(), r.held_out_loss_end()));
  row("kills of workers / of the coordinator", absl::StrCat(r.worker_kills(), " / ", r.coordinator_kills()));
  row("digests compared / deviating", absl::StrCat(r.digests_compared(), " / ", r.digests_deviating()));
  row("final digests", r.are_final_digests_equal() ? "equal" : "DIFFERENT");
  TextTable sites({"<site", "steps/s", "rounds in", "missed", "bytes up", "bytes down", "waiting",
                   "forfeited", "lives", "<last missed"});
  for (const SimSiteReport& s : r.sites()) {
    sites.AddRow({s.site(), absl::StrFormat("%.2f", s.steps_per_second()), absl::StrCat(s.rounds_included()),
                  absl::StrCat(s.rounds_missed()), absl::StrCat(s.bytes_up()), absl::StrCat(s.bytes_down()),
                  Percent(s.waiting_share()), absl::StrCat(s.forfeited_steps()),
                  absl::StrCat(s.incarnation()), s.last_miss_reason()});
  }
  return absl::StrCat(run.ToString(), "\n", sites.ToString());
}

std::string SimReportJson(const SimReport& report) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(report, &json, options);
  return status.ok() ? json : "{}";
}

absl::Status RunSimFile(const std::string& path, uint64_t seed, bool is_json, std::ostream& out) {
  InitLogging(LogForm::kText, LogLevel::kError);
  ISTHMUS_ASSIGN_OR_RETURN(const std::string text, ReadRunText(path));
  ISTHMUS_ASSIGN_OR_RETURN(const SimFile file, ParseSimFile(text, path));
  ISTHMUS_ASSIGN_OR_RETURN(const SimReport report, SimulateRun(file, seed));
  out << (is_json ? SimReportJson(report) + "\n" : SimReportTable(report)) << std::flush;
  if (!report.is_finished())
    return absl::AbortedError(absl::StrCat(path, ": the run did not finish in time"));
  if (!report.are_final_digests_equal())
    return absl::AbortedError(absl::StrCat(path, ": final digests differ"));
  return absl::OkStatus();
}

}  // namespace isthmus
