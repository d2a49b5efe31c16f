#include "daemon/app/bench_fleet.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "daemon/base/status.h"
#include "daemon/exchange/url.h"
#include "google/protobuf/text_format.h"

namespace isthmus {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(50);
constexpr absl::Duration kAskTimeout = absl::Seconds(2);
constexpr char kListening[] = "listening on ";

std::string LastLineOf(const std::string& path) {
  std::ifstream file(path);
  std::string line, last;
  while (std::getline(file, line)) {
    if (!line.empty()) last = line;
  }
  return last.empty() ? "it said nothing" : last;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TemporaryFolder>> TemporaryFolder::Make() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  std::string path = (error ? std::filesystem::path("/tmp") : parent) / "isthmus-bench-XXXXXX";
  if (mkdtemp(path.data()) == nullptr)
    return absl::UnavailableError(absl::StrCat(path, ": ", std::strerror(errno)));
  return std::unique_ptr<TemporaryFolder>(new TemporaryFolder(path));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

absl::Status WriteWholeFile(const std::string& path, absl::string_view text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

BenchFleet::BenchFleet(FleetOptions options, const std::string& folder, Clock* clock, InterruptWatch* watch)
    : options_(std::move(options)),
      folder_(absl::StrCat(folder, "/", options_.run.name())),
      clock_(clock),
      watch_(watch),
      sites_(options_.sites) {}

std::string BenchFleet::NameOf(int64_t index) {
  return absl::StrCat("site-", std::string(1, static_cast<char>('a' + index)));
}

std::string BenchFleet::LogPath(const std::string& name) const {
  return absl::StrCat(folder_, "/", name, ".log");
}

absl::StatusOr<std::unique_ptr<ChildProcess>> BenchFleet::Launch(std::vector<std::string> arguments,
                                                                 const std::string& name,
                                                                 bool is_output_read) {
  ChildOptions child;
  child.program = options_.program;
  child.arguments = std::move(arguments);
  child.environment = {"OMP_NUM_THREADS=1"};  // several share the machine
  child.log_path = LogPath(name);
  child.is_output_read = is_output_read;
  return ChildProcess::Start(child);
}

absl::Status BenchFleet::Start() {
  std::error_code error;
  std::filesystem::create_directory(folder_, error);
  std::string text;
  google::protobuf::TextFormat::PrintToString(options_.run, &text);
  ISTHMUS_RETURN_IF_ERROR(WriteWholeFile(folder_ + "/run.textproto", text));
  ISTHMUS_RETURN_IF_ERROR(StartCoordinator());
  for (int64_t i = 0; i < options_.sites; ++i) ISTHMUS_RETURN_IF_ERROR(StartSite(i));
  return absl::OkStatus();
}

absl::Status BenchFleet::StartCoordinator() {
  const std::string any = HostPort{"127.0.0.1", 0}.ToString();
  ISTHMUS_ASSIGN_OR_RETURN(coordinator_,
                           Launch({"coordinator", folder_ + "/run.textproto", "--listen",
                                   address_.empty() ? any : address_, "--state-dir", folder_ + "/state"},
                                  "coordinator", /*is_output_read=*/true));
  ISTHMUS_RETURN_IF_ERROR(AwaitListening());
  ISTHMUS_ASSIGN_OR_RETURN(const HostPort bound, ParseHostPort(address_, /*may_be_any=*/false));
  // A new one each time: the old connection would first have to find out that it is broken.
  ISTHMUS_ASSIGN_OR_RETURN(client_, StatusClient::Create(clock_, bound, {}));
  return absl::OkStatus();
}

absl::Status BenchFleet::AwaitListening() {
  const absl::Time deadline = clock_->SteadyNow() + options_.patience;
  std::string said;
  while (said.find('\n') == std::string::npos) {
    ISTHMUS_ASSIGN_OR_RETURN(const bool is_readable, watch_->Wait(coordinator_->output(), absl::Seconds(1)));
    if (clock_->SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("the coordinator does not listen after ", absl::FormatDuration(options_.patience)));
    }
    if (!is_readable) continue;
    char piece[256];
    const ssize_t got = read(coordinator_->output(), piece, sizeof(piece));
    if (got > 0) said.append(piece, static_cast<size_t>(got));
    if (got <= 0) {
      coordinator_->Kill();
      return CheckAlive("coordinator", coordinator_.get());
    }
  }
  absl::string_view line = absl::string_view(said).substr(0, said.find('\n'));
  if (!absl::ConsumePrefix(&line, kListening)) {
    return absl::InternalError(absl::StrCat("the coordinator said '", line, "' instead of where it listens"));
  }
  address_ = std::string(line);
  return absl::OkStatus();
}

absl::Status BenchFleet::StartSite(int64_t index) {
  const std::string url = absl::StrCat("isthmus://", address_, "/", options_.run.name());
  ISTHMUS_ASSIGN_OR_RETURN(
      sites_[index], Launch({"worker", url, "--data", options_.data, "--site", NameOf(index),
                             "--upload-bytes-per-second", absl::StrCat(options_.upload_bytes_per_second)},
                            NameOf(index), /*is_output_read=*/false));
  return absl::OkStatus();
}

absl::Status BenchFleet::CheckAlive(const std::string& name, ChildProcess* process) const {
  if (process == nullptr || !process->HasEnded()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("process ", name, " of run ", options_.run.name(),
                                          " has ended: ", LastLineOf(LogPath(name))));
}

absl::Status BenchFleet::CheckAllAlive() const {
  ISTHMUS_RETURN_IF_ERROR(CheckAlive("coordinator", coordinator_.get()));
  for (int64_t i = 0; i < options_.sites; ++i) {
    if (sites_[i] == nullptr || !sites_[i]->HasEnded()) continue;
    // Workers end by themselves when the run is over.
    const absl::StatusOr<RunStatus> status = client_->Ask({}, kAskTimeout);
    if (status.ok() && status->phase() == "FINISHED") continue;
    return CheckAlive(NameOf(i), sites_[i].get());
  }
  return absl::OkStatus();
}

absl::StatusOr<RunStatus> BenchFleet::Ask(bool all_commits) {
  StatusRequest request;
  request.set_run_name(options_.run.name());
  request.set_all_commits(all_commits);
  return client_->Ask(request, kAskTimeout);
}

absl::StatusOr<RunStatus> BenchFleet::Await(const std::string& what,
                                            const std::function<bool(const RunStatus&)>& is_enough) {
  absl::Time deadline = clock_->SteadyNow() + options_.patience;
  std::string waiting_for = "an answer from the coordinator";
  int64_t committed = -1;
  while (true) {
    absl::StatusOr<RunStatus> status = Ask(/*all_commits=*/false);
    if (status.ok() && is_enough(*status)) return status;
    if (status.ok()) waiting_for = status->waiting_for();
    if (status.ok() && status->rounds_committed() > committed) {
      committed = status->rounds_committed();
      deadline = clock_->SteadyNow() + options_.patience;
    }
    ISTHMUS_RETURN_IF_ERROR(CheckAllAlive());
    if (clock_->SteadyNow() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          what, " of run ", options_.run.name(), " did not come, and no round was committed for ",
          absl::FormatDuration(options_.patience), "; the run waits for ", waiting_for));
    }
    ISTHMUS_RETURN_IF_ERROR(Pause(kAskEvery));
  }
}

absl::Status BenchFleet::Pause(absl::Duration length) { return watch_->Wait(-1, length).status(); }

}  // namespace isthmus
