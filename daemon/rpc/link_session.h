// One session of a worker: messages to and fro on one stream, over a connection of its own.
#ifndef ISTHMUS_DAEMON_RPC_LINK_SESSION_H_
#define ISTHMUS_DAEMON_RPC_LINK_SESSION_H_

#include <grpcpp/grpcpp.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/rpc/call_set.h"
#include "daemon/rpc/link_core.h"
#include "protos/service.grpc.pb.h"

namespace isthmus {

// The mutex guards what the loop and gRPC's threads both reach: the queue going out and whether it is over.
class LinkSession : public Call,
                    public grpc::ClientBidiReactor<WorkerMessage, CoordinatorMessage>,
                    public std::enable_shared_from_this<LinkSession> {
 public:
  // All on the loop.
  struct Events {
    std::function<void()> opened;
    std::function<void(CoordinatorMessage)> received;
    std::function<void(absl::Status)> ended;  // OK: the coordinator ended it in order
  };

  // `core` is shared by the link and its calls.
  LinkSession(std::shared_ptr<LinkCore> core, std::shared_ptr<grpc::Channel> channel, Events events)
      : core_(std::move(core)),
        channel_(std::move(channel)),
        stub_(Isthmus::NewStub(channel_)),
        events_(std::move(events)) {}

  // Dials. After it is in the call set.
  void Begin();
  void Send(const WorkerMessage& message);
  // Lets out what is queued, then tells the coordinator that this was all.
  void Wind(const absl::Status& why) override;
  void Abort(const absl::Status& why) override;

  void OnReadInitialMetadataDone(bool ok) override;
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  const std::shared_ptr<LinkCore> core_;
  const std::shared_ptr<grpc::Channel> channel_;  // shared with gRPC
  const std::unique_ptr<Isthmus::Stub> stub_;
  const Events events_;
  // No deadline: a session lasts; the link ends a dial that takes too long.
  grpc::ClientContext context_;
  CoordinatorMessage incoming_;  // gRPC's between StartRead and OnReadDone

  absl::Mutex mutex_;
  std::deque<WorkerMessage> queue_ ABSL_GUARDED_BY(mutex_);  // the front is being written
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_winding_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;  // the hold is given back: start nothing more
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_RPC_LINK_SESSION_H_
