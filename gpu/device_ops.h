// The three operations that touch every parameter, behind one seam: CPU reference and CUDA.
//
// All results are the same bits on every implementation (ROUNDS §8): integers, then IEEE fp32/fp64
// operations one by one, round to nearest even, no contraction, no flush-to-zero.
#ifndef ISTHMUS_GPU_DEVICE_OPS_H_
#define ISTHMUS_GPU_DEVICE_OPS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/layout.h"
#include "compression/update.h"

namespace isthmus {

enum class OuterForm : uint8_t {
  kPlain = 0,     // anchor ← anchor − α·u
  kNesterov = 1,  // m ← μ·m + u; anchor ← anchor − η·(u + μ·m)
};

// The outer optimizer's numbers for one commit; exact bits come from the commit record.
struct OuterStep {
  OuterForm form = OuterForm::kPlain;
  float rate = 1.0f;      // α (plain) or η (Nesterov)
  float momentum = 0.0f;  // μ, Nesterov only
};

// A worker's own frame when its outcome is applied.
struct OwnFrame {
  const DecodedFrame* frame = nullptr;  // null: it was not included, or there was none
  std::vector<bool> included;           // per tensor; empty means every tensor
};

// Thread-safe: implementations keep no state between calls.
class DeviceOps {
 public:
  virtual ~DeviceOps() = default;

  virtual std::string name() const = 0;

  virtual absl::StatusOr<std::string> Encode(const Codec& codec, const Layout& layout,
                                             absl::Span<const float> anchor,
                                             absl::Span<const float> parameters) = 0;

  // The same with a separate residual (Codec::EncodeResidualTo); on the host unless a device does better.
  virtual absl::StatusOr<std::string> EncodeResidualTo(const Codec& codec, const Layout& layout,
                                                       absl::Span<const float> anchor,
                                                       absl::Span<const float> parameters, float beta,
                                                       absl::Span<const float> residual,
                                                       absl::Span<float> left) {
    return codec.EncodeResidualTo(layout, anchor, parameters, beta, residual, left);
  }

  // The hub's sum: decodes nothing, adds exact integers.
  virtual absl::StatusOr<Update> Sum(const Layout& layout, absl::Span<const WeightedFrame> frames,
                                     Averaging averaging) = 0;

  // Moves the anchor by a committed update. `momentum` is layout.total() long for kNesterov, else empty.
  // INVALID_ARGUMENT when sizes do not fit; nothing is written then.
  virtual absl::Status ApplyToAnchor(const Layout& layout, const Update& update, const OuterStep& step,
                                     absl::Span<float> anchor, absl::Span<float> momentum) = 0;

  // Sum, then ApplyToAnchor of what it gives, bit for bit; an implementation may do both in one pass.
  // `update` may be null where it is not wanted; on failure it holds nothing of use and the anchor is as it
  // was.
  virtual absl::Status SumAndApply(const Layout& layout, absl::Span<const WeightedFrame> frames,
                                   Averaging averaging, const OuterStep& step, absl::Span<float> anchor,
                                   absl::Span<float> momentum, Update* update) {
    absl::StatusOr<Update> sum = Sum(layout, frames, averaging);
    if (!sum.ok()) return sum.status();
    absl::Status applied = ApplyToAnchor(layout, *sum, step, anchor, momentum);
    if (applied.ok() && update != nullptr) *update = *std::move(sum);
    return applied;
  }

  // The worker's outcome rule (ROUNDS §5): moves anchor and parameters together; where the update or the own
  // frame touches: parameters ← new anchor − (fp32(old anchor − parameters) − Decode(own frame)).
  virtual absl::Status ApplyOutcome(const Layout& layout, const Update& update, const OuterStep& step,
                                    const OwnFrame& own, absl::Span<float> anchor, absl::Span<float> momentum,
                                    absl::Span<float> parameters) = 0;

  // Catch-up by snapshot: the outcome rule with shift = new anchor − anchor, plus Decode of the pending frame
  // for the tensors that were included. Parameters keep their bits where neither changes anything. The caller
  // sets momentum. INVALID_ARGUMENT when sizes do not fit; nothing is written then.
  virtual absl::Status MoveToAnchor(const Layout& layout, absl::Span<const float> new_anchor,
                                    const OwnFrame& own, absl::Span<float> anchor,
                                    absl::Span<float> parameters) = 0;
};

// The CPU reference the daemon uses; the second with sums that work as told, which changes no result.
std::unique_ptr<DeviceOps> MakeCpuDeviceOps();
std::unique_ptr<DeviceOps> MakeCpuDeviceOpsWith(const SumOptions& options);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_DEVICE_OPS_H_
