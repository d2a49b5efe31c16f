#include "daemon/app/status_command.h"

#include <memory>
#include <utility>

#include "daemon/app/status_follower.h"
#include "daemon/app/status_json.h"
#include "daemon/app/status_table.h"
#include "daemon/base/status.h"
#include "daemon/exchange/url.h"

namespace isthmus {
namespace {

// Home, and clear what is below.
constexpr char kRepaint[] = "\x1b[H\x1b[J";

absl::StatusOr<std::string> Page(const StatusOptions& options, const RunStatus& status) {
  if (!options.is_json) return StatusTable(status, static_cast<int>(options.commits));
  ISTHMUS_ASSIGN_OR_RETURN(std::string json, StatusToJson(status, !options.is_watch));
  return json + "\n";
}

}  // namespace

void AddStatusCommand(CommandLine* line, std::function<int(const StatusOptions&)> run) {
  auto options = std::make_shared<StatusOptions>();
  Command* command = line->Add("status", "Shows how a run stands, what it waits for and why.",
                               [options, run = std::move(run)] { return run(*options); });
  command->Positional("url", &options->url, "isthmus://HOST:PORT/RUN");
  command->Flag("watch", &options->is_watch, "go on until the run is finished");
  command->Flag("json", &options->is_json,
                "one JSON object (with --watch one a line), fields as in status.proto");
  command->Number("commits", &options->commits, 0, 1000000, "how many of the last commits to show");
  command->Duration("give-up-after", &options->give_up_after,
                    "how long to go on trying to reach the coordinator");
  command->Flag("insecure", &options->is_insecure,
                "speak plain text to another machine, on a network that can be trusted");
}

absl::Status ShowStatus(const StatusOptions& options, const StatusWatch& watch, const Clock& clock,
                        bool is_terminal, std::ostream& out, std::ostream& error) {
  ISTHMUS_ASSIGN_OR_RETURN(const RunUrl url, ParseRunUrl(options.url));
  StatusRequest request;
  request.set_run_name(url.run);
  absl::Status shown;
  bool is_first = true;
  const auto show = [&](const RunStatus& status) {
    const absl::StatusOr<std::string> page = Page(options, status);
    shown = page.status();
    if (!page.ok()) return false;
    if (!options.is_json) out << (options.is_watch && is_terminal ? kRepaint : is_first ? "" : "\n");
    is_first = false;
    out << *page << std::flush;
    return options.is_watch && status.phase() != "FINISHED";
  };
  ISTHMUS_RETURN_IF_ERROR(
      FollowStatus(watch, clock, request, options.give_up_after, show,
                   [&](absl::string_view text) { error << "isthmus: " << text << std::endl; }));
  return shown;
}

}  // namespace isthmus
