#include "daemon/coordinator/site_book.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace isthmus {
namespace {

constexpr absl::Duration kLongestEstimate = absl::Seconds(3);
// No run comes near it, and sums of such figures stay whole numbers.
constexpr int64_t kMostOfAnything = int64_t{1} << 48;

}  // namespace

void MakePlausible(google::protobuf::Message* figures) {
  using google::protobuf::FieldDescriptor;
  const google::protobuf::Reflection& reflection = *figures->GetReflection();
  const google::protobuf::Descriptor& type = *figures->GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->is_repeated()) continue;
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE) {
      const double value = reflection.GetDouble(*figures, field);
      if (!std::isfinite(value)) reflection.SetDouble(figures, field, 0);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
      const int64_t value = reflection.GetInt64(*figures, field);
      reflection.SetInt64(figures, field, std::clamp<int64_t>(value, -1, kMostOfAnything));
    }
  }
}

void SiteBook::ProgressReported(const SiteName& site, const SiteProgress& progress, absl::Time now) {
  SiteEntry& e = sites_[site];
  e.progress_at = now;
  e.progress = progress;
  MakePlausible(&e.progress);
  e.has_progress = true;
  if (!std::exchange(e.has_earlier_seconds, false)) return;
  e.computed_before = e.progress.compute_seconds();
  e.waited_before = e.progress.wait_seconds();
}

int64_t SiteBook::ProcessGone(const SiteName& site, int64_t spoken_for) {
  SiteEntry& e = sites_[site];
  if (e.is_forfeit_booked) return 0;
  e.is_forfeit_booked = true;
  int64_t unreported = 0;
  if (e.has_progress && e.lost_at > e.progress_at) {
    // A longer silence says nothing: it may have been waiting, or gone for long.
    const absl::Duration silence = std::min(e.lost_at - e.progress_at, kLongestEstimate);
    unreported = static_cast<int64_t>(e.progress.steps_per_second() * absl::ToDoubleSeconds(silence));
  }
  const int64_t steps = std::max<int64_t>(
      0, e.progress.inner_steps() + unreported - std::max(e.steps_at_last_commit, spoken_for));
  e.forfeited_steps += steps;
  return steps;
}

int64_t SiteBook::NewProcess(const SiteName& site, int64_t incarnation, int64_t spoken_for) {
  const int64_t steps = ProcessGone(site, spoken_for);
  SiteEntry& e = sites_[site];
  e.progress = SiteProgress();
  e.has_progress = e.is_forfeit_booked = e.has_earlier_seconds = false;
  e.first_incarnation = incarnation;
  e.steps_at_last_commit = 0;
  e.lost_at = absl::InfinitePast();
  e.computed_before = e.waited_before = 0;
  return steps;
}

void SiteBook::Forfeited(const SiteName& site, const isthmus::Forfeited& f) {
  SiteEntry& e = sites_[site];
  e.forfeited_square_sum += std::max(0.0, f.square_sum());
  e.forfeited_steps += std::max<int64_t>(0, f.steps());
  // What it reported itself must not be booked again should it die now.
  e.steps_at_last_commit = std::max(e.steps_at_last_commit, f.inner_steps());
}

void SiteBook::Included(const SiteLife& life, int64_t steps, int64_t process_steps) {
  SiteEntry& e = sites_[life.name];
  ++e.rounds_included;
  e.contributed_steps += steps;
  if (life.incarnation >= e.first_incarnation)
    e.steps_at_last_commit = std::max(e.steps_at_last_commit, process_steps);
}

void SiteBook::Decayed(const SiteName& site, double told) {
  SiteEntry& e = sites_[site];
  // Less than before: another process, which began anew.
  e.forfeited_square_sum += told >= e.decayed_at_last_commit ? told - e.decayed_at_last_commit : told;
  e.decayed_at_last_commit = told;
}

void SiteBook::Missed(const SiteName& site, const std::string& reason) {
  SiteEntry& e = sites_[site];
  ++e.rounds_missed;
  e.last_miss_reason = reason;
}

void SiteBook::CountSecondsFromNow() {
  for (auto& [site, e] : sites_) e.has_earlier_seconds = true;
}

void SiteBook::TakeRoundSeconds(double* computed, double* waited) {
  *computed = *waited = 0;
  for (auto& [site, e] : sites_) {
    *computed += std::max(0.0, e.progress.compute_seconds() - e.computed_before);
    *waited += std::max(0.0, e.progress.wait_seconds() - e.waited_before);
    e.computed_before = e.progress.compute_seconds();
    e.waited_before = e.progress.wait_seconds();
  }
}

}  // namespace isthmus
