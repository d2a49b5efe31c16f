#include "daemon/app/bench_flags.h"

#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace isthmus {
namespace {

// Refuses the first of `strangers` that was given; `why` is said before its name.
absl::Status RefuseAny(const std::set<std::string>& given, absl::string_view why,
                       std::initializer_list<const char*> strangers) {
  for (const char* stranger : strangers) {
    if (given.count(stranger) > 0) return absl::InvalidArgumentError(absl::StrCat(why, " --", stranger));
  }
  return absl::OkStatus();
}

absl::Status CheckDumpFlags(const LearningBenchFlags& flags) {
  absl::Status status = RefuseAny(
      flags.given, "bench learning: --dump-differences makes one run and takes no", {"seeds", "json-out"});
  if (flags.form.empty()) {
    status.Update(RefuseAny(flags.given,
                            "bench learning: --dump-differences of a group, without --form, takes no",
                            {"agreement", "tokens", "width", "layers", "kept"}));
  } else {
    status.Update(
        RefuseAny(flags.given, "bench learning: --dump-differences with --form takes no", {"group"}));
  }
  return status;
}

}  // namespace

absl::Status CheckCodecFlags(const CodecBenchFlags& flags) {
  if (flags.spec.empty()) return absl::OkStatus();
  return RefuseAny(
      flags.given, "bench codec: --spec leaves out streams and speeds, and so takes no",
      {"check", "differences", "size-parameters", "speed-parameters", "sizes-json-out", "speed-json-out"});
}

absl::Status CheckLearningFlags(const LearningBenchFlags& flags) {
  const auto& given = flags.given;
  absl::Status status;
  if (flags.is_list) {
    status.Update(RefuseAny(
        given, "bench learning: --list runs nothing and takes no",
        {"agreement", "form", "tokens", "width", "layers", "kept", "json-out", "dump-differences"}));
  }
  if (flags.is_matrix) {
    status.Update(RefuseAny(given, "bench learning: --matrix has runs of its own and takes no",
                            {"agreement", "form", "tokens", "width", "layers", "kept"}));
  }
  if (flags.is_agreement) {
    status.Update(RefuseAny(given, "bench learning: --agreement has settings of its own and takes no",
                            {"tokens", "sequences", "seeds", "width", "layers", "kept"}));
    if (flags.form == "dense-nesterov") {
      status.Update(absl::InvalidArgumentError("bench learning: --agreement has no --form dense-nesterov"));
    }
  }
  if (!flags.dump.empty()) {
    status.Update(CheckDumpFlags(flags));
  } else if (!flags.is_list && !flags.is_matrix) {
    status.Update(RefuseAny(
        given, "bench learning: without --matrix, --list or --dump-differences there is no", {"group"}));
    status.Update(RefuseAny(given, "bench learning: without --matrix there is no", {"json-out"}));
  }
  if (!flags.json_out.empty() && flags.json_out == flags.results) {
    status.Update(absl::InvalidArgumentError(
        absl::StrCat("bench learning: --json-out would write over the runs in --results ", flags.results)));
  }
  return status;
}

}  // namespace isthmus
