#include "gpu/frame_sizes.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/codec.h"
#include "compression/frame_format.h"
#include "compression/stream_sizes.h"
#include "compression/update_bound.h"

namespace isthmus {
namespace {

double EntropyBits(const std::array<int64_t, 256>& counts) {
  double total = 0, bits = 0;
  for (int64_t count : counts) total += static_cast<double>(count);
  for (int64_t count : counts) {
    if (count > 0) bits += static_cast<double>(count) * std::log2(total / static_cast<double>(count));
  }
  return bits;
}

}  // namespace

absl::Status FrameSizeSum::Add(const Layout& layout, absl::Span<const float> anchor,
                               absl::Span<const float> parameters) {
  const auto codec = ParseCodecSpec(absl::StrCat("topk(k=", k_, ")|levels(bits=", value_bits_, ")"));
  if (!codec.ok()) return codec.status();
  const absl::StatusOr<std::string> frame = (*codec)->Encode(layout, anchor, parameters);
  if (!frame.ok()) return frame.status();
  const absl::StatusOr<FrameSizes> sizes = SizesOfFrame(*frame);
  if (!sizes.ok()) return sizes.status();
  const int64_t most = 8 * layout.total() + 8;  // of any stream
  const absl::StatusOr<FrameBody> body =
      OpenFrame(layout, (*codec)->spec(), FrameLimits{most, most, most}, *frame);
  if (!body.ok()) return body.status();
  for (char gap : body->gaps) ++gap_bytes_[static_cast<uint8_t>(gap)];
  const absl::StatusOr<DecodedFrame> decoded = (*codec)->Decode(layout, *frame);
  if (!decoded.ok()) return decoded.status();
  const absl::StatusOr<UpdateBound> bound = BoundOfFrames(layout, {{&*decoded, 64}});
  if (!bound.ok()) return bound.status();

  int64_t kept = 0;
  for (const DecodedTensor& tensor : decoded->tensors) kept += static_cast<int64_t>(tensor.mantissas.size());
  sum_.positions += sizes->positions;
  sum_.values += sizes->values;
  sum_.levels += sizes->levels;
  sum_.rest += sizes->table + sizes->head;
  sum_.kept += kept;
  sum_.parameters += layout.total();
  sum_.bound += bound->positions;
  const double whole_bound = bound->positions + static_cast<double>(kept * value_bits_);
  if (kept > 0) {
    sum_.worst_ratio = std::max(sum_.worst_ratio, 8 * static_cast<double>(sizes->total()) / whole_bound);
  }
  return absl::OkStatus();
}

absl::StatusOr<FrameSizeRow> FrameSizeSum::Row() const {
  if (sum_.kept == 0) return absl::FailedPreconditionError("no value is other than 0");
  const auto kept = static_cast<double>(sum_.kept);
  const auto bits_each = [kept](int64_t bytes) { return 8.0 * static_cast<double>(bytes) / kept; };
  FrameSizeRow row;
  row.k = k_;
  row.value_bits = value_bits_;
  row.positions = bits_each(sum_.positions);
  row.positions_bound = sum_.bound / kept;
  row.gap_entropy = EntropyBits(gap_bytes_) / kept;
  row.values = bits_each(sum_.values);
  row.levels = bits_each(sum_.levels);
  row.rest = bits_each(sum_.rest);
  row.bytes = static_cast<double>(sum_.positions + sum_.values + sum_.levels + sum_.rest) /
              static_cast<double>(sum_.parameters);
  row.worst_ratio = sum_.worst_ratio;
  row.limit = k_ >= 64 && value_bits_ < 3 ? 1.04 : 1.06;
  return row;
}

std::vector<FrameSizeSum> AllFrameSizeSums(bool is_short) {
  std::vector<FrameSizeSum> sums;
  for (int k : {16, 32, 64, 128, 256, 512}) {
    for (int bits = 1; bits <= (k == 64 ? 3 : is_short ? 1 : 2); ++bits) sums.emplace_back(k, bits);
  }
  return sums;
}

absl::StatusOr<RealFrameSizes> MeasureRealFrames(const RealDifferences& differences) {
  if (differences.names.empty())
    return absl::InvalidArgumentError(absl::StrCat(differences.set, ": no differences"));
  const Layout& layout = differences.layout;
  const std::vector<float> zeros(layout.total());
  std::vector<FrameSizeSum> sums = AllFrameSizeSums(false);
  for (size_t i = 0; i < differences.names.size(); ++i) {
    const std::string& name = differences.names[i];
    const absl::StatusOr<std::vector<float>> values = differences.load(i);
    if (!values.ok()) return values.status();
    if (values->size() != zeros.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": ", values->size(), " values, not ", zeros.size()));
    }
    for (FrameSizeSum& sum : sums) {
      const absl::Status s = sum.Add(layout, *values, zeros);
      if (!s.ok()) return absl::Status(s.code(), absl::StrCat(name, ": ", s.message()));
    }
  }
  RealFrameSizes sizes;
  sizes.parameters = layout.total();
  sizes.frames = static_cast<int64_t>(differences.names.size());
  for (const FrameSizeSum& sum : sums) {
    const absl::StatusOr<FrameSizeRow> row = sum.Row();
    if (!row.ok())
      return absl::Status(row.status().code(), absl::StrCat(differences.set, ": ", row.status().message()));
    sizes.rows.push_back(*row);
  }
  return sizes;
}

}  // namespace isthmus
