#include "daemon/membership/membership.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/reason.h"

namespace isthmus {
namespace {

constexpr int kRememberedBoundaries = 64;

bool IsGone(SiteState phase) { return phase == SiteState::kDead || phase == SiteState::kLeft; }

}  // namespace

absl::string_view SiteStateName(SiteState state) {
  switch (state) {
    case SiteState::kJoining:
      return "joining";
    case SiteState::kReady:
      return "ready";
    case SiteState::kActive:
      return "active";
    case SiteState::kSuspect:
      return "suspect";
    case SiteState::kDraining:
      return "draining";
    case SiteState::kDead:
      return "dead";
    case SiteState::kLeft:
      return "left";
  }
  return "unknown";
}

absl::string_view MemberChangeName(MemberChange change) {
  switch (change) {
    case MemberChange::kAdmitted:
      return "admitted";
    case MemberChange::kReady:
      return "ready";
    case MemberChange::kJoined:
      return "joined";
    case MemberChange::kSuspected:
      return "suspected";
    case MemberChange::kRefuted:
      return "refuted";
    case MemberChange::kDraining:
      return "draining";
    case MemberChange::kLeft:
      return "left";
    case MemberChange::kDied:
      return "died";
    case MemberChange::kEvicted:
      return "evicted";
    case MemberChange::kFenced:
      return "fenced";
  }
  return "unknown";
}

bool View::Contains(const SiteLife& life) const {
  return std::binary_search(members.begin(), members.end(), life);
}

Membership::Membership(MembershipOptions options) : options_(options) {}

bool Membership::IsAlive(const Member& m) { return !IsGone(m.phase); }

absl::Duration Membership::SuspectedAfter(const Member& m) const {
  // A heartbeat may be lost without meaning anything, so the floor also grows with the interval.
  absl::Duration limit = std::max(options_.suspicion_floor, 3 * options_.heartbeat_interval);
  if (!m.gaps.empty()) {
    double mean = 0, square = 0;
    for (absl::Duration g : m.gaps) mean += absl::ToDoubleSeconds(g) / m.gaps.size();
    for (absl::Duration g : m.gaps) {
      const double d = absl::ToDoubleSeconds(g) - mean;
      square += d * d / m.gaps.size();
    }
    limit = std::max(limit, absl::Seconds(mean + options_.deviations * std::sqrt(square)));
  }
  return m.is_connected ? limit : limit / 2;
}

void Membership::Change(const SiteName& name, Member* m, SiteState phase, MemberChange change,
                        std::string reason, absl::Time now, MemberEffects* effects) {
  m->phase = phase;
  m->is_suspect = change == MemberChange::kSuspected;
  m->since = now;
  m->reason = reason;
  effects->push_back({change, {name, m->incarnation}, std::move(reason)});
}

Membership::Member* Membership::FindLiving(const SiteLife& life, MemberEffects* effects) {
  const absl::Status status = CheckLife(life);
  if (status.ok()) return &members_.at(life.name);
  if (effects != nullptr) effects->push_back({MemberChange::kFenced, life, std::string(status.message())});
  return nullptr;
}

absl::Status Membership::CheckLife(const SiteLife& life) const {
  const std::string who = LifeText(life);
  auto it = members_.find(life.name);
  if (it == members_.end() || life.incarnation > it->second.incarnation) {
    return absl::FailedPreconditionError(absl::StrCat(who, " is not in the run: it must join"));
  }
  if (life.incarnation < it->second.incarnation) {
    return absl::FailedPreconditionError(
        absl::StrCat(who, " is an older life: ", life.name, "/", it->second.incarnation, " holds the name"));
  }
  if (IsAlive(it->second)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(who, it->second.phase == SiteState::kLeft ? " has left (" : " is dead (",
                   it->second.reason, "): it must join with a new life"));
}

absl::Status Membership::CheckNameIsFree(const SiteName& name, absl::Time now, absl::Time* retry_at) const {
  auto it = members_.find(name);
  if (it == members_.end() || !IsAlive(it->second)) return absl::OkStatus();
  const Member& holder = it->second;
  if (holder.is_suspect && !holder.is_connected) return absl::OkStatus();
  const std::string held =
      absl::StrCat("site name ", name, " is held by ", LifeText({name, holder.incarnation}), ", ");
  if (!holder.is_suspect && holder.is_connected && holder.phase != SiteState::kDraining) {
    return absl::AlreadyExistsError(
        absl::StrCat(held, "alive and last heard ", SecondsText(now - holder.last_heard), " ago"));
  }
  const absl::Duration limit = SuspectedAfter(holder);
  *retry_at = holder.last_heard + (holder.is_connected ? 2 * limit : limit);
  const absl::string_view how = !holder.is_connected ? "disconnected"
                                : holder.is_suspect  ? "suspect"
                                                     : "draining";
  return absl::UnavailableError(
      absl::StrCat(held, how, "; free in ", SecondsText(*retry_at - now), " unless it speaks"));
}

JoinAnswer Membership::JoinRequested(const SiteName& name, Incarnation incarnation, absl::Time now) {
  JoinAnswer answer;
  const SiteLife life{name, incarnation};
  if (name.empty()) {
    answer.status = absl::InvalidArgumentError("a site must have a name to join");
    return answer;
  }
  auto it = members_.find(name);
  if (incarnation < 1 || (it != members_.end() && incarnation <= it->second.incarnation)) {
    answer.status =
        absl::InvalidArgumentError(absl::StrCat(LifeText(life), " cannot join: its incarnation is not new"));
    return answer;
  }
  if (it != members_.end()) Judge(name, &it->second, now, &answer.effects);
  answer.status = CheckNameIsFree(name, now, &answer.retry_at);
  if (!answer.status.ok()) return answer;
  const bool is_replacing = it != members_.end() && IsAlive(it->second);
  if (!is_replacing && living() >= options_.max_sites) {
    answer.status = absl::ResourceExhaustedError(
        absl::StrCat(name, " cannot join: ", options_.max_sites, " sites are in"));
    return answer;
  }
  if (is_replacing) {
    Change(name, &it->second, SiteState::kDead, MemberChange::kDied,
           absl::StrCat(LifeText({name, it->second.incarnation}), " died: ", LifeText(life),
                        " took its name while it was suspect and disconnected"),
           now, &answer.effects);
  }
  Member m;
  m.incarnation = incarnation;
  m.last_heard = now;
  m.last_beat = absl::InfinitePast();
  Member& added = members_[name] = std::move(m);
  Change(name, &added, SiteState::kJoining, MemberChange::kAdmitted,
         absl::StrCat(LifeText(life), " was admitted and is catching up"), now, &answer.effects);
  return answer;
}

void Membership::Restore(const View& view, absl::Duration grace, absl::Time now) {
  members_.clear();
  view_ = view;
  std::sort(view_.members.begin(), view_.members.end());
  for (const SiteLife& life : view_.members) {
    Member m;
    m.incarnation = life.incarnation;
    m.phase = SiteState::kActive;
    m.is_connected = false;
    m.since = now;
    m.last_heard = now + grace;
    m.last_beat = absl::InfinitePast();
    m.reason = absl::StrCat(LifeText(life), " was active when the coordinator restarted");
    members_[life.name] = std::move(m);
  }
}

void Membership::Speak(const SiteName& name, Member* m, absl::Time now, MemberEffects* effects) {
  const absl::Duration silence = now - m->last_heard;
  m->last_heard = now;
  if (!m->is_suspect) return;
  Change(name, m, m->phase, MemberChange::kRefuted,
         absl::StrCat(LifeText({name, m->incarnation}), " refuted: it spoke after ", SecondsText(silence),
                      " of silence"),
         now, effects);
}

MemberEffects Membership::HeartbeatReceived(const SiteLife& life, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, &effects);
  if (m == nullptr) return effects;
  m->is_connected = true;
  if (m->last_beat != absl::InfinitePast()) {
    m->gaps.push_back(now - m->last_beat);
    if (static_cast<int>(m->gaps.size()) > options_.learning_window) m->gaps.pop_front();
  }
  m->last_beat = now;
  Speak(life.name, m, now, &effects);
  return effects;
}

MemberEffects Membership::Heard(const SiteLife& life, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, &effects);
  if (m != nullptr) Speak(life.name, m, now, &effects);
  return effects;
}

MemberEffects Membership::ConnectionLost(const SiteLife& life, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, nullptr);
  if (m == nullptr || !m->is_connected) return effects;
  m->is_connected = false;
  m->last_beat = absl::InfinitePast();  // the gap across a broken connection says nothing about the link
  if (m->phase == SiteState::kDraining) {
    Change(life.name, m, SiteState::kLeft, MemberChange::kLeft,
           absl::StrCat(LifeText(life), " left: it was draining and closed its connection"), now, &effects);
  } else {
    Judge(life.name, m, now, &effects);
  }
  return effects;
}

MemberEffects Membership::ConnectionRestored(const SiteLife& life, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, &effects);
  if (m == nullptr) return effects;
  m->is_connected = true;
  Speak(life.name, m, now, &effects);
  return effects;
}

MemberEffects Membership::CaughtUp(const SiteLife& life, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, &effects);
  if (m == nullptr) return effects;
  Speak(life.name, m, now, &effects);
  if (m->phase == SiteState::kJoining) {
    Change(life.name, m, SiteState::kReady, MemberChange::kReady,
           absl::StrCat(LifeText(life), " has caught up and joins at the next round"), now, &effects);
  }
  return effects;
}

MemberEffects Membership::LeaveRequested(const SiteLife& life, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, &effects);
  if (m == nullptr) return effects;
  Speak(life.name, m, now, &effects);
  if (m->phase == SiteState::kActive) {
    Change(life.name, m, SiteState::kDraining, MemberChange::kDraining,
           absl::StrCat(LifeText(life), " is draining: it finishes the round, then leaves"), now, &effects);
  } else if (m->phase != SiteState::kDraining) {
    Change(life.name, m, SiteState::kLeft, MemberChange::kLeft,
           absl::StrCat(LifeText(life), " left before it took part in a round"), now, &effects);
  }
  return effects;
}

MemberEffects Membership::Departed(const SiteLife& life, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, &effects);
  if (m == nullptr) return effects;
  Change(life.name, m, SiteState::kLeft, MemberChange::kLeft, absl::StrCat(LifeText(life), " left"), now,
         &effects);
  return effects;
}

MemberEffects Membership::Evict(const SiteLife& life, absl::string_view why, absl::Time now) {
  MemberEffects effects;
  Member* m = FindLiving(life, nullptr);
  if (m == nullptr) return effects;
  Change(life.name, m, SiteState::kDead, MemberChange::kEvicted,
         absl::StrCat(LifeText(life), " was evicted: ", why), now, &effects);
  return effects;
}

void Membership::Judge(const SiteName& name, Member* m, absl::Time now, MemberEffects* effects) {
  if (!IsAlive(*m)) return;
  const absl::Duration silence = now - m->last_heard, limit = SuspectedAfter(*m);
  const std::string why = absl::StrCat("silent for ", SecondsText(silence),
                                       m->is_connected ? "" : " and disconnected", " (limit ");
  const std::string who = LifeText({name, m->incarnation});
  if (!m->is_suspect && silence >= limit) {
    Change(name, m, m->phase, MemberChange::kSuspected,
           absl::StrCat(who, " is suspect: ", why, SecondsText(limit), ")"), now, effects);
  }
  if (silence >= 2 * limit) {
    Change(name, m, SiteState::kDead, MemberChange::kDied,
           absl::StrCat(who, " died: ", why, SecondsText(2 * limit), ")"), now, effects);
  }
}

void Membership::NobodyListened(absl::Duration absence, absl::Time now) {
  for (auto& [name, m] : members_) {
    // A restored member may be heard as of a time to come already.
    if (m.last_heard < now) m.last_heard = std::min(now, m.last_heard + absence);
    m.last_beat = absl::InfinitePast();  // the gap says nothing about the link
  }
}

MemberEffects Membership::Tick(absl::Time now) {
  MemberEffects effects;
  for (auto& [name, m] : members_) Judge(name, &m, now, &effects);
  return effects;
}

absl::Time Membership::NextDeadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const auto& [name, m] : members_) {
    if (!IsAlive(m)) continue;
    const absl::Duration limit = SuspectedAfter(m);
    next = std::min(next, m.last_heard + (m.is_suspect ? 2 * limit : limit));
  }
  return next;
}

MemberEffects Membership::FreezeView(absl::Time now) {
  MemberEffects effects;
  for (auto it = members_.begin(); it != members_.end();) {
    auto& [name, m] = *it;
    const std::string who = LifeText({name, m.incarnation});
    if (m.phase == SiteState::kReady && !m.is_suspect) {
      Change(name, &m, SiteState::kActive, MemberChange::kJoined, absl::StrCat(who, " joined the view"), now,
             &effects);
    } else if (m.phase == SiteState::kDraining) {
      Change(name, &m, SiteState::kLeft, MemberChange::kLeft,
             absl::StrCat(who, " left at the end of the round"), now, &effects);
    }
    const bool is_forgotten = !IsAlive(m) && ++m.boundaries_gone > kRememberedBoundaries;
    it = is_forgotten ? members_.erase(it) : std::next(it);
  }
  std::vector<SiteLife> members;
  for (const auto& [name, m] : members_) {
    if (m.phase == SiteState::kActive) members.push_back({name, m.incarnation});
  }
  if (members != view_.members) {
    view_.members = std::move(members);
    ++view_.id;
  }
  return effects;
}

int Membership::living() const {
  return std::count_if(members_.begin(), members_.end(), [](const auto& m) { return IsAlive(m.second); });
}

SiteLife Membership::Holder(const SiteName& name) const {
  auto it = members_.find(name);
  return {name, it == members_.end() ? 0 : it->second.incarnation};
}

std::vector<MemberStatus> Membership::Snapshot(absl::Time now) const {
  std::vector<MemberStatus> out;
  for (const auto& [name, m] : members_) {
    MemberStatus s;
    s.life = {name, m.incarnation};
    s.state = m.is_suspect ? SiteState::kSuspect : m.phase;
    s.is_connected = m.is_connected && IsAlive(m);
    s.in_state = now - m.since;
    s.silence = std::max(absl::ZeroDuration(), now - m.last_heard);
    s.suspected_after = SuspectedAfter(m);
    s.reason = m.reason;
    out.push_back(std::move(s));
  }
  return out;
}

}  // namespace isthmus
