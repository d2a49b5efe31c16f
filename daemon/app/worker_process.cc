#include "daemon/app/worker_process.h"

#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/app/loop_call.h"
#include "daemon/app/run_data.h"
#include "daemon/app/run_resolve.h"
#include "daemon/app/shutdown_signal.h"
#include "daemon/base/status.h"
#include "daemon/exchange/url.h"
#include "daemon/rpc/grpc_link.h"
#include "daemon/training/torch_trainer.h"
#include "daemon/worker/worker.h"

namespace isthmus {
namespace {

absl::StatusOr<std::string> SiteName(const WorkerOptions& options) {
  if (!options.site.empty()) return options.site;
  char host[256] = {};
  if (gethostname(host, sizeof(host) - 1) != 0 || host[0] == '\0') {
    return absl::InvalidArgumentError("this machine has no host name; say --site NAME");
  }
  return std::string(host);
}

// What can be found wrong before a coordinator is waited for and the run file is known.
absl::Status CheckDataFile(const std::string& path) {
  struct stat info;
  if (access(path.c_str(), R_OK) != 0 || stat(path.c_str(), &info) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": no such data file, or not readable"));
  }
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("data file ", path, " is not a regular file"));
  if (info.st_size == 0) return absl::InvalidArgumentError(absl::StrCat("data file ", path, " is empty"));
  return absl::OkStatus();
}

absl::StatusOr<Replica::Parts> MakeReplicaParts(const WorkerOptions& options, const RunFile& run) {
  const ModelShape shape = ModelShapeOf(run.model());
  Replica::Parts parts;
  ISTHMUS_ASSIGN_OR_RETURN(parts.table, TensorTable::ForModel(shape));
  ISTHMUS_ASSIGN_OR_RETURN(parts.data, OpenRunData(options.data, run));
  TorchOptions torch;
  torch.threads = static_cast<int>(options.threads);
  // Overwritten by the snapshot that every joiner downloads.
  const std::vector<float> zeros(parts.table.layout().total(), 0.0f);
  ISTHMUS_ASSIGN_OR_RETURN(parts.trainer,
                           TorchTrainer::Create(shape, InnerOptimizerOf(run.inner()), torch, zeros));
  return parts;
}

WorkerSettings SettingsOf(const WorkerOptions& options, std::string site, std::string run_name) {
  WorkerSettings s;
  s.seed = DigestOf(absl::string_view(site)).low ^ static_cast<uint64_t>(getpid());
  s.site = std::move(site);
  s.run_name = std::move(run_name);
  s.max_tokens_per_second = static_cast<double>(options.max_tokens_per_second);
  s.give_up_after = options.give_up_after;
  s.flip_anchor_bit_after_round = options.flip_anchor_bit_after_round;
  return s;
}

}  // namespace

absl::Status RunWorkerProcess(const WorkerOptions& options) {
  ShutdownSignal shutdown;
  InitLogging(options.log);
  ISTHMUS_ASSIGN_OR_RETURN(const RunUrl url, ParseRunUrl(options.url));
  ISTHMUS_ASSIGN_OR_RETURN(const std::string site, SiteName(options));
  ISTHMUS_RETURN_IF_ERROR(CheckDataFile(options.data));
  GrpcLinkOptions link_options;
  link_options.coordinator = url.coordinator;
  link_options.rpc.is_insecure_allowed = options.is_insecure;
  link_options.upload_bytes_per_second = static_cast<double>(options.upload_bytes_per_second);

  RealClock clock;
  ThreadLoop loop(&clock);
  auto compute = std::make_unique<ThreadRunner>(&loop);
  const std::unique_ptr<DeviceOps> ops = MakeCpuDeviceOps();
  std::unique_ptr<GrpcLink> link;
  std::unique_ptr<Worker> worker;
  absl::Status status;
  bool has_ended = false;
  CallOnLoop(&loop, [&] {
    absl::StatusOr<std::unique_ptr<GrpcLink>> made = GrpcLink::Create(&loop, link_options);
    if (!made.ok()) {
      status = made.status();
      has_ended = true;
      return;
    }
    link = *std::move(made);
    worker = std::make_unique<Worker>(
        Worker::Seams{&loop, link.get(), compute.get(), ops.get()}, SettingsOf(options, site, url.run),
        [&options](const RunFile& run) { return MakeReplicaParts(options, run); },
        [&](absl::Status end) {
          status = std::move(end);
          has_ended = true;
          ShutdownSignal::Wake();
        });
    worker->Start();
  });
  bool is_over = has_ended;
  while (!is_over) {
    if (shutdown.Wait()) loop.Post([&] { worker->Leave("a signal"); });
    CallOnLoop(&loop, [&] { is_over = has_ended; });
  }
  compute.reset();  // waits for the running task, which touches the worker's replica
  CallOnLoop(&loop, [&] {
    worker.reset();
    link.reset();
  });
  loop.Stop();
  return status;
}

}  // namespace isthmus
