#include "daemon/app/sim/sim_file.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/app/run_resolve.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace isthmus {
namespace {

constexpr int64_t kMostSites = 1024, kMostValues = 20000000;
constexpr uint64_t kSpeedStream = 0x51;

class Collector : public google::protobuf::io::ErrorCollector {
 public:
  explicit Collector(const std::string& name) : name_(name) {}
  void AddError(int line, int column, const std::string& message) override {
    lines_.push_back(absl::StrCat(name_, ":", line + 1, ":", column + 1, ": ", message));
  }
  std::string text() const { return absl::StrJoin(lines_, "\n"); }

 private:
  const std::string name_;
  std::vector<std::string> lines_;
};

// What a field must be, when it is not.
std::string FindMistake(const SimFile& f) {
  if (f.values() < 0 || f.values() == 1 || f.values() > kMostValues)
    return absl::StrCat("values: ", f.values(), " is not within 2 and ", kMostValues);
  if (f.sites().empty()) return "sites: at least one group is needed";
  int64_t sites = 0;
  for (const SimSiteGroup& g : f.sites()) {
    const std::string where = absl::StrCat("sites ", g.name(), ": ");
    if (g.count() < 0) return absl::StrCat(where, "count ", g.count(), " is negative");
    sites += g.count() == 0 ? 1 : g.count();
    if (sites > kMostSites) return absl::StrCat(where, "more than ", kMostSites, " sites");
    for (double v : {g.steps_per_second(), g.up_bytes_per_second(), g.down_bytes_per_second(),
                     g.max_tokens_per_second()}) {
      if (!(v >= 0) || !std::isfinite(v)) return absl::StrCat(where, "a rate of ", v);
    }
    if (g.speed_spread() != 0 && !(g.speed_spread() >= 1 && g.speed_spread() <= 1000))
      return absl::StrCat(where, "speed_spread ", g.speed_spread(), " is not within 1 and 1000");
  }
  const SimFaultRates& r = f.faults();
  for (double v : {r.worker_kills(), r.coordinator_kills(), r.session_breaks(), r.clogs()}) {
    if (!(v >= 0 && v <= 3600))
      return absl::StrCat("faults: a rate of ", v, " an hour is not within 0 and 3600");
  }
  const RoundConfig& rounds = f.run().rounds();
  if (rounds.has_total_rounds() && (rounds.total_rounds() < 1 || rounds.total_rounds() > 100000))
    return absl::StrCat("run.rounds.total_rounds: ", rounds.total_rounds());
  if (rounds.has_inner_steps_per_round() &&
      (rounds.inner_steps_per_round() < 1 || rounds.inner_steps_per_round() > 100000))
    return absl::StrCat("run.rounds.inner_steps_per_round: ", rounds.inner_steps_per_round());
  return "";
}

absl::Duration DurationOf(const google::protobuf::Duration& d) {
  return absl::Seconds(d.seconds()) + absl::Nanoseconds(d.nanos());
}

SimSite SiteOf(const SimSiteGroup& group, const std::string& name, uint64_t seed, int64_t number) {
  SimSite site;
  site.name = name;
  site.steps_per_second = group.steps_per_second() > 0 ? group.steps_per_second() : 1;
  if (group.speed_spread() > 1) {
    Random random(seed, Mix64(kSpeedStream) + number);
    site.steps_per_second *= std::pow(group.speed_spread(), 2 * random.Uniform() - 1);
  }
  if (group.has_latency()) site.link.latency = DurationOf(group.latency());
  site.link.up_bytes_per_second = group.up_bytes_per_second();
  site.link.down_bytes_per_second = group.down_bytes_per_second();
  site.max_tokens_per_second = group.max_tokens_per_second();
  return site;
}

}  // namespace

absl::StatusOr<SimFile> ParseSimFile(absl::string_view text, const std::string& name) {
  SimFile file;
  Collector collector(name);
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  if (!parser.ParseFromString(std::string(text), &file)) return absl::InvalidArgumentError(collector.text());
  if (const std::string mistake = FindMistake(file); !mistake.empty())
    return absl::InvalidArgumentError(absl::StrCat(name, ": ", mistake));
  return file;
}

absl::StatusOr<SimRunOptions> SimRunOptionsOf(const SimFile& file, uint64_t seed) {
  SimRunOptions o;
  o.run = SimRunFile(10, 30);
  o.run.mutable_rounds()->mutable_longest_round()->set_seconds(600);
  o.run.mutable_outer()->clear_rate();
  o.run.mutable_exchange()->set_contribution_codec("auto");
  o.run.MergeFrom(file.run());
  o.seed = seed != 0 ? seed : file.seed() != 0 ? file.seed() : 1;
  o.values = file.values() > 0 ? file.values() : 20000;
  int64_t number = 0;
  for (const SimSiteGroup& group : file.sites()) {
    for (int64_t i = 0; i < std::max<int64_t>(1, group.count()); ++i) {
      const std::string base = group.name().empty() ? "site" : group.name();
      o.sites.push_back(SiteOf(group, absl::StrCat(base, "-", i), o.seed, number++));
    }
  }
  ISTHMUS_ASSIGN_OR_RETURN(const ResolvedRun resolved, ResolveAuto(o.run, o.sites.size()));
  o.codec = resolved.codecs.contribution;
  o.run.mutable_exchange()->set_contribution_codec(o.codec);
  o.run.mutable_exchange()->set_update_codec(resolved.codecs.update);
  o.run.mutable_exchange()->set_snapshot_codec(resolved.codecs.snapshot);
  o.run.mutable_outer()->set_rate(resolved.outer_rate);
  o.planned_rounds = resolved.total_rounds;
  o.coordinator.publish_every = absl::Minutes(1);
  return o;
}

}  // namespace isthmus
