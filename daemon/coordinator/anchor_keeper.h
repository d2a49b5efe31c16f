// The hub's arithmetic: its own anchor, what it still carries when updates are encoded anew, and the one
// computation of each round's update.
//
// Not thread-safe: every call runs in a task of one TaskRunner. Knows no messages' timing and no sites'
// states.
#ifndef ISTHMUS_DAEMON_COORDINATOR_ANCHOR_KEEPER_H_
#define ISTHMUS_DAEMON_COORDINATOR_ANCHOR_KEEPER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/checked_frame.h"
#include "compression/codec.h"
#include "compression/exponent_history.h"
#include "compression/update.h"
#include "daemon/base/digest.h"
#include "daemon/store/ledger.h"
#include "daemon/training/tensor_table.h"
#include "gpu/device_ops.h"

namespace isthmus {

class AnchorKeeper {
 public:
  // `ops` must outlive the keeper.
  AnchorKeeper(TensorTable table, DeviceOps* ops) : table_(std::move(table)), ops_(ops) {}

  const TensorTable& table() const { return table_; }
  const StateStamp& stamp() const { return stamp_; }
  const std::vector<float>& anchor() const { return anchor_; }

  // Snapshot 0 of a new run.
  void BeginNew(uint64_t seed);
  // Snapshot 0 from given weights, table().layout().total() long.
  void BeginWith(std::vector<float> weights);

  // What was carried after the last commit and is not to be had any more.
  struct LostResidual {
    int64_t round = 0;
    double square_sum = 0;
    std::string why;
  };

  // The anchor after the last commit of `state`: newest snapshot, then the updates after it. DATA_LOSS when
  // the result has not the committed digest or a piece is missing. A residual that is missing or damaged
  // stops nothing: it is forfeited, lost_residual() says so, and it stays forfeited once that is in the
  // ledger (HUB_FORFEITED), whatever is found later.
  absl::Status Recover(Ledger* ledger, const LedgerState& state);

  // Proves a contribution's frame good under `spec`; errors as Codec::Check, RESOURCE_EXHAUSTED never.
  absl::StatusOr<std::shared_ptr<const CheckedFrame>> Check(const std::string& spec,
                                                            absl::string_view frame) const;

  // What the last Recover could not find.
  const std::optional<LostResidual>& lost_residual() const { return lost_residual_; }
  // What the hub carries: the part of the rounds' means that no update has said yet, before the outer rate.
  // Null: nothing so far.
  const std::shared_ptr<const std::vector<float>>& residual() const { return residual_; }

  struct Result {
    std::string update;  // its bytes
    // After it; null: updates are exact. Shared with the keeper.
    std::shared_ptr<const std::vector<float>> residual;
    double residual_square_sum = 0;
    Digest state_digest;                         // of the anchor after it
    std::vector<std::pair<int, int>> left_out;   // (tensor, index of the contribution)
    std::vector<ImplausibleTensor> implausible;  // refused, each with its reason; among left_out too
  };
  // Sums, encodes anew when the record says by which codec, moves the anchor, and describes it. `record`
  // gives weights (in included order), outer step and stamp.
  absl::StatusOr<Result> CommitRound(const CommitRecord& record,
                                     absl::Span<const std::shared_ptr<const CheckedFrame>> frames,
                                     Averaging averaging);

  Digest AnchorDigest() const { return table_.StateDigestOf(stamp_, anchor_, momentum_); }
  SnapshotInfo Info() const;
  SnapshotValues Values() const { return {anchor_, momentum_}; }

 private:
  absl::Status Replay(Ledger* ledger, const CommitRecord& record);
  absl::Status RecoverResidual(Ledger* ledger, const LedgerState& state);
  // The update that goes out for the exact one; the residual after it is the keeper's from then on.
  absl::StatusOr<Update> EncodeAnew(const std::string& codec, const Update& exact);

  const TensorTable table_;
  DeviceOps* const ops_;
  StateStamp stamp_;
  std::vector<float> anchor_, momentum_;
  std::shared_ptr<const std::vector<float>> residual_;  // shared with the write that makes it durable
  std::optional<LostResidual> lost_residual_;
  ExponentHistory exponents_;
  // Of the last round, for the memory they hold.
  Update update_;
  UpdateScratch update_scratch_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_ANCHOR_KEEPER_H_
