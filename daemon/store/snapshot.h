// Snapshots and checkpoints as safetensors files: the anchor under its Hugging Face names, the outer momentum
// as "momentum.<name>", and round, schedule step, rates and digests as metadata.
//
// A snapshot is what a run restarts and catches up from; a checkpoint is weights for people outside it.
// Reading treats the bytes as hostile. Pure functions, thread-safe.
#ifndef ISTHMUS_DAEMON_STORE_SNAPSHOT_H_
#define ISTHMUS_DAEMON_STORE_SNAPSHOT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/exchange/transport.h"
#include "daemon/store/ledger.h"
#include "daemon/training/tensor_table.h"
#include "protos/records.pb.h"

namespace isthmus {

// Takes the next piece of a file; a failure ends the writing.
using ByteSink = std::function<absl::Status(absl::string_view piece)>;

struct Snapshot {
  SnapshotInfo info;
  SnapshotValues values;
};

// Bytes WriteSnapshot gives.
int64_t SnapshotBytes(const TensorTable& table, const SnapshotInfo& info, const SnapshotValues& values);

// Writes piece by piece, so that a large snapshot is never in memory twice. `info.bytes` and
// `info.has_momentum` are not read: the values say. INVALID_ARGUMENT when the values do not fit the table;
// the sink's status otherwise.
absl::Status WriteSnapshot(const TensorTable& table, const SnapshotInfo& info, const SnapshotValues& values,
                           const ByteSink& sink);
absl::StatusOr<std::string> EncodeSnapshot(const TensorTable& table, const SnapshotInfo& info,
                                           const SnapshotValues& values);

// INVALID_ARGUMENT: malformed, or another model's (layout digest, a tensor named). DATA_LOSS: the values do
// not give the state digest the snapshot states (not checked when it states none). `info.bytes` is filled in.
absl::StatusOr<Snapshot> ReadSnapshot(const TensorTable& table, const BlobSource& file);
absl::StatusOr<Snapshot> DecodeSnapshot(const TensorTable& table, absl::string_view bytes);

// Weights only, with `notes` as metadata, for Hugging Face's readers. Errors as WriteSnapshot.
absl::Status WriteCheckpoint(const TensorTable& table, absl::Span<const float> values,
                             const std::map<std::string, std::string>& notes, const ByteSink& sink);

// Weights of a checkpoint made here or elsewhere (F32 or BF16), other tensors in it ignored.
// INVALID_ARGUMENT: malformed, or a tensor missing or of another shape or type, named.
absl::StatusOr<std::vector<float>> ReadWeights(const TensorTable& table, const BlobSource& file);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_SNAPSHOT_H_
