#include "daemon/app/bench_command.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/app/exit_code.h"
#include "daemon/app/interrupt_watch.h"
#include "daemon/app/output_path.h"
#include "daemon/app/real_differences.h"
#include "daemon/app/round_bench.h"
#include "daemon/app/round_bench_report.h"
#include "daemon/app/run_data.h"
#include "daemon/app/run_file.h"
#include "daemon/app/run_resolve.h"
#include "daemon/app/train_bench.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/training/difference_study.h"
#include "daemon/training/learning_bench.h"
#include "daemon/training/learning_matrix.h"
#include "daemon/training/torch_top_k.h"
#include "daemon/training/torch_trainer.h"
#include "gpu/bench_codec.h"
#include "gpu/bench_sizes.h"
#include "gpu/bench_speed.h"
#include "gpu/frame_sizes.h"

namespace isthmus {
namespace {

constexpr double kBenchRate = 1e-4;  // the speed does not depend on it

absl::Status WriteJson(const std::string& path, const std::string& json) {
  if (path.empty()) return absl::OkStatus();
  std::ofstream file(path, std::ios::trunc);
  file << json << std::flush;
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

// What every study of learning needs, over the model in `book`.
void FillBook(const LearningBenchFlags& flags, Clock* clock, std::ostream& progress,
              LearningBookOptions* book) {
  book->data_path = flags.data;
  book->results_path = flags.results;
  book->clock = clock;
  book->report = [&progress](absl::string_view text) { progress << text << std::endl; };
  const ModelShape shape = book->shape;
  book->make_trainer = [shape](absl::Span<const float> initial) -> absl::StatusOr<std::unique_ptr<Trainer>> {
    ISTHMUS_ASSIGN_OR_RETURN(std::unique_ptr<Trainer> trainer, TorchTrainer::Create(shape, {}, {}, initial));
    return trainer;
  };
}

// The model of the comparison: wider or deeper in the proportions of the one that is not said otherwise.
ModelShape ComparedShape(const LearningBenchFlags& flags) {
  ModelShape shape;
  shape.feed_forward = shape.feed_forward * flags.width / shape.width;
  shape.width = flags.width;
  shape.layers = flags.layers;
  return shape;
}

absl::Status BenchLearningMatrix(const LearningBenchFlags& flags, std::ostream& out, std::ostream& progress) {
  RealClock clock;
  LearningMatrixOptions matrix;
  matrix.shape = LearningMatrixShape();
  matrix.seeds = flags.seeds;
  for (LearningCell& cell : matrix.cells) {
    // The steps stay; tokens follow.
    cell.c.tokens = cell.c.tokens / cell.c.sequences * flags.sequences;
    cell.c.sequences = flags.sequences;
  }
  if (!flags.groups.empty()) matrix.only = absl::StrSplit(flags.groups, ',');
  FillBook(flags, &clock, progress, &matrix);
  if (flags.is_list) {
    ISTHMUS_ASSIGN_OR_RETURN(const std::string cells, ListLearningCells(matrix));
    out << cells;
    return absl::OkStatus();
  }
  if (!flags.dump.empty()) return DumpLearningDifferences(matrix, flags.dump);
  ISTHMUS_ASSIGN_OR_RETURN(const LearningMatrixReport report, RunLearningMatrix(matrix));
  out << report.table;
  return WriteJson(flags.json_out, report.json);
}

}  // namespace

absl::Status BenchCodec(const CodecBenchFlags& flags, std::ostream& out) {
  ISTHMUS_RETURN_IF_ERROR(CheckCodecFlags(flags));
  for (const std::string& path : {flags.json_out, flags.sizes_json_out, flags.speed_json_out})
    ISTHMUS_RETURN_IF_ERROR(CheckOutputPath(path));
  RealFrameSizes real;
  if (!flags.differences.empty()) {  // first, so that a bad folder is said at once
    ISTHMUS_ASSIGN_OR_RETURN(const RealDifferences differences, OpenRealDifferences(flags.differences));
    ISTHMUS_ASSIGN_OR_RETURN(real, MeasureRealFrames(differences));
  }
  RealClock clock;
  CodecBenchOptions options;
  if (!flags.spec.empty()) options.specs = {flags.spec};
  options.parameters = flags.parameters;
  options.repeats = static_cast<int>(flags.repeats);
  options.seed = static_cast<uint64_t>(flags.seed);
  options.now = [&clock] { return clock.SteadyNow(); };
  options.framework_top_k = [](absl::Span<const float> anchor, absl::Span<const float> parameters, int k) {
    return TorchTopK(anchor, parameters, k).status();
  };
  ISTHMUS_ASSIGN_OR_RETURN(const CodecBenchReport report, RunCodecBench(options));
  out << CodecBenchTable(report);
  if (absl::Status s = WriteJson(flags.json_out, CodecBenchJson(report)); !s.ok()) return s;
  if (!flags.spec.empty()) return absl::OkStatus();  // the other tables have codecs of their own
  SizeBenchOptions size_options;
  size_options.seed = options.seed;
  size_options.frame_parameters = flags.size_parameters;
  ISTHMUS_ASSIGN_OR_RETURN(SizeReport sizes, RunSizeBench(size_options));
  sizes.real = std::move(real);
  out << "\n" << SizeTable(sizes);
  if (absl::Status s = WriteJson(flags.sizes_json_out, SizeJson(sizes)); !s.ok()) return s;
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  options.parameters = flags.speed_parameters;
  ISTHMUS_ASSIGN_OR_RETURN(const SpeedReport speed, RunSpeedBench(options, threads));
  out << "\n" << SpeedTable(speed);
  if (absl::Status s = WriteJson(flags.speed_json_out, SpeedJson(speed)); !s.ok()) return s;
  if (!flags.is_check) return absl::OkStatus();
  absl::Status too_large = CheckSizes(sizes);
  const absl::Status too_slow = CheckSpeed(speed);
  if (too_large.ok() || too_slow.ok()) {
    too_large.Update(too_slow);
    return too_large;
  }
  return absl::FailedPreconditionError(absl::StrCat(too_large.message(), "; ", too_slow.message()));
}

absl::Status BenchTrain(const TrainBenchFlags& options, std::ostream& out) {
  ISTHMUS_RETURN_IF_ERROR(CheckOutputPath(options.json_out));
  ISTHMUS_ASSIGN_OR_RETURN(const RunFile run, LoadRunFile(options.run_file, nullptr));
  ISTHMUS_ASSIGN_OR_RETURN(const auto data, OpenRunData(options.data, run));
  const ModelShape shape = ModelShapeOf(run.model());
  ISTHMUS_ASSIGN_OR_RETURN(const TensorTable table, TensorTable::ForModel(shape));
  TorchOptions torch;
  torch.threads = static_cast<int>(options.threads);
  ISTHMUS_ASSIGN_OR_RETURN(const auto trainer, TorchTrainer::Create(shape, InnerOptimizerOf(run.inner()),
                                                                    torch, table.InitialValues(run.seed())));
  RealClock clock;
  ISTHMUS_ASSIGN_OR_RETURN(const TrainBenchResult result,
                           MeasureTraining(trainer.get(), *data, clock, run.data().sequences_per_step(),
                                           kBenchRate, absl::Seconds(options.seconds)));
  if (options.is_rate_only) {
    out << static_cast<int64_t>(result.tokens_per_second()) << "\n";
  } else {
    out << TrainBenchTable(result);
  }
  return WriteJson(options.json_out, TrainBenchJson(result) + "\n");
}

absl::Status BenchLearning(const LearningBenchFlags& options, std::ostream& out, std::ostream& progress) {
  ISTHMUS_RETURN_IF_ERROR(CheckLearningFlags(options));
  if (options.is_list) return BenchLearningMatrix(options, out, progress);
  if (options.data.empty() || options.results.empty())
    return absl::InvalidArgumentError("bench learning: --data and --results are needed");
  ISTHMUS_RETURN_IF_ERROR(CheckOutputPath(options.json_out));
  if (options.is_matrix || (!options.dump.empty() && options.form.empty()))
    return BenchLearningMatrix(options, out, progress);
  RealClock clock;
  LearningBenchOptions bench;
  bench.shape = ComparedShape(options);
  FillBook(options, &clock, progress, &bench);
  if (options.is_agreement) {
    bench = AgreementWithStudy(std::move(bench));
  } else {
    bench.base.tokens = options.tokens;
    bench.base.sequences = options.sequences;
    if (options.kept != 0) bench.base.kept_per_block = options.kept;
    bench.seeds = options.seeds;
  }
  if (!options.form.empty()) {
    std::vector<LearningForm> forms;
    for (LearningForm form : bench.forms) {
      if (LearningFormName(form) == options.form) forms.push_back(form);
    }
    bench.forms = forms;
  }
  if (!options.dump.empty()) {
    bench.base.form = bench.forms.at(0);
    return DumpDifferencesOf(bench, bench.base, options.dump);
  }
  ISTHMUS_ASSIGN_OR_RETURN(const std::string table, RunLearningBench(bench));
  out << table;
  return absl::OkStatus();
}

absl::Status BenchDifferences(const DifferenceBenchFlags& options, std::ostream& out) {
  std::vector<int64_t> kept;
  for (absl::string_view word : absl::StrSplit(options.kept, ',')) {
    int64_t k = 0;
    if (!absl::SimpleAtoi(word, &k))
      return absl::InvalidArgumentError(absl::StrCat("--kept: \"", word, "\" is no number"));
    kept.push_back(k);
  }
  ISTHMUS_ASSIGN_OR_RETURN(const DifferenceSet set, OpenDifferences(options.folder));
  ISTHMUS_ASSIGN_OR_RETURN(const DifferenceStudy study, StudyDifferences(set, kept));
  out << DifferenceTable(study);
  return absl::OkStatus();
}

absl::Status BenchRound(const RoundBenchFlags& flags, std::ostream& out, std::ostream& progress) {
  ISTHMUS_RETURN_IF_ERROR(CheckOutputPath(flags.json_out));
  InterruptWatch watch;
  RealClock clock;
  RoundBenchOptions options;
  options.data = flags.data;
  options.repeats = flags.repeats;
  options.rounds = flags.rounds;
  options.part = flags.part;
  options.shape.inner_steps = flags.inner_steps;
  options.shape.seed = flags.seed;
  options.progress = [&progress](absl::string_view text) { progress << "bench: " << text << std::endl; };
  ISTHMUS_ASSIGN_OR_RETURN(const RoundBenchReport report, RunRoundBench(options, &clock, &watch));
  out << RoundBenchTable(report);
  return WriteJson(flags.json_out, RoundBenchJson(report));
}

void AddBenchCommands(CommandLine* line) {
  Command* bench = line->Add("bench", "Measures this machine; prints a table and writes JSON.", nullptr);
  auto codec = std::make_shared<CodecBenchFlags>();
  Command* command = bench->Add("codec", "Bytes and speed of the codecs on seeded values.", nullptr);
  command->Runs([codec, command] {
    codec->given = command->Given();
    return Conclude(BenchCodec(*codec, std::cout));
  });
  command->Text("spec", &codec->spec, "measure only this codec, none of the tables below");
  command->Number("parameters", &codec->parameters, 4096, int64_t{1} << 33,
                  "values to encode, for the bytes");
  command->Number("speed-parameters", &codec->speed_parameters, 4096, int64_t{1} << 33,
                  "values to encode and apply, for the speeds");
  command->Number("repeats", &codec->repeats, 1, 1000, "the best of so many is reported");
  command->Number("seed", &codec->seed, 0, INT64_MAX, "of the values");
  command->Flag("check", &codec->is_check,
                "fail when a speed falls short of its target by over a tenth, or bytes pass their limit");
  command->Text("json-out", &codec->json_out, "also write the figures to this file");
  command->Number("size-parameters", &codec->size_parameters, 4096, int64_t{1} << 33,
                  "values in a frame whose streams are held against their bounds");
  command->Text(
      "differences", &codec->differences,
      "also hold frames of the differences in this folder, of bench learning, against their bounds");
  command->Text("sizes-json-out", &codec->sizes_json_out, "those of bytes against bounds to this one");
  command->Text("speed-json-out", &codec->speed_json_out, "and those of the speeds to this one");

  auto train = std::make_shared<TrainBenchFlags>();
  command = bench->Add("train", "Inner steps and tokens per second of one worker.",
                       [train] { return Conclude(BenchTrain(*train, std::cout)); });
  command->Positional("run_file", &train->run_file, "model and batch");
  command->Text("data", &train->data, "file to train on", Presence::kRequired);
  command->Real("seconds", &train->seconds, 0, 3600, "how long");
  command->Number("threads", &train->threads, 1, 1024, "threads of the matrix library");
  command->Flag("rate-only", &train->is_rate_only, "print tokens per second and nothing else");
  command->Text("json-out", &train->json_out, "also write the figures to this file");

  auto learning = std::make_shared<LearningBenchFlags>();
  command = bench->Add("learning", "Held-out loss of the forms of exchange at equal tokens.", nullptr);
  command->Runs([learning, command] {
    learning->given = command->Given();
    return Conclude(BenchLearning(*learning, std::cout, std::cerr));
  });
  command->Text("data", &learning->data, "plain text to train on; needed");
  command->Text("results", &learning->results,
                "JSON lines, one a run; runs that are in it are not made again; needed");
  command->Number("tokens", &learning->tokens, 1, INT64_MAX, "of all sites together");
  command->Number("sequences", &learning->sequences, 1, 4096, "in an inner step of a site");
  command->Number("seeds", &learning->seeds, 1, 100, "the first also chooses the learning rate");
  command->Choice("form", &learning->form, {"synchronous", "dense", "dense-nesterov", "sparse"},
                  "only this form");
  command->Number("width", &learning->width, 8, 65536, "of the model whose forms are compared");
  command->Number("layers", &learning->layers, 1, 1024, "likewise");
  command->Number("kept", &learning->kept, 0, 4096,
                  "values of a block of 4096 that its sparse form sends; 0: as the rounds ask");
  command->Flag("agreement", &learning->is_agreement, "run the case of the reference study instead");
  command->Flag("matrix", &learning->is_matrix,
                "study the settings of the exchange instead, on a small model");
  command->Text("group", &learning->groups, "of the matrix only these groups, separated by commas");
  command->Flag("list", &learning->is_list, "show the cells of the matrix and run nothing");
  command->Text("json-out", &learning->json_out, "also write the matrix's figures to this file");
  command->Text(
      "dump-differences", &learning->dump,
      "make only one run, that of --form or the first of --group, and leave what its sites encode in "
      "this folder");

  auto differences = std::make_shared<DifferenceBenchFlags>();
  command =
      bench->Add("differences", "Tails, energy and positions of differences that bench learning dumped.",
                 [differences] { return Conclude(BenchDifferences(*differences, std::cout)); });
  command->Positional("folder", &differences->folder, "with an index.txt");
  command->Text("kept", &differences->kept, "values of a block of 4096, separated by commas");

  auto round = std::make_shared<RoundBenchFlags>();
  command = bench->Add("round", "What kills and narrow uplinks cost a run of three sites on this machine.",
                       [round] { return Conclude(BenchRound(*round, std::cout, std::cerr)); });
  command->Text("data", &round->data, "plain text to train on; made up when absent");
  command->Number("repeats", &round->repeats, 1, 1000, "kills of a worker, and of the coordinator");
  command->Number("rounds", &round->rounds, 8, 100000, "of each run that is watched for waiting or bytes");
  command->Number("inner-steps", &round->inner_steps, 1, 100000, "of a round; more make longer rounds");
  command->Number("seed", &round->seed, 0, INT64_MAX, "of the weights, and of when and whom to kill");
  command->Choice("part", &round->part, {"all", "worker-kill", "coordinator-kill", "waiting", "bytes"},
                  "measure only this");
  command->Text("json-out", &round->json_out, "also write the figures to this file");
}

}  // namespace isthmus
