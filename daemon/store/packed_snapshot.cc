#include "daemon/store/packed_snapshot.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compression/codec_spec.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

constexpr char kPlain[] = "fp32";

}  // namespace

bool IsPacked(absl::string_view snapshot_codec) {
  return !snapshot_codec.empty() && snapshot_codec != kPlain;
}

absl::Status WritePackedSnapshot(const TensorTable& table, const SnapshotInfo& info,
                                 const SnapshotValues& values, const BlobPacker::Sink& sink) {
  ISTHMUS_ASSIGN_OR_RETURN(const CodecSpec spec, ParseSpecText(info.codec()));
  if (!IsLossless(spec)) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot codec ", info.codec(), " loses bits"));
  }
  BlobPacker packer(SnapshotBytes(table, info, values), std::max(spec.zstd_level, 1), sink);
  ISTHMUS_RETURN_IF_ERROR(
      WriteSnapshot(table, info, values, [&packer](absl::string_view piece) { return packer.Add(piece); }));
  return packer.Finish();
}

absl::StatusOr<std::string> UnpackSnapshot(const TensorTable& table, const SnapshotInfo& info,
                                           absl::string_view packed) {
  // Two arrays of values and their header at most.
  const int64_t most = 8 * table.layout().total() + 1024 * (table.layout().tensors() + int64_t{64});
  if (info.bytes() < 0 || info.bytes() > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("a snapshot of ", info.bytes(), " bytes; this model's have ", most, " at most"));
  }
  return UnpackBlob(packed, info.bytes());
}

}  // namespace isthmus
