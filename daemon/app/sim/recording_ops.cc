#include "daemon/app/sim/recording_ops.h"

#include <algorithm>

#include "daemon/base/digest.h"

namespace isthmus {
namespace {

class RecordingOps : public DeviceOps {
 public:
  RecordingOps(std::unique_ptr<DeviceOps> ops, FrameRecorder* recorder, std::string site, int64_t process)
      : ops_(std::move(ops)), recorder_(recorder), site_(std::move(site)), process_(process) {}

  std::string name() const override { return ops_->name(); }

  absl::StatusOr<std::string> Encode(const Codec& codec, const Layout& layout, absl::Span<const float> anchor,
                                     absl::Span<const float> parameters) override {
    absl::StatusOr<std::string> frame = ops_->Encode(codec, layout, anchor, parameters);
    if (frame.ok()) recorder_->Note(site_, process_, codec, layout, *frame);
    return frame;
  }

  absl::StatusOr<std::string> EncodeResidualTo(const Codec& codec, const Layout& layout,
                                               absl::Span<const float> anchor,
                                               absl::Span<const float> parameters, float beta,
                                               absl::Span<const float> residual,
                                               absl::Span<float> left) override {
    absl::StatusOr<std::string> frame =
        ops_->EncodeResidualTo(codec, layout, anchor, parameters, beta, residual, left);
    if (frame.ok()) recorder_->Note(site_, process_, codec, layout, *frame);
    return frame;
  }

  absl::StatusOr<Update> Sum(const Layout& layout, absl::Span<const WeightedFrame> frames,
                             Averaging averaging) override {
    return ops_->Sum(layout, frames, averaging);
  }

  absl::Status ApplyToAnchor(const Layout& layout, const Update& update, const OuterStep& step,
                             absl::Span<float> anchor, absl::Span<float> momentum) override {
    return ops_->ApplyToAnchor(layout, update, step, anchor, momentum);
  }

  absl::Status ApplyOutcome(const Layout& layout, const Update& update, const OuterStep& step,
                            const OwnFrame& own, absl::Span<float> anchor, absl::Span<float> momentum,
                            absl::Span<float> parameters) override {
    return ops_->ApplyOutcome(layout, update, step, own, anchor, momentum, parameters);
  }

  absl::Status MoveToAnchor(const Layout& layout, absl::Span<const float> new_anchor, const OwnFrame& own,
                            absl::Span<float> anchor, absl::Span<float> parameters) override {
    return ops_->MoveToAnchor(layout, new_anchor, own, anchor, parameters);
  }

 private:
  const std::unique_ptr<DeviceOps> ops_;
  FrameRecorder* const recorder_;
  const std::string site_;
  const int64_t process_;
};

}  // namespace

std::unique_ptr<DeviceOps> FrameRecorder::MakeOps(const std::string& site, int64_t process) {
  return Wrap(MakeCpuDeviceOps(), site, process);
}

std::unique_ptr<DeviceOps> FrameRecorder::Wrap(std::unique_ptr<DeviceOps> ops, const std::string& site,
                                               int64_t process) {
  return std::make_unique<RecordingOps>(std::move(ops), this, site, process);
}

void FrameRecorder::Note(const std::string& site, int64_t process, const Codec& codec, const Layout& layout,
                         const std::string& bytes) {
  absl::StatusOr<DecodedFrame> decoded = codec.Decode(layout, bytes);
  if (!decoded.ok()) return;  // whoever needs it finds it missing
  Frame& frame = frames_[{site, DigestOf(absl::string_view(bytes)).ToBytes()}];
  frame.process = process;
  frame.bytes = bytes.size();
  frame.decoded = *std::move(decoded);
  Sent& sent = sent_[site];
  ++sent.frames;
  sent.bytes += bytes.size();
  sent.largest = std::max<int64_t>(sent.largest, bytes.size());
}

const FrameRecorder::Frame* FrameRecorder::Find(const std::string& site, const std::string& digest) const {
  auto it = frames_.find({site, digest});
  return it == frames_.end() ? nullptr : &it->second;
}

FrameRecorder::Sent FrameRecorder::SentBy(const std::string& site) const {
  auto it = sent_.find(site);
  return it == sent_.end() ? Sent() : it->second;
}

}  // namespace isthmus
