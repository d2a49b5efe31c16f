// Runs one fault schedule again and tells everything: bazel run //daemon/app/sim:replay -- --seed=123
//   --to=N   runs seeds from --seed up to N, quietly, and names those that fail
//   --quiet  acts and verdict only
#include <cstdio>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "daemon/app/sim/schedule_run.h"
#include "daemon/base/logging.h"

namespace {

bool ReadNumber(absl::string_view argument, absl::string_view flag, uint64_t* value) {
  return absl::ConsumePrefix(&argument, flag) && absl::SimpleAtoi(argument, value);
}

int RunMany(uint64_t from, uint64_t to) {
  int failed = 0;
  int64_t events = 0, restarts = 0, strikes = 0, aborted = 0;
  for (uint64_t seed = from; seed <= to; ++seed) {
    const isthmus::ScheduleOutcome o = isthmus::RunSchedule(isthmus::MakeFaultSchedule(seed), nullptr);
    events += o.events;
    restarts += o.restarts;
    strikes += o.strikes;
    aborted += o.status.rounds_aborted();
    if (o.violations.empty()) continue;
    ++failed;
    std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), o.violations[0].second.c_str());
    std::fflush(stdout);
  }
  std::printf(
      "%d of %llu schedules failed; %lld events, %lld faults struck, %lld coordinator restarts, %lld "
      "aborts\n",
      failed, static_cast<unsigned long long>(to - from + 1), static_cast<long long>(events),
      static_cast<long long>(strikes), static_cast<long long>(restarts), static_cast<long long>(aborted));
  return failed > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seed = 1, to = 0;
  bool is_quiet = false;
  for (int i = 1; i < argc; ++i) {
    const absl::string_view argument = argv[i];
    if (argument == "--quiet") {
      is_quiet = true;
    } else if (!ReadNumber(argument, "--seed=", &seed) && !ReadNumber(argument, "--to=", &to)) {
      std::fprintf(stderr, "usage: replay --seed=N [--to=M] [--quiet]\n");
      return 2;
    }
  }
  const bool is_many = to >= seed;
  isthmus::InitLogging(isthmus::LogForm::kText,
                       is_quiet || is_many ? isthmus::LogLevel::kError : isthmus::LogLevel::kInfo);
  if (is_many) return RunMany(seed, to);
  const isthmus::FaultSchedule schedule = isthmus::MakeFaultSchedule(seed);
  std::fprintf(stderr, "%s", isthmus::DescribeSchedule(schedule).c_str());
  const isthmus::ScheduleOutcome outcome = isthmus::RunSchedule(
      schedule, [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  if (outcome.violations.empty()) {
    std::printf(
        "seed %llu: all invariants hold: %lld rounds committed, %lld aborted, %lld events, %lld faults "
        "struck\n",
        static_cast<unsigned long long>(seed), static_cast<long long>(outcome.status.rounds_committed()),
        static_cast<long long>(outcome.status.rounds_aborted()), static_cast<long long>(outcome.events),
        static_cast<long long>(outcome.strikes));
    return 0;
  }
  std::printf("%s\n", outcome.Text(seed).c_str());
  return 1;
}
