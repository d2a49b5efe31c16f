// The Transport seam: one worker's link to the coordinator, and the coordinator's side of all links.
//
// Control messages ride a session (a connection of its own, so that liveness is never starved by data).
// Frames go up and updates and snapshots come down as blobs in bounded, resumable, paced chunks; there is no
// size above which one fails. Real: gRPC (daemon/rpc). Fake: SimTransport, in memory with a fault plan.
//
// Threads: every call and every callback is on the owner's EventLoop.
#ifndef ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_H_
#define ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/exchange/traffic.h"
#include "protos/control.pb.h"
#include "protos/service.pb.h"

namespace isthmus {

// Grows when a worker and a coordinator of different versions would misunderstand each other.
constexpr int kProtocolVersion = 1;

// Bytes that several owners hold at once (sender, retry, hub): immutable, so sharing is safe.
using SharedBytes = std::shared_ptr<const std::string>;

// Bytes counted on the sockets of one side since the process began, including framing and acknowledgements
// of the transport (SimTransport: serialised messages and pieces).
struct TransferCount {
  int64_t bytes_out = 0;
  int64_t bytes_in = 0;
  TrafficTally classes;  // of those, the payload; their sum is less than the above by what the transport adds

  TransferCount& operator+=(const TransferCount& other) {
    bytes_out += other.bytes_out;
    bytes_in += other.bytes_in;
    classes += other.classes;
    return *this;
  }
  TransferCount& operator-=(const TransferCount& other) {
    bytes_out -= other.bytes_out;
    bytes_in -= other.bytes_in;
    classes -= other.classes;
    return *this;
  }
};

// What a blob to fetch is called.
struct BlobName {
  BlobKind kind = UPDATE;
  int64_t round = 0;
  int32_t fragment = 0;
};

// The worker's side. One session at a time.
class WorkerLink {
 public:
  // What happens to the link; called on the loop.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void SessionOpened() = 0;
    virtual void MessageReceived(CoordinatorMessage message) = 0;
    // The session is over (also when Dial fails); UNAVAILABLE unless the peer said otherwise. Dial again to
    // retry.
    virtual void SessionClosed(absl::Status why) = 0;
  };

  virtual ~WorkerLink() = default;

  // Opens a session; answers SessionOpened or SessionClosed by `deadline` (steady time). Ignored while one is
  // open. `listener` must outlive the link or a Close.
  virtual void Dial(Listener* listener, absl::Time deadline) = 0;

  // Queues a control message; dropped when no session is open.
  virtual void Send(const WorkerMessage& message) = 0;

  // Streams a frame. Resumes by itself from what the hub holds when the data connection breaks, until
  // `deadline`. OK: the hub holds all of it, digest checked (what it decided comes as ContributionOutcome).
  // DEADLINE_EXCEEDED, UNAVAILABLE, or the hub's own refusal otherwise.
  virtual void Upload(const ContributionHeader& header, SharedBytes frame, absl::Time deadline,
                      std::function<void(absl::Status)> done) = 0;

  // Streams a blob down, resuming likewise. NOT_FOUND: pruned or never committed.
  virtual void Fetch(const std::string& run_id, const Life& life, const BlobName& name, absl::Time deadline,
                     std::function<void(absl::StatusOr<std::string>)> done) = 0;

  // Ends the session and all transfers; their callbacks are not run. May dial again afterwards.
  virtual void Close() = 0;

  virtual TransferCount transferred() const = 0;
};

using SessionId = int64_t;

// Where a blob's bytes come from, read piece by piece so that none need be in memory whole.
class BlobSource {
 public:
  virtual ~BlobSource() = default;
  virtual int64_t size() const = 0;
  // Up to `bytes` from `offset`; DATA_LOSS or INTERNAL when the medium fails. Any thread, one at a time.
  virtual absl::StatusOr<std::string> Read(int64_t offset, int64_t bytes) const = 0;
};

// The coordinator's side.
class Hub {
 public:
  // What happens on all links; called on the loop.
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void SessionOpened(SessionId session) = 0;
    virtual void MessageReceived(SessionId session, WorkerMessage message) = 0;
    // Once for every SessionOpened, unless the hub is stopped. OK: the worker closed it, or CloseSession did;
    // UNAVAILABLE: it broke.
    virtual void SessionClosed(SessionId session, absl::Status why) = 0;
    // May this upload begin? Not OK refuses it before a byte of the frame is held. Asked once per attempt; of
    // refusals, the link itself tries again after UNAVAILABLE, RESOURCE_EXHAUSTED and NOT_FOUND.
    virtual absl::Status UploadOffered(const ContributionHeader& header) = 0;
    // All of a frame arrived and its digest is right.
    virtual void UploadReceived(const ContributionHeader& header, SharedBytes frame) = 0;
    // NOT_FOUND or FAILED_PRECONDITION (of another run) refuse. Asked again when a fetch resumes, with its
    // offset.
    virtual absl::StatusOr<std::shared_ptr<const BlobSource>> FetchRequested(const FetchRequest& request) = 0;
    virtual RunStatus StatusRequested(const StatusRequest& request) = 0;
  };

  virtual ~Hub() = default;

  // Begins to accept. `listener` must outlive the hub or a Stop. UNAVAILABLE: address taken or invalid.
  virtual absl::Status Start(Listener* listener) = 0;

  // Queues a control message; dropped when the session is over.
  virtual void Send(SessionId session, const CoordinatorMessage& message) = 0;

  // Ends one session after what was queued is out; what its worker still says is dropped.
  virtual void CloseSession(SessionId session) = 0;

  // Sends the newest status to everyone that watches.
  virtual void PublishStatus(const RunStatus& status) = 0;

  virtual TransferCount transferred() const = 0;

  virtual void Stop() = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_H_
