// The learning comparison as a program of its own, with the real trainer.
//   learning_bench_main grid|agreement DATA RESULTS TOKENS SEQUENCES [FORM …]
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"
#include "daemon/training/learning_bench.h"
#include "daemon/training/torch_trainer.h"

namespace isthmus {
namespace {

int Main(int argc, char** argv) {
  if (argc < 6) {
    std::fprintf(stderr, "usage: %s grid|agreement DATA RESULTS TOKENS SEQUENCES [FORM ...]\n", argv[0]);
    return 2;
  }
  RealClock clock;
  LearningBenchOptions options;
  options.data_path = argv[2];
  options.results_path = argv[3];
  options.clock = &clock;
  options.report = [](absl::string_view line) { std::fprintf(stderr, "%s\n", std::string(line).c_str()); };
  options.make_trainer = [&](absl::Span<const float> initial) -> absl::StatusOr<std::unique_ptr<Trainer>> {
    auto trainer = TorchTrainer::Create(options.shape, {}, {}, initial);
    if (!trainer.ok()) return trainer.status();
    return std::unique_ptr<Trainer>(*std::move(trainer));
  };
  if (std::string(argv[1]) == "agreement") options = AgreementWithStudy(std::move(options));
  options.base.tokens = std::atoll(argv[4]);
  options.base.sequences = std::atoll(argv[5]);
  if (argc > 6) {
    std::vector<LearningForm> forms;
    for (int i = 6; i < argc; ++i) {
      for (LearningForm f : options.forms) {
        if (LearningFormName(f) == argv[i]) forms.push_back(f);
      }
    }
    options.forms = forms;
  }
  const auto table = RunLearningBench(options);
  if (!table.ok()) {
    std::fprintf(stderr, "%s\n", table.status().ToString().c_str());
    return 1;
  }
  std::printf("%s", table->c_str());
  return 0;
}

}  // namespace
}  // namespace isthmus

int main(int argc, char** argv) { return isthmus::Main(argc, argv); }
