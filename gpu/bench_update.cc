#include "gpu/bench_update.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compression/simd_path.h"
#include "compression/update.h"
#include "gpu/device_ops.h"
#include "gpu/memory_speed.h"

namespace isthmus {

absl::StatusOr<std::vector<SpeedRow>> UpdateSpeedRows(const CodecBenchOptions& options, const Layout& layout,
                                                      absl::Span<const CheckedFrame> frames,
                                                      absl::Span<float> copy) {
  const std::unique_ptr<DeviceOps> ops = MakeCpuDeviceOps();
  std::vector<WeightedFrame> weighted;
  for (const CheckedFrame& frame : frames) weighted.push_back({nullptr, 64, {}, &frame});
  const absl::StatusOr<Update> update = ops->Sum(layout, weighted, Averaging::kPeers);
  if (!update.ok()) return update.status();
  UpdateScratch hub, worker;
  Update decoded;
  std::string bytes;
  absl::Status status;
  const auto encode = [&] { bytes = EncodeUpdate(layout, *update, &hub); };
  const auto decode_and_apply = [&] {
    status.Update(DecodeUpdate(layout, bytes, &worker, &decoded));
    if (status.ok()) status = ops->ApplyToAnchor(layout, decoded, OuterStep(), copy, absl::Span<float>());
  };
  encode();  // both once for their memory
  decode_and_apply();
  const double array_bytes = static_cast<double>(sizeof(float) * copy.size());
  const auto against = [&] { ReadAndWriteInPlace(copy); };
  const char* path = SimdPathName(BestSimdPath());
  std::vector<SpeedRow> rows = {
      {absl::StrCat("encode update of ", frames.size()), path, 1, "read and write in place"},
      {absl::StrCat("decode update of ", frames.size(), ", apply"), path, 1, "read and write in place"}};
  MeasureSpeed(options, array_bytes, encode, against, &rows[0]);
  MeasureSpeed(options, array_bytes, decode_and_apply, against, &rows[1]);
  if (!status.ok()) return status;
  return rows;
}

}  // namespace isthmus
