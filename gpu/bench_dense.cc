#include "gpu/bench_dense.h"

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compression/codec_spec.h"
#include "compression/group_codec.h"
#include "compression/simd_path.h"

namespace isthmus {
namespace {

constexpr double kTarget = 0.5;

}  // namespace

absl::StatusOr<std::vector<SpeedRow>> DenseSpeedRows(const CodecBenchOptions& options, const Layout& layout,
                                                     absl::Span<const float> anchor,
                                                     absl::Span<const float> parameters,
                                                     absl::Span<float> copy) {
  std::vector<SpeedRow> rows;
  GroupScratch encode_scratch;
  FrameBody decode_scratch;
  std::string frame;
  DecodedFrame decoded;
  absl::Status status;
  const double bytes = static_cast<double>(sizeof(float) * copy.size());
  const auto against = [&] { std::memcpy(copy.data(), parameters.data(), sizeof(float) * copy.size()); };
  const auto measure = [&](const char* stored, int level, SimdPath path, double target) {
    absl::StatusOr<CodecSpec> spec = ParseSpecText(absl::StrCat("dense(bits=8)|zstd(", level, ")"));
    SpeedRow encode{absl::StrCat("int8 encode, ", stored), SimdPathName(path), 1, "memcpy"};
    SpeedRow decode{absl::StrCat("int8 decode, ", stored), SimdPathName(path), 1, "memcpy"};
    encode.target = decode.target = target;
    if (HasSimdPath(path)) {
      const GroupCodec codec(*spec, {path, 1});
      const auto do_encode = [&] {
        status.Update(codec.EncodeInto(layout, anchor, parameters, &encode_scratch, &frame));
      };
      const auto do_decode = [&] {
        status.Update(codec.DecodeInto(layout, frame, &decode_scratch, &decoded));
      };
      do_encode();  // both once for their memory
      do_decode();
      MeasureSpeed(options, bytes, do_encode, against, &encode);
      MeasureSpeed(options, bytes, do_decode, against, &decode);
    }
    rows.push_back(encode);
    rows.push_back(decode);
  };
  measure("as it is", 0, SimdPath::kAvx2, kTarget);
  measure("as it is", 0, SimdPath::kAvx512, kTarget);
  measure("zstd(1)", 1, BestSimdPath(), 0);
  if (!status.ok()) return status;
  return rows;
}

}  // namespace isthmus
