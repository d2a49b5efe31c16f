// A whole run in one process on fake time: the real roles, cores and codecs over SimTransport, ToyTrainer and
// MemLedger. What `isthmus sim` and the fault tests are made of.
//
// Not thread-safe. Processes can be killed and started again at any event.
#ifndef ISTHMUS_DAEMON_APP_SIM_SIM_RUN_H_
#define ISTHMUS_DAEMON_APP_SIM_SIM_RUN_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/coordinator/coordinator.h"
#include "daemon/exchange/sim_transport.h"
#include "daemon/store/mem_ledger.h"
#include "daemon/training/toy_trainer.h"
#include "daemon/worker/worker.h"
#include "gpu/device_ops.h"
#include "protos/run.pb.h"

namespace isthmus {

struct SimSite {
  std::string name;
  double steps_per_second = 1;
  LinkProfile link;
  double max_tokens_per_second = 0;
  int64_t flip_anchor_bit_after_round = 0;  // planted defect of this site's worker; 0: none
};

struct SimRunOptions {
  RunFile run;                 // with every default filled in; its model section is not used
  int64_t values = 64;         // parameters of the toy problem
  int64_t sequences = 100000;  // in the (made up) shared data
  std::string codec = "topk(k=8,block=4096)|levels(bits=1)|gaps|zstd(1)";
  int64_t planned_rounds = 10;
  uint64_t seed = 1;
  std::vector<SimSite> sites;
  double toy_noise = 0.25;
  double toy_site_shift = 0;
  absl::Duration worker_gives_up_after = absl::Hours(10);
  CoordinatorSettings coordinator;  // planned_rounds is the one above
  // Arithmetic of one process ("coordinator" or a site's name, and its number); null: the CPU reference.
  std::function<std::unique_ptr<DeviceOps>(const std::string& process, int64_t id)> make_ops;
  // What stands between a coordinator and its ledger, for planted defects; null: nothing.
  std::function<std::unique_ptr<Ledger>(std::unique_ptr<Ledger> ledger)> wrap_ledger;
};

class SimRun {
 public:
  // Nothing runs until processes are started.
  explicit SimRun(SimRunOptions options);
  ~SimRun();

  // OK, or what the coordinator process ended with before it could listen.
  absl::Status StartCoordinator();
  void KillCoordinator();
  void StartWorker(const std::string& site);
  void KillWorker(const std::string& site);
  void LeaveWorker(const std::string& site);
  // From its next step on.
  void SetSpeed(const std::string& site, double steps_per_second);

  // Runs events until the run is finished or `limit` of fake time has passed since now; true when finished.
  bool RunUntilFinished(absl::Duration limit);
  // One event; false when nothing is left to happen.
  bool RunNext() { return loop_.RunNext(); }

  struct WorkerProcess {
    int64_t id = 0;  // no two processes of a run share one
    std::unique_ptr<DeviceOps> ops;
    std::unique_ptr<WorkerLink> link;
    std::unique_ptr<Worker> worker;
    std::unique_ptr<SimRunner> compute;  // dies before the worker
    ToyTrainer* trainer = nullptr;       // owned by the worker's replica; null before it is built
    absl::Status ended = absl::UnknownError("running");
  };
  struct CoordinatorProcess {
    int64_t id = 0;
    std::unique_ptr<DeviceOps> ops;
    std::unique_ptr<Hub> hub;
    std::unique_ptr<Ledger> ledger;
    std::unique_ptr<Coordinator> role;
    std::unique_ptr<SimRunner> work, store;  // die before the role
    bool is_finished = false;
    absl::Status failed;
  };

  FakeClock& clock() { return clock_; }
  SimLoop& loop() { return loop_; }
  SimNetwork& network() { return network_; }
  MemDisk& disk() { return *disk_; }
  const TensorTable& table() const { return *table_; }
  const SimRunOptions& options() const { return options_; }
  // Null while it is dead.
  CoordinatorProcess* coordinator() { return coordinator_.get(); }
  WorkerProcess* worker(const std::string& site);
  const std::map<std::string, std::unique_ptr<WorkerProcess>>& workers() const { return workers_; }
  bool is_finished() const { return coordinator_ != nullptr && coordinator_->is_finished; }
  // The anchor every run of these options begins with.
  std::vector<float> FirstAnchor() const { return table_->InitialValues(options_.run.seed()); }

 private:
  std::unique_ptr<DeviceOps> MakeOps(const std::string& process, int64_t id) const;
  absl::StatusOr<LedgerState> LoadOrBegin(Ledger* ledger, DeviceOps* ops);
  absl::StatusOr<Replica::Parts> MakeReplica(const SimSite& site, WorkerProcess* process);

  SimRunOptions options_;
  FakeClock clock_;
  SimLoop loop_;
  SimNetwork network_;
  std::shared_ptr<MemDisk> disk_;
  std::shared_ptr<const TensorTable> table_;
  int64_t last_id_ = 0;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  std::map<std::string, std::unique_ptr<WorkerProcess>> workers_;
};

// A run file for simulations: every default filled in, short heartbeats, `rounds` rounds of `steps` inner
// steps.
RunFile SimRunFile(int64_t rounds, int64_t steps);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_SIM_SIM_RUN_H_
