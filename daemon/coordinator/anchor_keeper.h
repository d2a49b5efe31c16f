// The hub's arithmetic: its own anchor, and the one computation of each round's update.
//
// Not thread-safe: every call runs in a task of one TaskRunner. Knows no messages' timing and no sites'
// states.
#ifndef ISTHMUS_DAEMON_COORDINATOR_ANCHOR_KEEPER_H_
#define ISTHMUS_DAEMON_COORDINATOR_ANCHOR_KEEPER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
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

  // The anchor after the last commit of `state`: newest snapshot, then the updates after it. DATA_LOSS when
  // the result has not the committed digest or a piece is missing.
  absl::Status Recover(Ledger* ledger, const LedgerState& state);

  // Reads a contribution's frame under `spec`; errors as Codec::Decode, RESOURCE_EXHAUSTED never.
  absl::StatusOr<std::shared_ptr<const DecodedFrame>> Decode(const std::string& spec,
                                                             absl::string_view frame) const;

  struct Result {
    std::string update;                          // its bytes
    Digest state_digest;                         // of the anchor after it
    std::vector<std::pair<int, int>> left_out;   // (tensor, index of the contribution)
    std::vector<ImplausibleTensor> implausible;  // refused, each with its reason; among left_out too
  };
  // Sums, moves the anchor, and describes it. `record` gives weights (in included order), outer step and
  // stamp.
  absl::StatusOr<Result> CommitRound(const CommitRecord& record,
                                     absl::Span<const std::shared_ptr<const DecodedFrame>> frames,
                                     Averaging averaging);

  Digest AnchorDigest() const { return table_.StateDigestOf(stamp_, anchor_, momentum_); }
  SnapshotInfo Info() const;
  SnapshotValues Values() const { return {anchor_, momentum_}; }

 private:
  absl::Status Replay(Ledger* ledger, const CommitRecord& record);

  const TensorTable table_;
  DeviceOps* const ops_;
  StateStamp stamp_;
  std::vector<float> anchor_, momentum_;
  ExponentHistory exponents_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_ANCHOR_KEEPER_H_
