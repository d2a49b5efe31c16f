// One blob's stream from the hub: asked for, queued, read and sent piece by piece at the data path's pace.
#ifndef ISTHMUS_DAEMON_RPC_HUB_FETCH_H_
#define ISTHMUS_DAEMON_RPC_HUB_FETCH_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "daemon/rpc/call_set.h"
#include "daemon/rpc/hub_core.h"

namespace isthmus {

// One piece is in memory at a time, two while the next is read. Threads as HubUpload; pieces but the first
// are read in gRPC's thread, between the write that was and the one to come.
class HubFetch : public Call,
                 public grpc::ServerWriteReactor<FetchReply>,
                 public std::enable_shared_from_this<HubFetch> {
 public:
  // `core` is shared by the hub and its calls.
  HubFetch(std::shared_ptr<HubCore> core, grpc::CallbackServerContext* context, const FetchRequest& request)
      : core_(std::move(core)), context_(context), request_(request) {}

  void Begin();
  void Abort(const absl::Status& why) override;

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void Open();
  void StartSending();
  void SendPiece(absl::StatusOr<std::string> piece);
  absl::StatusOr<std::string> ReadAt(int64_t offset) const;
  void End(const absl::Status& why);
  void GiveUpTurn();

  const std::shared_ptr<HubCore> core_;
  grpc::CallbackServerContext* const context_;
  const FetchRequest request_;
  std::shared_ptr<const BlobSource> source_;  // shared with the store that made it
  FetchReply reply_;                          // gRPC's between StartWrite and OnWriteDone
  int64_t next_offset_ = 0;
  bool has_turn_ = false;
  bool is_finished_ = false;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_HUB_FETCH_H_
