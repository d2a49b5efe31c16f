#include "daemon/app/sim/fault_schedule.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"

namespace isthmus {
namespace {

constexpr uint64_t kStream = 0xfa17, kFeedbackStream = 0xfa18, kTrafficStream = 0xfa19;

// Mostly few sites, now and then many: each costs time.
int64_t DrawSites(Random* random) {
  const uint64_t kind = random->Below(100);
  if (kind < 8) return 1;
  if (kind < 80) return 2 + random->Below(4);
  if (kind < 96) return 6 + random->Below(6);
  return 12 + random->Below(21);
}

LinkProfile DrawLink(Random* random) {
  LinkProfile link;
  link.latency = absl::Milliseconds(1 + random->Below(200));
  if (random->Chance(0.5)) {
    link.up_bytes_per_second = std::pow(10, 2.5 + 3 * random->Uniform());
    link.down_bytes_per_second = std::pow(10, 3 + 3 * random->Uniform());
  }
  return link;
}

void DrawRunFile(Random* random, int64_t sites, SimRunOptions* o) {
  const int64_t rounds = 6 + random->Below(9) + (random->Chance(0.3) ? 20 : 0);
  const int64_t steps = 1 + random->Below(8);
  o->planned_rounds = rounds;
  o->run = SimRunFile(rounds, steps);
  RoundConfig* r = o->run.mutable_rounds();
  r->mutable_longest_round()->set_seconds(20);
  r->set_overlap(random->Chance(0.7));
  r->set_start_sites(1 + random->Below(sites));
  r->set_dense_last_round(random->Chance(0.7));
  if (random->Chance(0.2)) r->set_quorum(1 + random->Below(sites));
  if (random->Chance(0.2)) r->set_minimum(1 + random->Below(std::max<int64_t>(1, sites / 2)));
  ExchangeConfig* e = o->run.mutable_exchange();
  e->set_averaging(random->Chance(0.7) ? ExchangeConfig::PEERS : ExchangeConfig::CONTRIBUTORS);
  const uint64_t weights = random->Below(3);
  e->set_weights(weights == 0   ? ExchangeConfig::EQUAL
                 : weights == 1 ? ExchangeConfig::TOKENS
                                : ExchangeConfig::TOKENS_PER_STEP);
  if (random->Chance(0.1)) e->set_carry_decay(0.95);
  const int64_t k = int64_t{64} << random->Below(6);
  o->codec = absl::StrCat("topk(k=", k, ",block=4096)|levels(bits=", 1 + random->Below(3), ")|gaps|zstd(1)");
  if (random->Chance(0.25)) o->codec = "dense(bits=24)|zstd(1)";
  if (random->Chance(0.2)) {
    o->codec = "dense(bits=24)|zstd(1)";
    o->run.mutable_outer()->set_form(OuterConfig::NESTEROV);
    o->run.mutable_outer()->set_rate(0.5);
    o->run.mutable_outer()->set_momentum(0.5);
  } else if (random->Chance(0.3)) {
    o->run.mutable_outer()->set_rate(1 + 0.0625 * random->Below(9));
  }
  o->run.mutable_evaluation()->set_every_rounds(random->Below(3));
  o->run.mutable_storage()->set_snapshots_kept(2 + random->Below(3));
}

// From a stream of its own, so that all else of a seed stays as it is.
void DrawTraffic(uint64_t seed, SimRunOptions* o) {
  Random random(seed, kTrafficStream);
  ExchangeConfig* e = o->run.mutable_exchange();
  if (random.Chance(0.3)) {
    const int64_t k = int64_t{64} << random.Below(6);
    e->set_update_codec(
        absl::StrCat("topk(k=", k, ",block=4096)|levels(bits=", 1 + random.Below(3), ")|gaps|zstd(1)"));
  }
  if (random.Chance(0.3)) e->set_snapshot_codec("fp32|zstd(3)");
}

Fault DrawFault(Random* random, const std::vector<SimSite>& sites) {
  static constexpr FaultKind kKinds[] = {
      FaultKind::kRequestLost, FaultKind::kReplyLost,    FaultKind::kDelayed,
      FaultKind::kDuplicated,  FaultKind::kReordered,    FaultKind::kClogged,
      FaultKind::kPeerSlow,    FaultKind::kBytesFlipped, FaultKind::kBroken};
  static constexpr FaultTarget kTargets[] = {FaultTarget::kAny, FaultTarget::kControl, FaultTarget::kUpload,
                                             FaultTarget::kFetch};
  Fault f;
  f.kind = kKinds[random->Below(9)];
  f.target = kTargets[random->Below(4)];
  f.side = random->Chance(0.5) ? FaultSide::kUp : FaultSide::kDown;
  if (random->Chance(0.6)) f.site = sites[random->Below(sites.size())].name;
  f.budget = 1 + random->Below(4);
  f.probability = random->Chance(0.3) ? 1 : 0.02 + 0.3 * random->Uniform();
  f.seed = random->Next();
  f.skip = random->Below(60);
  f.length = absl::Milliseconds(10 + random->Below(random->Chance(0.2) ? 25000 : 9000));
  f.factor = 2 + random->Below(20);
  f.fraction = random->Uniform();
  f.is_breaking = random->Chance(0.5);
  f.is_undetected = random->Chance(0.3);
  return f;
}

// Within `busy`; often close behind the one before, where two faults meet.
FaultAct DrawAct(Random* random, const std::vector<SimSite>& sites, absl::Duration busy,
                 const FaultAct* before) {
  static constexpr FaultAct::Kind kKinds[] = {
      FaultAct::Kind::kKillWorker,       FaultAct::Kind::kKillWorker,      FaultAct::Kind::kLeaveWorker,
      FaultAct::Kind::kKillCoordinator,  FaultAct::Kind::kKillCoordinator, FaultAct::Kind::kCrashAfterWrites,
      FaultAct::Kind::kCrashAfterWrites, FaultAct::Kind::kRefuseWrites,    FaultAct::Kind::kNanInParameters,
      FaultAct::Kind::kFlippedAnchorBit, FaultAct::Kind::kBreakSession,    FaultAct::Kind::kClog};
  FaultAct a;
  a.kind = kKinds[random->Below(12)];
  a.at = busy * random->Uniform();
  a.after_events = random->Chance(0.5) ? random->Below(200) : 0;
  a.site = sites[random->Below(sites.size())].name;
  a.length = absl::Milliseconds(20 + random->Below(random->Chance(0.3) ? 30000 : 12000));
  a.count = random->Below(20);
  a.side = random->Chance(0.5) ? FaultSide::kUp : FaultSide::kDown;
  if (before == nullptr || !random->Chance(0.4)) return a;
  a.at = before->at + absl::Seconds(4 * random->Uniform() * random->Uniform());
  if (random->Chance(0.6)) a.site = before->site;
  return a;
}

}  // namespace

FaultSchedule MakeFaultSchedule(uint64_t seed) {
  Random random(seed, kStream);
  FaultSchedule s;
  s.seed = seed;
  SimRunOptions& o = s.options;
  o.seed = seed;
  o.values = 24 + random.Below(60);
  o.sequences = random.Chance(0.2) ? 40 + random.Below(200) : 100000;
  o.toy_noise = 0.1 + 0.2 * random.Uniform();
  o.toy_site_shift = random.Chance(0.3) ? 0.2 : 0;
  const int64_t sites = DrawSites(&random);
  DrawRunFile(&random, sites, &o);
  Random feedback(seed, kFeedbackStream);  // of its own: the other draws do not hang on it
  if (feedback.Chance(0.3)) {
    o.run.mutable_exchange()->set_error_feedback(ExchangeConfig::SEPARATE);
    if (feedback.Chance(0.3)) o.run.mutable_exchange()->set_carry_decay(0.95);
  }
  DrawTraffic(seed, &o);
  const double base_speed = 0.5 + 2 * random.Uniform();
  // A site alone, held to a fifth of its speed, must still manage its H steps.
  const int64_t longest = std::max<int64_t>(20, 6 * o.run.rounds().inner_steps_per_round() / base_speed);
  o.run.mutable_rounds()->mutable_longest_round()->set_seconds(longest);
  for (int64_t i = 0; i < sites; ++i) {
    SimSite site;
    site.name = absl::StrCat("s", i);
    site.steps_per_second =
        base_speed * std::pow(10, random.Chance(0.3) ? random.Uniform() : 0.2 * random.Uniform());
    site.link = DrawLink(&random);
    if (random.Chance(0.1))
      site.max_tokens_per_second = 16 * site.steps_per_second * (0.2 + random.Uniform());
    o.sites.push_back(site);
  }
  o.coordinator.publish_every = absl::Seconds(20);
  o.coordinator.restart_grace = absl::Seconds(5 + random.Below(15));
  const RoundConfig& rounds = o.run.rounds();
  // About what the run takes undisturbed.
  absl::Duration busy =
      absl::Seconds(rounds.total_rounds() * (rounds.inner_steps_per_round() / base_speed / 1.3 + 1));
  if (rounds.total_rounds() > 14 || random.Chance(0.2)) {
    busy *= 0.4;  // and then the rest of the run shows whether all recovered
    s.calm = busy;
  } else {
    s.calm = busy * 1.5 + absl::Seconds(20);
  }
  s.patience = absl::Seconds(longest + 15) * (rounds.total_rounds() + 4) + absl::Minutes(3);
  const int64_t late = sites > 1 ? random.Below(sites / 2 + 1) : 0;
  for (int64_t i = 0; i < sites; ++i) {
    if (i + late < sites) {
      s.at_start.push_back(o.sites[i].name);
    } else {
      FaultAct join;
      join.kind = FaultAct::Kind::kStartWorker;
      join.at = busy * random.Uniform();
      join.site = o.sites[i].name;
      s.acts.push_back(join);
    }
  }
  const int64_t faults = random.Below(8), acts = random.Below(9);
  for (int64_t i = 0; i < faults; ++i) s.faults.push_back(DrawFault(&random, o.sites));
  for (int64_t i = 0; i < acts; ++i) {
    const FaultAct* before = s.acts.empty() ? nullptr : &s.acts.back();
    s.acts.push_back(DrawAct(&random, o.sites, busy, before));
  }
  const int64_t needed = std::max<int64_t>(rounds.minimum(), rounds.start_sites());
  for (FaultAct& a : s.acts) {
    const bool stays = random.Chance(0.4) && sites - static_cast<int64_t>(s.stays_away.size()) > needed;
    if (a.kind == FaultAct::Kind::kLeaveWorker && stays &&
        std::find(s.stays_away.begin(), s.stays_away.end(), a.site) == s.stays_away.end())
      s.stays_away.push_back(a.site);
  }
  for (const Fault& f : s.faults) {
    s.has_duplicates |= f.kind == FaultKind::kDuplicated &&
                        (f.target == FaultTarget::kAny || f.target == FaultTarget::kControl);
  }
  std::stable_sort(s.acts.begin(), s.acts.end(),
                   [](const FaultAct& a, const FaultAct& b) { return a.at < b.at; });
  return s;
}

std::string DescribeAct(const FaultAct& a) {
  static constexpr const char* kNames[] = {"start worker",       "kill worker",
                                           "worker leaves",      "kill coordinator",
                                           "crash after writes", "disk refuses writes",
                                           "NaN in parameters",  "flipped anchor bit",
                                           "session breaks",     "clog"};
  return absl::StrCat(kNames[static_cast<int>(a.kind)], " ", a.site, " at ", absl::FormatDuration(a.at),
                      " + ", a.after_events, " events, length ", absl::FormatDuration(a.length), ", count ",
                      a.count, a.side == FaultSide::kUp ? ", up" : ", down");
}

std::string DescribeSchedule(const FaultSchedule& s) {
  const RoundConfig& r = s.options.run.rounds();
  std::string text = absl::StrCat(
      "seed ", s.seed, ": ", s.options.sites.size(), " sites (", s.at_start.size(), " at the start), ",
      r.total_rounds(), " rounds of ", r.inner_steps_per_round(), " steps, ",
      r.overlap() ? "overlap" : "no overlap", ", ",
      ExchangeConfig::ErrorFeedback_Name(s.options.run.exchange().error_feedback()), ", ",
      ExchangeConfig::Averaging_Name(s.options.run.exchange().averaging()), ", ",
      ExchangeConfig::Weights_Name(s.options.run.exchange().weights()), ", ",
      OuterConfig::Form_Name(s.options.run.outer().form()), ", quorum ", r.quorum(), ", minimum ",
      r.minimum(), ", start sites ", r.start_sites(), ", ", s.options.values, " values, codec ",
      s.options.codec, ", updates ", s.options.run.exchange().update_codec(), "\n");
  for (const Fault& f : s.faults) {
    static constexpr const char* kTargets[] = {"any", "control", "upload", "fetch"};
    absl::StrAppend(&text, "  fault ", std::string(FaultKindName(f.kind)), " of ",
                    kTargets[static_cast<int>(f.target)], f.side == FaultSide::kUp ? " up" : " down",
                    ", site '", f.site, "', ", f.budget, " times, skip ", f.skip, ", length ",
                    absl::FormatDuration(f.length), f.is_undetected ? ", undetected" : "",
                    f.is_breaking ? ", breaking" : "", "\n");
  }
  for (const FaultAct& a : s.acts) absl::StrAppend(&text, "  act ", DescribeAct(a), "\n");
  return text;
}

}  // namespace isthmus
