// A snapshot as it travels under a codec (ExchangeConfig.snapshot_codec). Pure functions.
#ifndef ISTHMUS_DAEMON_STORE_PACKED_SNAPSHOT_H_
#define ISTHMUS_DAEMON_STORE_PACKED_SNAPSHOT_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "daemon/store/packed_blob.h"
#include "daemon/store/snapshot.h"
#include "daemon/training/tensor_table.h"
#include "protos/records.pb.h"

namespace isthmus {

// Whether snapshots of this codec have a packed form: all but "fp32" and none given.
bool IsPacked(absl::string_view snapshot_codec);

// The packed form of what WriteSnapshot gives. INVALID_ARGUMENT when info.codec is not a lossless one, or as
// WriteSnapshot; the sink's status otherwise.
absl::Status WritePackedSnapshot(const TensorTable& table, const SnapshotInfo& info,
                                 const SnapshotValues& values, const BlobPacker::Sink& sink);

// The plain bytes of a packed snapshot of which `info` was told. INVALID_ARGUMENT: no model of this table has
// a snapshot of so many bytes, or as UnpackBlob.
absl::StatusOr<std::string> UnpackSnapshot(const TensorTable& table, const SnapshotInfo& info,
                                           absl::string_view packed);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_STORE_PACKED_SNAPSHOT_H_
