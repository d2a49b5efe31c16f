// A worker's side of the transport over gRPC: control on one connection, data on another.
#ifndef ISTHMUS_DAEMON_RPC_GRPC_LINK_H_
#define ISTHMUS_DAEMON_RPC_GRPC_LINK_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/base/event_loop.h"
#include "daemon/exchange/pacer.h"
#include "daemon/exchange/transport.h"
#include "daemon/exchange/url.h"
#include "daemon/rpc/channel.h"

namespace isthmus {

class LinkFetch;
class LinkSession;
class LinkUpload;
struct LinkCore;

struct GrpcLinkOptions {
  HostPort coordinator;
  RpcOptions rpc;
  double upload_bytes_per_second = 0;  // budget of frames going up; 0: no limit
};

// Made, used and destroyed on the loop's thread.
class GrpcLink : public WorkerLink {
 public:
  // `loop` must outlive the link. FAILED_PRECONDITION: not on loopback and not allowed in plain text.
  static absl::StatusOr<std::unique_ptr<GrpcLink>> Create(EventLoop* loop, const GrpcLinkOptions& options);
  // Lets the session's queued messages out for up to a second.
  ~GrpcLink() override;

  void Dial(WorkerLink::Listener* listener, absl::Time deadline) override;
  void Send(const WorkerMessage& message) override;
  void Upload(const ContributionHeader& header, SharedBytes frame, absl::Time deadline,
              std::function<void(absl::Status)> done) override;
  void Fetch(const std::string& run_id, const Life& life, const BlobName& name, absl::Time deadline,
             std::function<void(absl::StatusOr<std::string>)> done) override;
  void Close() override;
  TransferCount transferred() const override;

 private:
  struct Data;  // the data connection

  GrpcLink(EventLoop* loop, const GrpcLinkOptions& options);
  void SessionOver(int64_t dial, const absl::Status& why);
  Data* data();

  EventLoop* const loop_;
  const GrpcLinkOptions options_;
  const std::shared_ptr<LinkCore> core_;  // shared with the calls
  Pacer pacer_;
  WorkerLink::Listener* listener_ = nullptr;
  std::shared_ptr<LinkSession> session_;  // shared with gRPC; null while there is none
  bool is_open_ = false;
  int64_t dial_ = 0;  // counts dials, so that what comes of an older one is known for it
  TimerId dial_timer_ = 0;
  std::unique_ptr<Data> data_;
  int64_t next_transfer_ = 1;
  std::map<int64_t, std::unique_ptr<LinkUpload>> uploads_;
  std::map<int64_t, std::unique_ptr<LinkFetch>> fetches_;
  // Shared with callbacks in the loop's queue, which may run after the link is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_GRPC_LINK_H_
