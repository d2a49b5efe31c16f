#include "daemon/app/sim/sim_run.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"

namespace isthmus {
namespace {

constexpr int64_t kVocabulary = 256;
constexpr int64_t kContext = 4;

// Sequences without a file: tokens drawn from the sequence's number.
class SimData : public TrainingData {
 public:
  explicit SimData(int64_t sequences) : sequences_(sequences) {}

  int64_t training_sequences() const override { return sequences_; }
  Digest digest() const override { return {0x515d, static_cast<uint64_t>(sequences_)}; }

  absl::StatusOr<Batch> TrainingBatch(absl::Span<const int64_t> sequences) const override {
    Batch b;
    b.sequences = static_cast<int64_t>(sequences.size());
    b.length = kContext;
    for (int64_t s : sequences) {
      if (s < 0 || s >= sequences_) return absl::InvalidArgumentError(absl::StrCat("no sequence ", s));
      for (int64_t i = 0; i <= kContext; ++i)
        b.tokens.push_back(static_cast<int32_t>(RandomAt(1, s, i) % kVocabulary));
    }
    return b;
  }

  std::vector<Batch> HeldOutBatches(bool whole) const override { return {*TrainingBatch({0, 1, 2, 3})}; }

  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }

 private:
  int64_t sequences_;
};

}  // namespace

RunFile SimRunFile(int64_t rounds, int64_t steps) {
  RunFile run;
  run.set_name("sim");
  run.set_seed(1);
  run.mutable_model()->set_vocabulary(kVocabulary);
  run.mutable_model()->set_context(kContext);
  run.mutable_data()->set_mode(DataConfig::SHARED);
  run.mutable_data()->set_sequences_per_step(4);
  run.mutable_rounds()->set_inner_steps_per_round(steps);
  run.mutable_rounds()->set_total_rounds(rounds);
  run.mutable_rounds()->mutable_longest_round()->set_seconds(120);
  run.mutable_rounds()->set_overlap(true);
  run.mutable_rounds()->set_start_sites(1);
  run.mutable_rounds()->set_dense_last_round(true);
  run.mutable_exchange()->set_error_feedback(ExchangeConfig::CARRIED);
  run.mutable_exchange()->set_update_codec("exact");
  run.mutable_exchange()->set_activation_codec("bf16");
  run.mutable_exchange()->set_activation_gradient_codec("bf16");
  run.mutable_exchange()->set_snapshot_codec("fp32");
  run.mutable_exchange()->set_carry_decay(1);
  run.mutable_exchange()->set_averaging(ExchangeConfig::PEERS);
  run.mutable_exchange()->set_weights(ExchangeConfig::TOKENS_PER_STEP);
  run.mutable_outer()->set_form(OuterConfig::PLAIN);
  run.mutable_outer()->set_rate(1);
  run.mutable_inner()->set_peak_rate(0.1);
  run.mutable_inner()->set_warmup_fraction(0.05);
  run.mutable_inner()->set_floor_fraction(0.05);
  run.mutable_evaluation()->set_every_rounds(1);
  run.mutable_membership()->mutable_heartbeat()->set_seconds(1);
  run.mutable_membership()->mutable_suspect_after()->set_seconds(3);
  run.mutable_storage()->set_snapshots_kept(3);
  return run;
}

SimRun::SimRun(SimRunOptions options)
    : options_(std::move(options)),
      loop_(&clock_),
      network_(&loop_),
      disk_(std::make_shared<MemDisk>()),
      table_(std::make_shared<const TensorTable>(ToyTensorTable(options_.values))) {
  for (const SimSite& site : options_.sites) network_.SetLinkProfile(site.name, site.link);
}

SimRun::~SimRun() {
  while (!workers_.empty()) KillWorker(workers_.begin()->first);
  KillCoordinator();
}

std::unique_ptr<DeviceOps> SimRun::MakeOps(const std::string& process, int64_t id) const {
  return options_.make_ops ? options_.make_ops(process, id) : MakeCpuDeviceOps();
}

absl::StatusOr<LedgerState> SimRun::LoadOrBegin(Ledger* ledger, DeviceOps* ops) {
  absl::StatusOr<LedgerState> state = ledger->Load();
  // A process that died while it began left no snapshot: the run begins again.
  if (!absl::IsNotFound(state.status()) && (!state.ok() || !state->snapshots.empty())) return state;
  RunRecord run;
  run.run_id = absl::StrCat("sim-", options_.seed);
  run.run_file = options_.run;
  run.layout_digest = table_->layout().digest();
  run.protocol_version = kProtocolVersion;
  run.codec = options_.codec;
  if (absl::Status s = ledger->Begin(run); !s.ok() && !absl::IsAlreadyExists(s)) return s;
  AnchorKeeper first(*table_, ops);
  first.BeginNew(options_.run.seed());
  SnapshotInfo info = first.Info();
  info.set_codec(options_.run.exchange().snapshot_codec());
  if (absl::Status s = ledger->AddSnapshot(std::move(info), first.Values(), 3); !s.ok()) return s;
  return ledger->Load();
}

absl::Status SimRun::StartCoordinator() {
  auto process = std::make_unique<CoordinatorProcess>();
  CoordinatorProcess* p = process.get();
  p->hub = network_.MakeHub();
  p->id = ++last_id_;
  p->ops = MakeOps("coordinator", p->id);
  p->ledger = std::make_unique<MemLedger>(disk_, table_);
  if (options_.wrap_ledger) p->ledger = options_.wrap_ledger(std::move(p->ledger));
  absl::StatusOr<LedgerState> state = LoadOrBegin(p->ledger.get(), p->ops.get());
  if (!state.ok()) return state.status();
  auto keeper = std::make_unique<AnchorKeeper>(*table_, p->ops.get());
  if (absl::Status s = keeper->Recover(p->ledger.get(), *state); !s.ok()) return s;
  auto quick = [](absl::string_view) { return absl::Milliseconds(5); };
  p->work = std::make_unique<SimRunner>(&loop_, quick);
  p->store = std::make_unique<SimRunner>(&loop_, quick);
  CoordinatorSettings settings = options_.coordinator;
  settings.planned_rounds = options_.planned_rounds;
  Coordinator::Seams seams{&loop_, p->hub.get(), p->work.get(), p->store.get(), p->ledger.get()};
  p->role = std::make_unique<Coordinator>(
      seams, settings, *std::move(state), std::move(keeper), [p] { p->is_finished = true; },
      [p](absl::Status why) { p->failed = std::move(why); });
  coordinator_ = std::move(process);
  return coordinator_->role->Start();
}

void SimRun::KillCoordinator() {
  if (coordinator_ == nullptr) return;
  network_.KillHub();
  coordinator_->work.reset();
  coordinator_->store.reset();
  coordinator_.reset();
}

SimRun::WorkerProcess* SimRun::worker(const std::string& site) {
  auto it = workers_.find(site);
  return it == workers_.end() ? nullptr : it->second.get();
}

absl::StatusOr<Replica::Parts> SimRun::MakeReplica(const SimSite& site, WorkerProcess* process) {
  ToyOptions toy;
  toy.vocabulary = kVocabulary;
  toy.noise = options_.toy_noise;
  toy.site_shift = options_.toy_site_shift;
  toy.site_seed = DigestOf(absl::string_view(site.name)).low;
  const std::vector<float> initial(table_->layout().total(), 0.0f);
  absl::StatusOr<std::unique_ptr<ToyTrainer>> trainer = ToyTrainer::Create(*table_, toy, initial);
  if (!trainer.ok()) return trainer.status();
  process->trainer = trainer->get();
  Replica::Parts parts;
  parts.table = *table_;
  parts.trainer = *std::move(trainer);
  parts.data = std::make_unique<SimData>(options_.sequences);
  return parts;
}

void SimRun::StartWorker(const std::string& site) {
  KillWorker(site);
  const SimSite* spec = nullptr;
  for (const SimSite& s : options_.sites) {
    if (s.name == site) spec = &s;
  }
  auto process = std::make_unique<WorkerProcess>();
  WorkerProcess* p = process.get();
  p->id = ++last_id_;
  p->ops = MakeOps(site, p->id);
  p->link = network_.MakeLink(site);
  p->compute = std::make_unique<SimRunner>(&loop_, [spec](absl::string_view kind) {
    const double steps = kind == "step" ? 1 : kind == "evaluate" ? 0.5 : 0.1;
    return absl::Seconds(steps / spec->steps_per_second);
  });
  WorkerSettings settings;
  settings.site = site;
  settings.run_name = options_.run.name();
  settings.max_tokens_per_second = spec->max_tokens_per_second;
  settings.seed = RandomAt(options_.seed, 7, DigestOf(absl::string_view(site)).low);
  settings.flip_anchor_bit_after_round = spec->flip_anchor_bit_after_round;
  settings.give_up_after = options_.worker_gives_up_after;
  Worker::Seams seams{&loop_, p->link.get(), p->compute.get(), p->ops.get()};
  p->worker = std::make_unique<Worker>(
      seams, settings, [this, spec, p](const RunFile&) { return MakeReplica(*spec, p); },
      [p](absl::Status status) { p->ended = std::move(status); });
  workers_[site] = std::move(process);
  p->worker->Start();
}

void SimRun::KillWorker(const std::string& site) {
  auto it = workers_.find(site);
  if (it == workers_.end()) return;
  network_.KillLink(site);
  it->second->compute.reset();
  workers_.erase(it);
}

void SimRun::LeaveWorker(const std::string& site) {
  if (WorkerProcess* p = worker(site)) p->worker->Leave("asked to");
}

void SimRun::SetSpeed(const std::string& site, double steps_per_second) {
  for (SimSite& s : options_.sites) {
    if (s.name == site) s.steps_per_second = steps_per_second;
  }
}

bool SimRun::RunUntilFinished(absl::Duration limit) {
  const absl::Time deadline = clock_.SteadyNow() + limit;
  while (!is_finished() && clock_.SteadyNow() < deadline) {
    if (!loop_.RunNext()) return false;
  }
  return is_finished();
}

}  // namespace isthmus
