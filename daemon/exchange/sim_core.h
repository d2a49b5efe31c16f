// What the simulated links and hubs of one SimNetwork share: wires, faults, counts and who is there.
//
// Not for use outside daemon/exchange's simulation. Not thread-safe: everything is on one loop.
#ifndef ISTHMUS_DAEMON_EXCHANGE_SIM_CORE_H_
#define ISTHMUS_DAEMON_EXCHANGE_SIM_CORE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/event_loop.h"
#include "daemon/exchange/fault_plan.h"
#include "daemon/exchange/partial_frames.h"
#include "daemon/exchange/sim_wire.h"
#include "daemon/exchange/transport.h"

namespace isthmus {

// What one site's path to the hub is like, to and fro.
struct LinkProfile {
  absl::Duration latency = absl::Milliseconds(10);  // one way
  double up_bytes_per_second = 0;                   // 0: no limit
  double down_bytes_per_second = 0;
};

using LinkId = int64_t;

// The worker's end of simulated sessions, as the network sees it.
class SimLinkEnd {
 public:
  virtual ~SimLinkEnd() = default;
  virtual const std::string& site() const = 0;
  virtual void Deliver(SessionId session, const CoordinatorMessage& message) = 0;
  virtual void SessionEnded(SessionId session, const absl::Status& why) = 0;
  // The process is gone: nothing of it runs any more.
  virtual void Kill() = 0;
};

// The hub's end of transfers.
class SimHubData {
 public:
  virtual ~SimHubData() = default;
  // Uploads: as PartialFrames, after asking the listener. FinishUpload hands the frame to the listener;
  // `undetected` (may be null) goes in its place, digest unasked.
  virtual absl::StatusOr<PartialFrames::Offered> OfferUpload(const ContributionHeader& header) = 0;
  virtual absl::Status TakePiece(const ContributionHeader& header, int64_t offset,
                                 const std::string& piece) = 0;
  virtual void ReleaseUpload(const ContributionHeader& header, int64_t attempt) = 0;
  virtual absl::Status FinishUpload(const ContributionHeader& header, SharedBytes undetected) = 0;
  virtual absl::StatusOr<std::shared_ptr<const BlobSource>> OpenBlob(const FetchRequest& request) = 0;
};

// The coordinator's end, as links and their transfers see it.
class SimHubEnd : public SimHubData {
 public:
  virtual ~SimHubEnd() = default;
  virtual void Accept(SessionId session, LinkId link, const std::string& site) = 0;
  virtual void Deliver(SessionId session, const WorkerMessage& message) = 0;
  virtual void SessionEnded(SessionId session, const absl::Status& why) = 0;
  virtual RunStatus AskStatus(const StatusRequest& request) = 0;
};

// Bytes that crossed one site's wires, over all lives of links and hubs.
struct SiteTraffic {
  int64_t control_up = 0, control_down = 0;
  int64_t data_up = 0, data_down = 0;
};

// The one place where all simulated hubs, links and wires of a run meet. Not thread-safe: all on its loop.
class SimCore {
 public:
  // `loop` must outlive the core.
  explicit SimCore(EventLoop* loop) : loop_(loop) {}
  ~SimCore() { *is_alive_ = false; }

  EventLoop* loop() const { return loop_; }
  FaultPlan& plan() { return plan_; }
  const FaultPlan& plan() const { return plan_; }

  struct Site {
    explicit Site(EventLoop* loop) : control_up(loop), control_down(loop), data_up(loop), data_down(loop) {}
    LinkProfile profile;
    SimWire control_up, control_down, data_up, data_down;
    SiteTraffic traffic;
    // A reordered control message waits here for the next one: by side.
    std::function<void()> held_back[2];
  };
  // The site's wires; made at the first question.
  Site& site(const std::string& name);
  void SetProfile(const std::string& name, const LinkProfile& profile);
  void Clog(const std::string& name, FaultSide side, absl::Duration length);
  void ClogData(const std::string& name, FaultSide side, absl::Duration length);
  void SlowDown(const std::string& name, double factor, absl::Duration length);

  LinkId AddLink(SimLinkEnd* link);
  void RemoveLink(LinkId id);
  SimLinkEnd* FindLink(LinkId id) const;
  // The newest link of a site that is alive, or null.
  SimLinkEnd* LinkOf(const std::string& name) const;

  // The hub that accepts, or null. Its number tells one life from the next.
  SimHubEnd* hub() const { return hub_; }
  int64_t hub_life() const { return hub_life_; }
  TransferCount* hub_count() const { return hub_count_; }
  void SetHub(SimHubEnd* hub, TransferCount* count);
  // Nobody accepts any more and all sessions break.
  void RemoveHub(const std::string& why);
  bool HasSession(SessionId session) const { return sessions_.count(session) != 0; }
  // Status to whoever watches, after the control latency of nobody: people are not simulated.
  void WatchStatus(std::function<void(const RunStatus&)> watcher) { watchers_.push_back(std::move(watcher)); }
  void PublishStatus(const RunStatus& status);

  // Makes a session of a link with the hub; both ends know its number afterwards.
  SessionId OpenSession(LinkId link);
  // Carries a message over `name`'s control connection, with the plan's faults; `deliver` runs unless the
  // session broke on the way.
  void CarryControl(const std::string& name, FaultSide side, SessionId session, int64_t bytes,
                    std::function<void()> deliver);
  // From now on nothing of the session is delivered; both ends hear of it one latency later.
  void BreakSession(SessionId session, const absl::Status& why);
  // One end is gone or closed in order: no further break is told.
  void ForgetSession(SessionId session) { sessions_.erase(session); }
  // Breaks all sessions of a link, or (0) all there are.
  void BreakSessions(LinkId link, const absl::Status& why);
  SessionId SessionOf(const std::string& name) const;

  // Carries data over a site's data connection and counts it.
  void CarryData(const std::string& name, FaultSide side, int64_t bytes, absl::Duration extra,
                 std::function<void()> sent, std::function<void()> arrived);

 private:
  struct Session {
    LinkId link = 0;
    int64_t hub_life = 0;
    std::string site;
  };
  // Applies one fault to a control message. True: the message is dealt with.
  bool StrikeControl(const Fault& fault, const std::string& name, SessionId session, int64_t bytes,
                     const std::function<void()>& deliver);
  void ReleaseHeldBack(Site* site, FaultSide side);

  EventLoop* const loop_;
  FaultPlan plan_;
  std::map<std::string, std::unique_ptr<Site>> sites_;
  std::map<LinkId, SimLinkEnd*> links_;
  std::map<SessionId, Session> sessions_;
  SimHubEnd* hub_ = nullptr;
  TransferCount* hub_count_ = nullptr;
  int64_t hub_life_ = 0;
  std::vector<std::function<void(const RunStatus&)>> watchers_;
  int64_t next_id_ = 1;
  // Shared with callbacks in the loop's queue, which may run after the core is gone.
  std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_SIM_CORE_H_
