#include "gpu/host_twin_device_ops.h"

#include "compression/float_mode.h"
#include "gpu/apply_input.h"
#include "gpu/apply_kernel.h"
#include "gpu/apply_plan.h"

namespace isthmus {
namespace {

class HostTwinDeviceOps : public DeviceOps {
 public:
  std::string name() const override { return "host twin"; }

  absl::StatusOr<std::string> Encode(const Codec& codec, const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) override {
    return cpu_->Encode(codec, layout, anchor, parameters);
  }

  absl::StatusOr<Update> Sum(const Layout& layout, absl::Span<const WeightedFrame> frames,
                             Averaging averaging) override {
    return cpu_->Sum(layout, frames, averaging);
  }

  absl::Status ApplyToAnchor(const Layout& layout, const Update& update, const OuterStep& step,
                             absl::Span<float> anchor, absl::Span<float> momentum) override {
    if (absl::Status s = CheckUpdate(layout, update, step, {anchor.size(), momentum.size()}); !s.ok())
      return s;
    Apply(layout, update, step, OwnFrame(), anchor, momentum, nullptr);
    return absl::OkStatus();
  }

  absl::Status ApplyOutcome(const Layout& layout, const Update& update, const OuterStep& step,
                            const OwnFrame& own, absl::Span<float> anchor, absl::Span<float> momentum,
                            absl::Span<float> parameters) override {
    if (absl::Status s = CheckUpdate(layout, update, step, {anchor.size(), momentum.size()}); !s.ok())
      return s;
    if (absl::Status s = CheckOwnFrame(layout, own, parameters.size()); !s.ok()) return s;
    Apply(layout, update, step, own, anchor, momentum, parameters.data());
    return absl::OkStatus();
  }

  absl::Status MoveToAnchor(const Layout& layout, absl::Span<const float> new_anchor, const OwnFrame& own,
                            absl::Span<float> anchor, absl::Span<float> parameters) override {
    return cpu_->MoveToAnchor(layout, new_anchor, own, anchor, parameters);
  }

 private:
  void Apply(const Layout& layout, const Update& update, const OuterStep& step, const OwnFrame& own,
             absl::Span<float> anchor, absl::Span<float> momentum, float* parameters) {
    const PlainFloatScope plain;
    for (int t = 0; t < layout.tensors(); ++t) {
      const int64_t at = layout.offset(t);
      const ApplyPlan plan(update, t, layout.size(t), step, OwnTensor(own, t));
      ApplyTensorArgs args = plan.Args();
      args.anchor = anchor.data() + at;
      args.momentum = step.form == OuterForm::kNesterov ? momentum.data() + at : nullptr;
      args.parameters = parameters == nullptr ? nullptr : parameters + at;
      ApplyTensorOnHost(args);
    }
  }

  const std::unique_ptr<DeviceOps> cpu_ = MakeCpuDeviceOps();
};

}  // namespace

std::unique_ptr<DeviceOps> MakeHostTwinDeviceOps() { return std::make_unique<HostTwinDeviceOps>(); }

}  // namespace isthmus
