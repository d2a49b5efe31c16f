#include "daemon/rounds/data_leases.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/reason.h"

namespace isthmus {
namespace {

constexpr size_t kMostOpenLeases = 64;
// Far beyond any file, far below overflow.
constexpr int64_t kMostSequences = int64_t{1} << 48;

LeaseRecord Record(LeaseRecord::Kind kind, const SiteLife& life, int64_t number, const DataRange& range,
                   const Digest& frame = {}) {
  return {kind, life, number, range.pass, range.begin, range.end, frame};
}

}  // namespace

DataLeases::DataLeases(DataMode mode, int64_t sequences) : mode_(mode) {
  if (mode_ == DataMode::kShared) spaces_[""].size = std::max<int64_t>(1, sequences);
}

const SiteName& DataLeases::SpaceName(const SiteName& name) const {
  static const SiteName* const kCommon = new SiteName;
  return mode_ == DataMode::kShared ? *kCommon : name;
}

bool DataLeases::IsGone(const SiteLife& life) const {
  auto it = gone_.find(life.name);
  return it != gone_.end() && it->second >= life.incarnation;
}

absl::Status DataLeases::AddSite(const SiteName& name, int64_t sequences) {
  if (sequences < 1 || sequences > kMostSequences) {
    return absl::InvalidArgumentError(absl::StrCat("site ", name, " has ", sequences, " sequences of data"));
  }
  Space& space = spaces_[SpaceName(name)];
  if (space.size == 0) space.size = sequences;
  if (space.size == sequences) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("site ", name, " has ", sequences, " sequences of data, ",
                                                 mode_ == DataMode::kShared ? "the run " : "before it had ",
                                                 space.size));
}

absl::StatusOr<DataLease> DataLeases::Next(const SiteLife& life, int64_t wanted) {
  if (IsGone(life)) {
    return absl::FailedPreconditionError(absl::StrCat(LifeText(life), " is gone and gets no data lease"));
  }
  auto space_it = spaces_.find(SpaceName(life.name));
  if (space_it == spaces_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(LifeText(life), " has not said how much data it has"));
  }
  Holder& holder = holders_[life];
  if (holder.unused.size() >= kMostOpenLeases) {
    return absl::ResourceExhaustedError(
        absl::StrCat(LifeText(life), " holds ", kMostOpenLeases, " data leases it has not used up"));
  }
  Space& space = space_it->second;
  wanted = std::clamp<int64_t>(wanted, 1, space.size);
  DataRange range;
  if (!space.returned.empty()) {
    range = space.returned.First();
    range.end = std::min(range.end, range.begin + wanted);
    space.returned.Take(range);
  } else {
    if (space.cursor == space.size) {
      space.cursor = 0;
      ++space.pass;
    }
    range = {space.pass, space.cursor, std::min(space.size, space.cursor + wanted)};
    space.cursor = range.end;
  }
  holder.unused[++holder.last_number].Add(range);
  return DataLease{life, holder.last_number, range};
}

std::optional<DataLease> DataLeases::Find(const SiteLife& life, int64_t number) const {
  auto holder = holders_.find(life);
  if (holder == holders_.end()) return std::nullopt;
  auto unused = holder->second.unused.find(number);
  if (unused == holder->second.unused.end()) return std::nullopt;
  return DataLease{life, number, unused->second.First()};
}

void DataLeases::MarkTrained(Space* space, const DataRange& r) {
  space->trained_again += r.size() - space->covered.Add(r);
}

int64_t DataLeases::GiveBack(const SiteName& name, RangeSet* from) {
  const int64_t given = from->size();
  Space& space = spaces_.at(SpaceName(name));
  for (const DataRange& r : from->All()) space.returned.Add(r);
  *from = RangeSet();
  return given;
}

absl::Status DataLeases::Contributed(const SiteLife& life, const Digest& frame,
                                     absl::Span<const TrainedRange> ranges) {
  if (frame.is_zero()) {
    return absl::InvalidArgumentError(absl::StrCat(LifeText(life), " contributed without a frame digest"));
  }
  if (IsGone(life)) {
    return absl::FailedPreconditionError(absl::StrCat(LifeText(life), " is gone: its ranges do not count"));
  }
  auto it = holders_.find(life);
  if (it == holders_.end()) {
    return absl::FailedPreconditionError(absl::StrCat(LifeText(life), " contributed without a data lease"));
  }
  Holder& holder = it->second;
  if (holder.pending.count(frame) > 0) return absl::OkStatus();
  // Tried on copies, so that a bad range leaves everything as it was.
  std::map<int64_t, RangeSet> left;
  std::vector<DataRange> trained;
  for (const TrainedRange& r : ranges) {
    auto lease = holder.unused.find(r.lease);
    const bool is_known = lease != holder.unused.end();
    RangeSet* unused = is_known ? &left.emplace(r.lease, lease->second).first->second : nullptr;
    const DataRange range{is_known ? lease->second.First().pass : 0, r.begin, r.end};
    if (!is_known || r.begin >= r.end || !unused->Contains(range)) {
      return absl::InvalidArgumentError(absl::StrCat(LifeText(life), " reports [", r.begin, ", ", r.end,
                                                     ") of data lease ", r.lease,
                                                     " as trained, which is not an unused part of it"));
    }
    unused->Take(range);
    trained.push_back(range);
  }
  for (auto& [number, unused] : left) {
    if (unused.empty())
      holder.unused.erase(number);
    else
      holder.unused[number] = std::move(unused);
  }
  PendingFrame& pending = holder.pending[frame];
  pending.ranges = std::exchange(holder.carried, RangeSet());
  for (const DataRange& r : trained) {
    MarkTrained(&spaces_.at(SpaceName(life.name)), r);
    pending.ranges.Add(r);
  }
  return absl::OkStatus();
}

void DataLeases::Committed(const SiteName& site, const Digest& frame) { Settle(site, frame, true); }

void DataLeases::Dropped(const SiteName& site, const Digest& frame) { Settle(site, frame, false); }

void DataLeases::Settle(const SiteName& site, const Digest& frame, bool is_committed) {
  // A returner may have sent its former life's frame again, so all lives of the name are asked.
  for (auto it = holders_.lower_bound({site, 0}); it != holders_.end() && it->first.name == site;) {
    auto& [life, holder] = *it;
    auto found = holder.pending.find(frame);
    if (found != holder.pending.end()) {
      PendingFrame pending = std::move(found->second);
      holder.pending.erase(found);
      if (is_committed) {
        // Learned by everybody: nobody answers for these ranges any more.
      } else if (pending.is_orphaned) {
        GiveBack(site, &pending.ranges);
      } else {
        for (const DataRange& r : pending.ranges.All()) holder.carried.Add(r);
      }
    }
    it = IsGone(life) && holder.pending.empty() ? holders_.erase(it) : std::next(it);
  }
}

int64_t DataLeases::Forfeited(const SiteLife& life, absl::Span<const TrainedRange> ranges) {
  auto it = holders_.find(life);
  if (it == holders_.end() || IsGone(life)) return 0;
  Holder& holder = it->second;
  for (const TrainedRange& r : ranges) {
    auto lease = holder.unused.find(r.lease);
    if (lease == holder.unused.end() || r.begin >= r.end) continue;
    for (const DataRange& part : lease->second.Take({lease->second.First().pass, r.begin, r.end})) {
      MarkTrained(&spaces_.at(SpaceName(life.name)), part);
      holder.carried.Add(part);
    }
    if (lease->second.empty()) holder.unused.erase(lease);
  }
  for (auto& [frame, pending] : holder.pending) pending.is_orphaned = true;
  return GiveBack(life.name, &holder.carried);
}

int64_t DataLeases::SiteGone(const SiteLife& life) {
  if (IsGone(life)) return 0;
  gone_[life.name] = life.incarnation;
  int64_t given = 0;
  // Earlier lives of the name are over with it.
  for (auto it = holders_.lower_bound({life.name, 0}); it != holders_.end() && it->first.name == life.name;) {
    auto& [holder_life, holder] = *it;
    if (life.incarnation < holder_life.incarnation) break;
    for (auto& [number, unused] : holder.unused) given += GiveBack(life.name, &unused);
    holder.unused.clear();
    given += GiveBack(life.name, &holder.carried);
    for (auto& [frame, pending] : holder.pending) pending.is_orphaned = true;
    it = holder.pending.empty() ? holders_.erase(it) : std::next(it);
  }
  return given;
}

LeaseCounts DataLeases::Counts() const {
  LeaseCounts counts;
  bool is_first = true;
  for (const auto& [name, space] : spaces_) {
    counts.trained_once += space.covered.size();
    counts.trained_again += space.trained_again;
    counts.waiting += space.returned.size();
    counts.pass = is_first ? space.pass : std::min(counts.pass, space.pass);
    is_first = false;
  }
  for (const auto& [life, holder] : holders_) {
    for (const auto& [number, unused] : holder.unused) counts.outstanding += unused.size();
  }
  return counts;
}

std::vector<DataLease> DataLeases::Outstanding() const {
  std::vector<DataLease> out;
  for (const auto& [life, holder] : holders_) {
    for (const auto& [number, unused] : holder.unused) {
      for (const DataRange& r : unused.All()) out.push_back({life, number, r});
    }
  }
  return out;
}

std::vector<LeaseRecord> DataLeases::Export() const {
  using Kind = LeaseRecord::Kind;
  std::vector<LeaseRecord> out;
  for (const auto& [name, space] : spaces_) {
    const SiteLife who{name, 0};
    out.push_back(Record(Kind::kSpace, who, space.trained_again, {space.pass, space.cursor, space.size}));
    for (const DataRange& r : space.returned.All()) out.push_back(Record(Kind::kReturned, who, 0, r));
    for (const DataRange& r : space.covered.All()) out.push_back(Record(Kind::kCovered, who, 0, r));
  }
  for (const auto& [name, incarnation] : gone_)
    out.push_back(Record(Kind::kGone, {name, incarnation}, 0, {}));
  for (const auto& [life, holder] : holders_) {
    out.push_back(Record(Kind::kLastLease, life, holder.last_number, {}));
    for (const auto& [number, unused] : holder.unused) {
      for (const DataRange& r : unused.All()) out.push_back(Record(Kind::kUnused, life, number, r));
    }
    for (const DataRange& r : holder.carried.All()) out.push_back(Record(Kind::kTrained, life, 0, r));
    for (const auto& [frame, pending] : holder.pending) {
      out.push_back(Record(Kind::kFrame, life, pending.is_orphaned ? 1 : 0, {}, frame));
      for (const DataRange& r : pending.ranges.All())
        out.push_back(Record(Kind::kTrained, life, 0, r, frame));
    }
  }
  return out;
}

absl::Status DataLeases::ImportRecord(const LeaseRecord& record) {
  using Kind = LeaseRecord::Kind;
  const absl::Status bad = absl::DataLossError(absl::StrCat(
      "data lease record of kind ", static_cast<int>(record.kind), " for ", LifeText(record.life), ", pass ",
      record.pass, " [", record.begin, ", ", record.end, ") contradicts those before it"));
  const DataRange range{record.pass, record.begin, record.end};
  if (record.pass < 0 || record.begin < 0 || record.number < 0) return bad;
  if (record.kind == Kind::kSpace) {
    const bool is_named_right = record.life.name.empty() == (mode_ == DataMode::kShared);
    if (!is_named_right || record.end < 1 || record.end > kMostSequences || record.begin > record.end)
      return bad;
    Space space;
    space.size = record.end;
    space.pass = record.pass;
    space.cursor = record.begin;
    space.trained_again = record.number;
    return spaces_.emplace(record.life.name, space).second ? absl::OkStatus() : bad;
  }
  if (record.kind == Kind::kGone) {
    gone_[record.life.name] = record.life.incarnation;
    return absl::OkStatus();
  }
  auto space = spaces_.find(SpaceName(record.life.name));
  if (space == spaces_.end()) return bad;
  if (record.kind == Kind::kLastLease) {
    holders_[record.life].last_number = record.number;
    return absl::OkStatus();
  }
  const bool is_range_good =
      range.begin < range.end && range.end <= space->second.size && range.pass <= space->second.pass;
  if (record.kind != Kind::kFrame && !is_range_good) return bad;
  if (record.kind == Kind::kReturned || record.kind == Kind::kCovered) {
    RangeSet& set = record.kind == Kind::kReturned ? space->second.returned : space->second.covered;
    return set.Add(range) == range.size() ? absl::OkStatus() : bad;
  }
  auto holder_it = holders_.find(record.life);
  if (holder_it == holders_.end()) return bad;
  Holder& holder = holder_it->second;
  if (record.kind == Kind::kFrame) {
    holder.pending[record.frame].is_orphaned = record.number != 0;
    return record.frame.is_zero() ? bad : absl::OkStatus();
  }
  if (record.kind == Kind::kUnused) {
    if (record.number < 1 || record.number > holder.last_number) return bad;
    return holder.unused[record.number].Add(range) == range.size() ? absl::OkStatus() : bad;
  }
  if (record.kind != Kind::kTrained) return bad;
  if (record.frame.is_zero()) return holder.carried.Add(range) == range.size() ? absl::OkStatus() : bad;
  auto pending = holder.pending.find(record.frame);
  if (pending == holder.pending.end()) return bad;
  return pending->second.ranges.Add(range) == range.size() ? absl::OkStatus() : bad;
}

absl::Status DataLeases::CheckDisjoint() const {
  std::map<SiteName, RangeSet> seen;
  for (const auto& [name, space] : spaces_) seen[name] = space.returned;
  for (const DataLease& lease : Outstanding()) {
    if (seen[SpaceName(lease.life.name)].Add(lease.range) == lease.range.size()) continue;
    return absl::DataLossError(absl::StrCat("data lease ", lease.number, " of ", LifeText(lease.life),
                                            " overlaps with another one"));
  }
  return absl::OkStatus();
}

absl::StatusOr<DataLeases> DataLeases::Import(DataMode mode, absl::Span<const LeaseRecord> records) {
  DataLeases leases(mode, 0);
  leases.spaces_.clear();
  for (const LeaseRecord& record : records) {
    if (absl::Status status = leases.ImportRecord(record); !status.ok()) return status;
  }
  if (mode == DataMode::kShared && leases.spaces_.empty()) {
    return absl::DataLossError("data lease records lack the one that says how many sequences there are");
  }
  if (absl::Status status = leases.CheckDisjoint(); !status.ok()) return status;
  return leases;
}

}  // namespace isthmus
