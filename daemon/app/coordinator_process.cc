#include "daemon/app/coordinator_process.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "daemon/app/loop_call.h"
#include "daemon/app/run_file.h"
#include "daemon/app/run_resolve.h"
#include "daemon/app/shutdown_signal.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/exchange/url.h"
#include "daemon/rpc/grpc_hub.h"
#include "daemon/store/blobs.h"
#include "daemon/store/snapshot.h"
#include "daemon/store/sqlite_ledger.h"

namespace isthmus {
namespace {

// Names a run for ever: when it began, and by which process.
std::string MakeRunId(const std::string& name, Clock* clock) {
  const absl::Time now = clock->Now();
  const uint64_t mixed =
      Mix64(static_cast<uint64_t>(absl::ToUnixNanos(now)) ^ (static_cast<uint64_t>(getpid()) << 40));
  return absl::StrCat(name, "-", absl::FormatTime("%Y%m%d-%H%M%S", now, absl::UTCTimeZone()), "-",
                      absl::StrFormat("%06x", mixed & 0xffffff));
}

// All that a coordinator keeps between its start and the first session.
struct Prepared {
  std::shared_ptr<const TensorTable> table;  // with the ledger, which reads snapshots by it
  std::unique_ptr<DeviceOps> ops;
  std::unique_ptr<SqliteLedger> ledger;
  LedgerState state;
  std::unique_ptr<AnchorKeeper> anchor;
  CoordinatorSettings settings;
};

absl::Status BeginRun(const RunFile& run, const ResolvedRun& resolved, const std::string& init_weights,
                      Clock* clock, Prepared* p) {
  AnchorKeeper first(*p->table, p->ops.get());
  if (init_weights.empty()) {
    first.BeginNew(run.seed());
  } else {
    ISTHMUS_ASSIGN_OR_RETURN(const auto file, FileBlob::Open(init_weights));
    absl::StatusOr<std::vector<float>> weights = ReadWeights(*p->table, *file);
    if (!weights.ok()) return Annotate(weights.status(), init_weights);
    first.BeginWith(*std::move(weights));
  }
  RunRecord record;
  record.run_id = MakeRunId(run.name(), clock);
  record.run_file = run;
  record.layout_digest = p->table->layout().digest();
  record.protocol_version = kProtocolVersion;
  record.codec = resolved.codecs.contribution;
  ISTHMUS_RETURN_IF_ERROR(p->ledger->Begin(record));
  SnapshotInfo info = first.Info();
  info.set_codec(resolved.codecs.snapshot);
  return p->ledger->AddSnapshot(std::move(info), first.Values(),
                                static_cast<int>(run.storage().snapshots_kept()));
}

bool IsOver(const LedgerState& state) {
  const auto is_end = [](const EventRecord& e) { return e.kind() == EventRecord::FINISHED; };
  return (!state.commits.empty() && state.commits.back().is_last()) ||
         std::any_of(state.events.begin(), state.events.end(), is_end);
}

// The run in the state directory goes on with this run file, or says which field forbids it.
absl::Status CheckRestart(const RunFile& run, Prepared* p) {
  ISTHMUS_RETURN_IF_ERROR(CompareForRestart(p->state.run.run_file, run));
  if (p->state.run.protocol_version != kProtocolVersion) {
    return absl::FailedPreconditionError(absl::StrCat("the run was begun with protocol version ",
                                                      p->state.run.protocol_version, ", this program has ",
                                                      kProtocolVersion));
  }
  if (p->state.run.layout_digest != p->table->layout().digest()) {
    return absl::FailedPreconditionError(
        "the run's model layout differs from this program's for the same run file");
  }
  if (IsOver(p->state)) {
    const auto rounds = static_cast<int64_t>(p->state.commits.size());
    ISTHMUS_RETURN_IF_ERROR(CompareForFinishedRun(p->state.run.run_file, run, rounds));
  }
  RunFile changed = run;
  LedgerWrite write;
  write.run_file = &changed;
  ISTHMUS_RETURN_IF_ERROR(p->ledger->Write(write));
  p->state.run.run_file = run;
  return absl::OkStatus();
}

absl::StatusOr<Prepared> Prepare(const CoordinatorOptions& options, Clock* clock, std::ostream& err) {
  std::string warnings;
  ISTHMUS_ASSIGN_OR_RETURN(const RunFile run, LoadRunFile(options.run_file, &warnings));
  err << warnings;
  const ModelShape shape = ModelShapeOf(run.model());
  Prepared p;
  ISTHMUS_ASSIGN_OR_RETURN(TensorTable table, TensorTable::ForModel(shape));
  p.table = std::make_shared<const TensorTable>(std::move(table));
  ISTHMUS_ASSIGN_OR_RETURN(const ResolvedRun resolved, ResolveAuto(run, run.rounds().start_sites()));
  p.ops = MakeCpuDeviceOps();
  SqliteLedgerOptions ledger;
  ledger.directory = options.state_dir;
  ledger.run_name = run.name();
  ISTHMUS_ASSIGN_OR_RETURN(p.ledger, SqliteLedger::Open(ledger, p.table));
  absl::StatusOr<LedgerState> state = p.ledger->Load();
  if (absl::IsNotFound(state.status())) {
    ISTHMUS_RETURN_IF_ERROR(BeginRun(run, resolved, options.init_weights, clock, &p));
    state = p.ledger->Load();
  }
  if (!state.ok()) return state.status();
  p.state = *std::move(state);
  ISTHMUS_RETURN_IF_ERROR(CheckRestart(run, &p));
  p.state.run.run_file.mutable_outer()->set_rate(resolved.outer_rate);
  ExchangeConfig* exchange = p.state.run.run_file.mutable_exchange();
  exchange->set_update_codec(resolved.codecs.update);
  exchange->set_activation_codec(resolved.codecs.activation);
  exchange->set_activation_gradient_codec(resolved.codecs.activation_gradient);
  exchange->set_snapshot_codec(resolved.codecs.snapshot);
  p.anchor = std::make_unique<AnchorKeeper>(*p.table, p.ops.get());
  ISTHMUS_RETURN_IF_ERROR(p.anchor->Recover(p.ledger.get(), p.state));
  p.settings.planned_rounds = resolved.total_rounds;
  return p;
}

// The final weights for people outside the run, written aside and renamed.
absl::Status ExportWeights(const AnchorKeeper& anchor, const std::string& run_id, const std::string& path) {
  const std::string partial = path + ".partial";
  {
    std::ofstream file(partial, std::ios::binary | std::ios::trunc);
    ISTHMUS_RETURN_IF_ERROR(WriteCheckpoint(
        anchor.table(), anchor.anchor(), {{"run_id", run_id}, {"round", absl::StrCat(anchor.stamp().round)}},
        [&](absl::string_view piece) -> absl::Status {
          file.write(piece.data(), static_cast<std::streamsize>(piece.size()));
          return file ? absl::OkStatus()
                      : absl::UnavailableError(absl::StrCat(partial, ": cannot be written"));
        }));
    file.flush();
    if (!file) return absl::ResourceExhaustedError(absl::StrCat(partial, ": cannot be written"));
  }
  if (rename(partial.c_str(), path.c_str()) != 0)
    return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunCoordinatorProcess(const CoordinatorOptions& options, std::ostream& out, std::ostream& err) {
  ShutdownSignal shutdown;
  InitLogging(options.log);
  RealClock clock;
  GrpcHubOptions hub_options;
  ISTHMUS_ASSIGN_OR_RETURN(hub_options.listen, ParseHostPort(options.listen, /*may_be_any=*/true));
  hub_options.rpc.is_insecure_allowed = options.is_insecure;
  ISTHMUS_ASSIGN_OR_RETURN(Prepared prepared, Prepare(options, &clock, err));
  const bool was_over = std::any_of(prepared.state.events.begin(), prepared.state.events.end(),
                                    [](const EventRecord& e) { return e.kind() == EventRecord::FINISHED; });
  const absl::Duration restart_grace = prepared.settings.restart_grace;
  const std::string run_id = prepared.state.run.run_id, run_name = prepared.state.run.run_file.name();

  ThreadLoop loop(&clock);
  std::unique_ptr<GrpcHub> hub;
  auto work = std::make_unique<ThreadRunner>(&loop);
  auto store = std::make_unique<ThreadRunner>(&loop);
  std::unique_ptr<Coordinator> role;
  absl::Status started;
  absl::Status status;  // the loop's, until that ends
  CallOnLoop(&loop, [&] {
    hub = std::make_unique<GrpcHub>(&loop, hub_options);
    Coordinator::Seams seams{&loop, hub.get(), work.get(), store.get(), prepared.ledger.get()};
    role = std::make_unique<Coordinator>(
        seams, prepared.settings, std::move(prepared.state), std::move(prepared.anchor),
        [&] {
          status = ExportWeights(role->anchor(), run_id, options.state_dir + "/final.safetensors");
          if (!status.ok()) return ShutdownSignal::Wake();
          // One that comes back to a finished run stays for workers that have not heard of it.
          const absl::Duration stay = was_over ? restart_grace : absl::ZeroDuration();
          if (options.exits_when_finished) loop.RunAfter(stay, ShutdownSignal::Wake);
        },
        [&](absl::Status why) {
          status = std::move(why);
          ShutdownSignal::Wake();
        });
    started = role->Start();
    if (!started.ok()) return;
    HostPort bound = hub_options.listen;
    bound.port = hub->port();
    const std::string address = bound.ToString();
    out << "listening on " << address << "\n"
        << "run " << run_id << "; workers join with: isthmus worker isthmus://" << address << "/" << run_name
        << " --data FILE" << std::endl;
  });
  if (started.ok()) shutdown.Wait();
  // Tasks first: what they touch belongs to the role.
  CallOnLoop(&loop, [&] { hub->Stop(); });
  work.reset();
  store.reset();
  CallOnLoop(&loop, [&] {
    role.reset();
    hub.reset();
  });
  loop.Stop();
  return started.ok() ? status : started;
}

}  // namespace isthmus
