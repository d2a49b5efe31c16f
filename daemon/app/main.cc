// The one executable: its subcommands, and what each is made of.
#include <unistd.h>

#include <iostream>
#include <memory>

#include "daemon/app/bench_command.h"
#include "daemon/app/command_line.h"
#include "daemon/app/coordinator_command.h"
#include "daemon/app/coordinator_process.h"
#include "daemon/app/exit_code.h"
#include "daemon/app/report_command.h"
#include "daemon/app/sample_command.h"
#include "daemon/app/sim/sim_plan.h"
#include "daemon/app/sim_command.h"
#include "daemon/app/status_command.h"
#include "daemon/app/validate_command.h"
#include "daemon/app/worker_command.h"
#include "daemon/app/worker_process.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/exchange/url.h"
#include "daemon/rpc/status_client.h"

extern char** environ;

namespace isthmus {
namespace {

// Watches the coordinator at `url`. INVALID_ARGUMENT: the URL; FAILED_PRECONDITION: plain text to another
// machine unasked.
absl::StatusOr<std::unique_ptr<StatusClient>> Reach(const std::string& url, bool is_insecure, Clock* clock) {
  ISTHMUS_ASSIGN_OR_RETURN(const RunUrl parsed, ParseRunUrl(url));
  RpcOptions options;
  options.is_insecure_allowed = is_insecure;
  return StatusClient::Create(clock, parsed.coordinator, options);
}

StatusWatch WatchOf(StatusClient* client) {
  return
      [client](const StatusRequest& request, const std::function<bool(const RunStatus&)>& seen,
               const std::function<bool(const absl::Status&)>& lost) { client->Watch(request, seen, lost); };
}

int RunStatusCommand(const StatusOptions& options) {
  RealClock clock;
  const auto client = Reach(options.url, options.is_insecure, &clock);
  if (!client.ok()) return Conclude(client.status());
  const bool is_terminal = isatty(STDOUT_FILENO) != 0;
  return Conclude(ShowStatus(options, WatchOf(client->get()), clock, is_terminal, std::cout, std::cerr));
}

int RunReportCommand(const ReportOptions& options) {
  RealClock clock;
  std::unique_ptr<StatusClient> client;
  if (!options.url.empty()) {
    auto reached = Reach(options.url, options.is_insecure, &clock);
    if (!reached.ok()) return Conclude(reached.status());
    client = *std::move(reached);
  }
  return Conclude(Report(options, WatchOf(client.get()), clock, std::cout, std::cerr));
}

int RunSampleCommand(const SampleOptions& options) {
  const auto text = SampleFromFile(options);
  if (text.ok()) std::cout << *text << std::endl;
  return Conclude(text.status());
}

int Main(int argc, char** argv) {
  CommandLine line("Trains one model across sites that are joined by narrow links.");
  AddCoordinatorCommand(&line, [](const CoordinatorOptions& options) {
    return Conclude(RunCoordinatorProcess(options, std::cout, std::cerr));
  });
  AddWorkerCommand(&line, [](const WorkerOptions& options) { return Conclude(RunWorkerProcess(options)); });
  AddStatusCommand(&line, RunStatusCommand);
  AddReportCommand(&line, RunReportCommand);
  AddValidateCommand(&line,
                     [](const ValidateOptions& options) { return Conclude(Validate(options, std::cout)); });
  AddSampleCommand(&line, RunSampleCommand);
  AddSimCommand(&line, [](const SimFlags& flags) {
    return Conclude(RunSimFile(flags.file, static_cast<uint64_t>(flags.seed), flags.is_json, std::cout));
  });
  AddBenchCommands(&line);
  return line.Run(argc, argv, environ, std::cout, std::cerr);
}

}  // namespace
}  // namespace isthmus

int main(int argc, char** argv) { return isthmus::Main(argc, argv); }
