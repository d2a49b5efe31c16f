#include "daemon/exchange/sim_core.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace isthmus {

SimCore::Site& SimCore::site(const std::string& name) {
  std::unique_ptr<Site>& site = sites_[name];
  if (site == nullptr) {
    site = std::make_unique<Site>(loop_);
    SetProfile(name, LinkProfile());
  }
  return *site;
}

void SimCore::SetProfile(const std::string& name, const LinkProfile& profile) {
  Site& s = site(name);
  s.profile = profile;
  s.control_up.SetRate(profile.latency, profile.up_bytes_per_second);
  s.data_up.SetRate(profile.latency, profile.up_bytes_per_second);
  s.control_down.SetRate(profile.latency, profile.down_bytes_per_second);
  s.data_down.SetRate(profile.latency, profile.down_bytes_per_second);
}

void SimCore::Clog(const std::string& name, FaultSide side, absl::Duration length) {
  Site& s = site(name);
  (side == FaultSide::kUp ? s.control_up : s.control_down).Clog(length);
  ClogData(name, side, length);
}

void SimCore::ClogData(const std::string& name, FaultSide side, absl::Duration length) {
  Site& s = site(name);
  (side == FaultSide::kUp ? s.data_up : s.data_down).Clog(length);
}

void SimCore::SlowDown(const std::string& name, double factor, absl::Duration length) {
  Site& s = site(name);
  for (SimWire* wire : {&s.control_up, &s.control_down, &s.data_up, &s.data_down}) {
    wire->SlowDown(factor, length);
  }
}

LinkId SimCore::AddLink(SimLinkEnd* link) {
  links_[next_id_] = link;
  return next_id_++;
}

void SimCore::RemoveLink(LinkId id) { links_.erase(id); }

SimLinkEnd* SimCore::FindLink(LinkId id) const {
  auto it = links_.find(id);
  return it == links_.end() ? nullptr : it->second;
}

void SimCore::SetHub(SimHubEnd* hub, TransferCount* count) {
  hub_ = hub;
  hub_count_ = count;
  ++hub_life_;
}

void SimCore::RemoveHub(const std::string& why) {
  SetHub(nullptr, nullptr);
  BreakSessions(0, absl::UnavailableError(why));
}

void SimCore::PublishStatus(const RunStatus& status) {
  for (const auto& watcher : watchers_) {
    loop_->Post([alive = is_alive_, watcher, status] {
      if (*alive) watcher(status);
    });
  }
}

SimLinkEnd* SimCore::LinkOf(const std::string& name) const {
  for (auto it = links_.rbegin(); it != links_.rend(); ++it) {
    if (it->second->site() == name) return it->second;
  }
  return nullptr;
}

SessionId SimCore::OpenSession(LinkId link) {
  const SessionId id = next_id_++;
  sessions_[id] = {link, hub_life_, links_.at(link)->site()};
  return id;
}

SessionId SimCore::SessionOf(const std::string& name) const {
  for (auto it = sessions_.rbegin(); it != sessions_.rend(); ++it) {
    if (it->second.site == name) return it->first;
  }
  return 0;
}

void SimCore::CarryControl(const std::string& name, FaultSide side, SessionId session, int64_t bytes,
                           std::function<void()> deliver) {
  Site& s = site(name);
  (side == FaultSide::kUp ? s.traffic.control_up : s.traffic.control_down) += bytes;
  // A message that was held back rides behind the next.
  auto arrived = [this, session, deliver = std::move(deliver),
                  held = std::exchange(s.held_back[static_cast<int>(side)], nullptr)] {
    if (sessions_.count(session) != 0) deliver();
    if (held) held();
  };
  absl::optional<Fault> fault = plan_.Strike(FaultTarget::kControl, side, name);
  if (fault.has_value() && StrikeControl(*fault, name, session, bytes, arrived)) return;
  (side == FaultSide::kUp ? s.control_up : s.control_down).Send(bytes, nullptr, std::move(arrived));
}

void SimCore::ReleaseHeldBack(Site* site, FaultSide side) {
  std::function<void()> held = std::exchange(site->held_back[static_cast<int>(side)], nullptr);
  if (held) held();
}

bool SimCore::StrikeControl(const Fault& fault, const std::string& name, SessionId session, int64_t bytes,
                            const std::function<void()>& deliver) {
  Site& s = site(name);
  SimWire& wire = fault.side == FaultSide::kUp ? s.control_up : s.control_down;
  const absl::Status broken = absl::UnavailableError(
      absl::StrCat("session of site '", name, "' broke (", FaultKindName(fault.kind), ")"));
  switch (fault.kind) {
    case FaultKind::kRequestLost:
      if (!fault.is_silent) BreakSession(session, broken);
      return true;
    case FaultKind::kBytesFlipped:  // a stream's checksum does not let it past
    case FaultKind::kBroken:
      BreakSession(session, broken);
      return true;
    case FaultKind::kReplyLost:
      wire.Send(bytes, nullptr, [this, session, broken, deliver] {
        deliver();
        BreakSession(session, broken);
      });
      return true;
    case FaultKind::kDelayed:
      wire.SendDelayed(bytes, fault.length, nullptr, deliver);
      return true;
    case FaultKind::kDuplicated:
      wire.Send(bytes, nullptr, deliver);
      wire.Send(bytes, nullptr, deliver);
      return true;
    case FaultKind::kReordered: {
      std::function<void()>& held = s.held_back[static_cast<int>(fault.side)];
      held = deliver;
      loop_->RunAfter(fault.length, [this, alive = is_alive_, &s, side = fault.side] {
        if (*alive) ReleaseHeldBack(&s, side);
      });
      return true;
    }
    case FaultKind::kClogged:
      wire.Clog(fault.length);
      if (fault.is_breaking) {
        loop_->RunAfter(fault.length, [this, alive = is_alive_, session, broken] {
          if (*alive) BreakSession(session, broken);
        });
      }
      return false;
    case FaultKind::kPeerSlow:
      SlowDown(name, fault.factor, fault.length);
      return false;
  }
  return false;
}

void SimCore::BreakSession(SessionId session, const absl::Status& why) {
  auto it = sessions_.find(session);
  if (it == sessions_.end()) return;
  const Session ended = it->second;
  sessions_.erase(it);
  loop_->RunAfter(site(ended.site).profile.latency, [this, alive = is_alive_, session, ended, why] {
    if (!*alive) return;
    if (SimLinkEnd* link = FindLink(ended.link)) link->SessionEnded(session, why);
    if (*alive && hub_ != nullptr && hub_life_ == ended.hub_life) hub_->SessionEnded(session, why);
  });
}

void SimCore::BreakSessions(LinkId link, const absl::Status& why) {
  std::vector<SessionId> ended;
  for (const auto& [id, session] : sessions_) {
    if (link == 0 || session.link == link) ended.push_back(id);
  }
  for (SessionId id : ended) BreakSession(id, why);
}

void SimCore::CarryData(const std::string& name, FaultSide side, int64_t bytes, absl::Duration extra,
                        std::function<void()> sent, std::function<void()> arrived) {
  Site& s = site(name);
  int64_t* traffic = side == FaultSide::kUp ? &s.traffic.data_up : &s.traffic.data_down;
  auto left = [traffic, bytes, sent = std::move(sent)] {
    *traffic += bytes;
    sent();
  };
  (side == FaultSide::kUp ? s.data_up : s.data_down)
      .SendDelayed(bytes, extra, std::move(left), std::move(arrived));
}

}  // namespace isthmus
