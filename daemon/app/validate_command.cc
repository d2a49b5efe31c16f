#include "daemon/app/validate_command.h"

#include <memory>
#include <utility>

#include "daemon/app/human_units.h"
#include "daemon/app/run_data.h"
#include "daemon/app/run_defaults.h"
#include "daemon/app/run_file.h"
#include "daemon/app/run_resolve.h"
#include "daemon/base/status.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

void AddValidateCommand(CommandLine* line, std::function<int(const ValidateOptions&)> run) {
  auto options = std::make_shared<ValidateOptions>();
  Command* command = line->Add("validate", "Reports every mistake in a run file at once.",
                               [options, run = std::move(run)] { return run(*options); });
  command->Positional("run_file", &options->run_file, "the run, as protobuf text", Presence::kOptional);
  command->Text("data", &options->data, "also check this file as a worker would");
  command->Flag("show-defaults", &options->show_defaults,
                "print every setting with its default and its meaning");
}

absl::Status Validate(const ValidateOptions& options, std::ostream& out) {
  if (options.show_defaults) out << ShowDefaults();
  if (options.run_file.empty()) {
    if (options.show_defaults) return absl::OkStatus();
    return absl::InvalidArgumentError("validate needs a run file, or --show-defaults");
  }
  std::string warnings;
  ISTHMUS_ASSIGN_OR_RETURN(const RunFile run, LoadRunFile(options.run_file, &warnings));
  out << warnings;
  if (!warnings.empty() && warnings.back() != '\n') out << "\n";
  ISTHMUS_ASSIGN_OR_RETURN(const TensorTable table, TensorTable::ForModel(ModelShapeOf(run.model())));
  ISTHMUS_ASSIGN_OR_RETURN(const ResolvedRun resolved, ResolveAuto(run, run.rounds().start_sites()));
  out << options.run_file << ": valid: run \"" << run.name() << "\", "
      << HumanCount(static_cast<double>(table.layout().total())) << " parameters, " << resolved.total_rounds
      << " rounds, " << resolved.codecs.contribution << ", outer rate " << resolved.outer_rate << "\n";
  if (!options.data.empty()) {
    ISTHMUS_ASSIGN_OR_RETURN(const auto data, OpenRunData(options.data, run));
    out << options.data << ": valid: " << HumanCount(static_cast<double>(data->training_sequences()))
        << " training sequences\n";
  }
  return absl::OkStatus();
}

}  // namespace isthmus
