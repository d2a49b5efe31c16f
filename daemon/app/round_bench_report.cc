#include "daemon/app/round_bench_report.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/human_units.h"
#include "daemon/app/text_table.h"

namespace isthmus {
namespace {

constexpr int kBlockValues = 4096;
constexpr int kPublishedBits = 12 + 2;

std::string Seconds(double seconds) { return absl::StrFormat("%.3f", seconds); }
std::string Share(double fraction) { return absl::StrFormat("%.1f %%", 100 * fraction); }
std::string PerParameter(double bytes) { return absl::StrFormat("%.4f", bytes); }

// Median of one figure of many samples.
template <typename Sample>
double MedianOf(const std::vector<Sample>& samples, double Sample::*figure) {
  std::vector<double> values;
  for (const Sample& s : samples) values.push_back(s.*figure);
  return isthmus::MedianOf(std::move(values));
}

// The kills that fell before the victim had contributed: only these can make the round they fell in late.
std::vector<WorkerKill> KillsInTime(const std::vector<WorkerKill>& kills) {
  std::vector<WorkerKill> in_time;
  std::copy_if(kills.begin(), kills.end(), std::back_inserter(in_time),
               [](const WorkerKill& k) { return !k.had_contributed; });
  return in_time;
}

void AddWorkerKills(const RoundBenchReport& report, std::string* text) {
  absl::StrAppend(text,
                  "\nSIGKILL of a worker: close of the round it fell in minus the last arrival (a round "
                  "takes ",
                  Seconds(report.usual_round_seconds), " s, closes ",
                  Seconds(report.quiet_close_delay_seconds), " s after the last arrival without a kill)\n");
  TextTable table({"kill", "<site", "round", "at", "<contributed", "delay s", "<closed by", "found dead s",
                   "later rounds", "their delay s"});
  const std::vector<WorkerKill>& kills = report.worker_kills;
  for (size_t i = 0; i < kills.size(); ++i) {
    const WorkerKill& k = kills[i];
    table.AddRow({absl::StrCat(i + 1), k.site, absl::StrCat(k.round), Share(k.phase_fraction),
                  k.had_contributed ? "yes" : "no", Seconds(k.close_delay_seconds), k.close_rule,
                  Seconds(k.found_dead_seconds), absl::StrCat(k.later_rounds),
                  Seconds(k.later_delay_seconds)});
  }
  table.AddRow({"median", "", "", "", "", Seconds(MedianOf(kills, &WorkerKill::close_delay_seconds)), "",
                Seconds(MedianOf(kills, &WorkerKill::found_dead_seconds)), "",
                Seconds(MedianOf(kills, &WorkerKill::later_delay_seconds))});
  absl::StrAppend(text, table.ToString());
  const std::vector<WorkerKill> in_time = KillsInTime(kills);
  if (in_time.size() == kills.size() || in_time.empty()) return;
  absl::StrAppend(text, "median of the ", in_time.size(), " whose victim had not contributed yet: ",
                  Seconds(MedianOf(in_time, &WorkerKill::close_delay_seconds)), " s\n");
}

void AddCoordinatorKills(const RoundBenchReport& report, std::string* text) {
  absl::StrAppend(text, "\nSIGKILL of the coordinator, started again at once\n");
  TextTable table(
      {"kill", "round", "at", "start to listening s", "start to commit s", "kill to commit s", "added s"});
  const std::vector<CoordinatorKill>& kills = report.coordinator_kills;
  for (size_t i = 0; i < kills.size(); ++i) {
    const CoordinatorKill& k = kills[i];
    table.AddRow({absl::StrCat(i + 1), absl::StrCat(k.round), Share(k.phase_fraction),
                  Seconds(k.listen_seconds), Seconds(k.commit_seconds), Seconds(k.outage_seconds),
                  Seconds(k.added_seconds)});
  }
  table.AddRow({"median", "", "", Seconds(MedianOf(kills, &CoordinatorKill::listen_seconds)),
                Seconds(MedianOf(kills, &CoordinatorKill::commit_seconds)),
                Seconds(MedianOf(kills, &CoordinatorKill::outage_seconds)),
                Seconds(MedianOf(kills, &CoordinatorKill::added_seconds))});
  absl::StrAppend(text, table.ToString());
}

void AddWaiting(const RoundBenchReport& report, std::string* text) {
  absl::StrAppend(text, "\nShare of their time that sites have nothing to compute\n");
  TextTable table({"<overlap", "uplink B/s", "sending", "rounds", "round s", "computing s", "waiting s",
                   "waiting", "held-out loss"});
  for (const WaitingRun& r : report.waiting) {
    table.AddRow({r.is_overlap_on ? "on" : "off",
                  r.upload_bytes_per_second > 0 ? absl::StrCat(r.upload_bytes_per_second) : "free",
                  r.upload_bytes_per_second > 0 ? Share(r.sending_fraction) : "-", absl::StrCat(r.rounds),
                  Seconds(r.round_seconds), absl::StrFormat("%.1f", r.compute_seconds),
                  absl::StrFormat("%.1f", r.wait_seconds), Share(r.waiting_fraction()),
                  HumanLoss(r.held_out_loss)});
  }
  absl::StrAppend(text, table.ToString());
}

void AddBytes(const RoundBenchReport& report, std::string* text) {
  absl::StrAppend(text,
                  "\nBytes per parameter and frame, update or site and round beside the published 12+2-bit "
                  "form at the same k (",
                  report.is_text_given ? "" : "of made-up text, so that the loss says little; ",
                  "dense last round apart)\n");
  TextTable table({"k", "published", "frame up", "of it", "update down", "frames", "socket up", "socket down",
                   "last up", "last down", "rounds", "tokens", "held-out loss"});
  for (const BytesRun& r : report.bytes) {
    const double published = PublishedBytesPerParameter(r.k);
    table.AddRow({absl::StrCat(r.k), PerParameter(published), PerParameter(r.frame_up),
                  Share(r.frame_up / published), PerParameter(r.update_down), Share(r.frames_fraction),
                  PerParameter(r.socket_up), PerParameter(r.socket_down), PerParameter(r.last_up),
                  PerParameter(r.last_down), absl::StrCat(r.rounds), absl::StrCat(r.tokens),
                  absl::StrCat(HumanLoss(r.loss_before), " to ", HumanLoss(r.loss_after))});
  }
  absl::StrAppend(text, table.ToString());
}

using Json = nlohmann::ordered_json;

Json JsonOf(const WorkerKill& k) {
  return {{"site", k.site},
          {"round", k.round},
          {"phase_fraction", k.phase_fraction},
          {"had_contributed", k.had_contributed},
          {"close_delay_seconds", k.close_delay_seconds},
          {"close_rule", k.close_rule},
          {"found_dead_seconds", k.found_dead_seconds},
          {"later_rounds", k.later_rounds},
          {"later_delay_seconds", k.later_delay_seconds}};
}

Json JsonOf(const CoordinatorKill& k) {
  return {{"round", k.round},
          {"phase_fraction", k.phase_fraction},
          {"listen_seconds", k.listen_seconds},
          {"commit_seconds", k.commit_seconds},
          {"outage_seconds", k.outage_seconds},
          {"added_seconds", k.added_seconds}};
}

Json JsonOf(const WaitingRun& r) {
  return {{"is_overlap_on", r.is_overlap_on},       {"upload_bytes_per_second", r.upload_bytes_per_second},
          {"sending_fraction", r.sending_fraction}, {"rounds", r.rounds},
          {"round_seconds", r.round_seconds},       {"compute_seconds", r.compute_seconds},
          {"wait_seconds", r.wait_seconds},         {"waiting_fraction", r.waiting_fraction()},
          {"held_out_loss", r.held_out_loss}};
}

Json JsonOf(const BytesRun& r) {
  return {{"k", r.k},
          {"published", PublishedBytesPerParameter(r.k)},
          {"frame_up", r.frame_up},
          {"update_down", r.update_down},
          {"frames_fraction", r.frames_fraction},
          {"socket_up", r.socket_up},
          {"socket_down", r.socket_down},
          {"last_up", r.last_up},
          {"last_down", r.last_down},
          {"parameters", r.parameters},
          {"rounds", r.rounds},
          {"tokens", r.tokens},
          {"held_out_loss_before", r.loss_before},
          {"held_out_loss_after", r.loss_after}};
}

template <typename Sample>
Json JsonOfAll(const std::vector<Sample>& samples) {
  Json list = Json::array();
  for (const Sample& s : samples) list.push_back(JsonOf(s));
  return list;
}

}  // namespace

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n % 2 == 1 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

double PublishedBytesPerParameter(int64_t k) {
  return static_cast<double>(k) * kPublishedBits / 8 / kBlockValues;
}

std::string RoundBenchTable(const RoundBenchReport& report) {
  std::string text = absl::StrFormat(
      "%d sites, %d parameters, %d inner steps to a round, seed %d, load average %.2f at the start\n",
      report.sites, report.parameters, report.inner_steps, report.seed, report.load_average);
  if (!report.worker_kills.empty()) AddWorkerKills(report, &text);
  if (!report.coordinator_kills.empty()) AddCoordinatorKills(report, &text);
  if (!report.waiting.empty()) AddWaiting(report, &text);
  if (!report.bytes.empty()) AddBytes(report, &text);
  return text;
}

std::string RoundBenchJson(const RoundBenchReport& report) {
  const std::vector<WorkerKill> in_time = KillsInTime(report.worker_kills);
  Json json;
  json["sites"] = report.sites;
  json["parameters"] = report.parameters;
  json["inner_steps"] = report.inner_steps;
  json["seed"] = report.seed;
  json["load_average"] = report.load_average;
  json["is_text_given"] = report.is_text_given;
  json["usual_round_seconds"] = report.usual_round_seconds;
  json["quiet_close_delay_seconds"] = report.quiet_close_delay_seconds;
  json["worker_kill_delay_seconds_median"] = MedianOf(report.worker_kills, &WorkerKill::close_delay_seconds);
  json["worker_kill_delay_seconds_median_not_contributed"] =
      MedianOf(in_time, &WorkerKill::close_delay_seconds);
  json["coordinator_restart_to_commit_seconds_median"] =
      MedianOf(report.coordinator_kills, &CoordinatorKill::commit_seconds);
  json["coordinator_kill_to_commit_seconds_median"] =
      MedianOf(report.coordinator_kills, &CoordinatorKill::outage_seconds);
  json["worker_kills"] = JsonOfAll(report.worker_kills);
  json["coordinator_kills"] = JsonOfAll(report.coordinator_kills);
  json["waiting"] = JsonOfAll(report.waiting);
  json["bytes_per_parameter"] = JsonOfAll(report.bytes);
  return json.dump(2) + "\n";
}

}  // namespace isthmus
