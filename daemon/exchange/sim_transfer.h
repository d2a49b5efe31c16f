// One upload and one fetch over SimTransport: attempts, pieces, faults, resume.
//
// Owned by the SimLink they belong to; destroyed, they call nothing any more.
#ifndef ISTHMUS_DAEMON_EXCHANGE_SIM_TRANSFER_H_
#define ISTHMUS_DAEMON_EXCHANGE_SIM_TRANSFER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/types/optional.h"
#include "daemon/exchange/fault_plan.h"
#include "daemon/exchange/partial_frames.h"
#include "daemon/exchange/sim_core.h"
#include "daemon/exchange/transfer.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// What both directions share: how bytes are carried and counted, and what faults do to the wires.
class SimTransfer : public Transfer {
 public:
  // `core` and `count` (the link's) must outlive the transfer.
  SimTransfer(SimCore* core, std::string site, TransferCount* count, absl::Time deadline)
      : Transfer(core->loop(), deadline), core_(core), site_(std::move(site)), count_(count) {}

 protected:
  // Sends `bytes` of a class and what goes around them, and counts at both ends. `arrived` runs only within
  // this attempt.
  void Carry(FaultSide side, TrafficBytes::Kind kind, int64_t bytes, std::function<void()> sent,
             std::function<void()> arrived);
  // The same for an answer without a body.
  void CarryAnswer(FaultSide side, std::function<void()> arrived) {
    Carry(
        side, TrafficBytes::CONTROL, 0, [] {}, std::move(arrived));
  }
  bool IsHubOfAttempt() const { return core_->hub() != nullptr && core_->hub_life() == hub_life_; }
  // Does what a fault does to a whole wire, and notes an extra delay for the next Carry.
  void StrikeWire(const Fault& fault);

  SimCore* const core_;
  const std::string site_;
  TransferCount* const count_;
  int64_t hub_life_ = 0;  // the hub the attempt talks to
  absl::Duration extra_delay_;
  absl::optional<Fault> fault_;  // of this attempt, on the way up
};

// A frame on its way up, piece by piece.
class SimUpload : public SimTransfer {
 public:
  SimUpload(SimCore* core, std::string site, TransferCount* count, const ContributionHeader& header,
            SharedBytes frame, absl::Time deadline, std::function<void(absl::Status)> finish);
  ~SimUpload() override;

 private:
  void BeginAttempt() override;
  void Fail(const absl::Status& why) override { Finish(why); }
  std::string Describe() const override;
  void Abandon() override;
  void OfferArrived();
  void Offered(const absl::StatusOr<PartialFrames::Offered>& offered);
  void SendPiece();
  void PieceArrived(int64_t offset, const std::string& piece);
  void AllArrived();
  void Answered(const absl::Status& outcome);
  void Finish(const absl::Status& status);

  const ContributionHeader header_;
  const SharedBytes frame_;
  std::function<void(absl::Status)> finish_;
  int64_t offer_ = 0;  // the attempt the hub waits for; 0: none
  int64_t sent_bytes_ = 0;
  int64_t break_at_ = -1;  // breaks when this many bytes of the frame are across
  int64_t flip_at_ = -1;   // this byte arrives wrong
  int64_t data_losses_ = 0;
};

// A blob on its way down, piece by piece.
class SimFetch : public SimTransfer {
 public:
  SimFetch(SimCore* core, std::string site, TransferCount* count, FetchRequest request, absl::Time deadline,
           std::function<void(absl::StatusOr<std::string>)> finish);

 private:
  void BeginAttempt() override;
  void Fail(const absl::Status& why) override { Finish(why); }
  std::string Describe() const override;
  void RequestArrived();
  void SendPiece();
  void PieceArrived(const std::string& piece, bool is_last);
  void Finish(absl::StatusOr<std::string> blob);

  FetchRequest request_;
  std::function<void(absl::StatusOr<std::string>)> finish_;
  std::shared_ptr<const BlobSource> source_;
  std::string received_;
  int64_t sent_bytes_ = 0;
  int64_t break_at_ = -1;
  int64_t flip_at_ = -1;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_SIM_TRANSFER_H_
