#include "daemon/app/sim/sim_invariants.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/reference_sum.h"
#include "daemon/rounds/range_set.h"
#include "daemon/store/commit_record.h"

namespace isthmus {
namespace {

// Adds ± the decoded values of a frame's tensors to `sums`.
void AddDecoded(const Layout& layout, const DecodedFrame& frame, const std::vector<bool>& included,
                double sign, std::vector<double>* sums) {
  for (int t = 0; t < layout.tensors(); ++t) {
    if (!included.empty() && !included[t]) continue;
    const DecodedTensor& d = frame.tensors[t];
    for (size_t i = 0; i < d.mantissas.size(); ++i) {
      const int64_t at = d.form == TensorForm::kDense ? static_cast<int64_t>(i) : d.positions[i];
      (*sums)[layout.offset(t) + at] += sign * static_cast<double>(DecodedValue(d.mantissas[i], d.exponent));
    }
  }
}

// What applying an update subtracts before the outer rate.
std::vector<float> MeansOf(const Layout& layout, const Update& update) {
  std::vector<float> means(layout.total());
  for (int t = 0; t < layout.tensors(); ++t) {
    const UpdateTensor& tensor = update.tensors[t];
    for (size_t i = 0; i < tensor.sums.size(); ++i) {
      const int64_t at = tensor.form == TensorForm::kDense ? static_cast<int64_t>(i) : tensor.positions[i];
      const double weight = update.averaging == Averaging::kPeers ? static_cast<double>(update.total_weight)
                                                                  : tensor.weights[i];
      if (weight == 0) continue;
      means[layout.offset(t) + at] =
          static_cast<float>(static_cast<double>(tensor.sums[i]) * std::ldexp(1.0, tensor.exponent) / weight);
    }
  }
  return means;
}

}  // namespace

std::string InvariantName(Invariant invariant) {
  static constexpr const char* kNames[] = {
      "one commit", "no going back", "base",   "digests",         "mass",         "sum",
      "progress",   "bytes",         "leases", "forfeited steps", "process ended"};
  return kNames[static_cast<int>(invariant)];
}

SimInvariants::SimInvariants(SimRun* run, const FrameRecorder* frames, const UpdateBytes* updates,
                             Options options)
    : run_(run),
      frames_(frames),
      updates_(updates),
      options_(options),
      ops_(MakeCpuDeviceOps()),
      anchor_(run->FirstAnchor()) {
  digest_of_round_[0] = run_->table().StateDigestOf(StateStamp(), anchor_, {}).ToBytes();
}

void SimInvariants::Report(Invariant invariant, const std::string& what) {
  if (violations_.size() > 20) return;
  violations_.emplace_back(invariant, absl::StrCat("[", InvariantName(invariant), "] event ", events_, ", ",
                                                   absl::FormatDuration(run_->clock().SteadyNow() -
                                                                        (absl::UnixEpoch() + absl::Hours(1))),
                                                   ": ", what));
}

void SimInvariants::AfterEvent() {
  ++events_;
  LookAtCommits();
  for (const auto& [site, process] : run_->workers()) LookAtWorker(site, process.get());
  if (events_ % 64 == 0) CheckLeases();
}

void SimInvariants::LookAtCommits() {
  const SimRun::CoordinatorProcess* c = run_->coordinator();
  if (c == nullptr || c->role == nullptr) return;
  const std::vector<CommitRecord>& now = c->role->commits();
  if (c->id != coordinator_) {
    if (coordinator_ != 0) ++restarts_;
    coordinator_ = c->id;
    for (auto& [site, books] : books_) books.unbooked = 0;  // known to nobody any more
    if (now.size() < commits_.size()) {
      Report(Invariant::kNoGoingBack, absl::StrCat("a restarted coordinator has ", now.size(),
                                                   " commits, there were ", commits_.size()));
    }
    for (size_t i = 0; i < std::min(now.size(), commits_.size()); ++i) {
      if (now[i].SerializeAsString() == commit_bytes_[i]) continue;
      Report(Invariant::kNoGoingBack, absl::StrCat("the commit of round ", commits_[i].key().round(),
                                                   " changed over a restart of the coordinator"));
    }
  }
  if (now.size() < commits_.size()) {
    Report(Invariant::kNoGoingBack,
           absl::StrCat("commits shrank from ", commits_.size(), " to ", now.size()));
  }
  if (now.size() <= commits_.size()) return;
  while (commits_.size() < now.size()) TakeCommit(now[commits_.size()]);
  CheckKeepingUp(commits_.back());
  CheckLeases();
  const AnchorKeeper& keeper = c->role->anchor();
  if (keeper.stamp().round != commits_.back().key().round()) return;  // the next one is being summed
  if (keeper.AnchorDigest().ToBytes() != commits_.back().state_digest()) {
    Report(Invariant::kDigests, absl::StrCat("the coordinator's anchor after round ", keeper.stamp().round,
                                             " has another digest than it committed"));
  }
}

void SimInvariants::TakeCommit(const CommitRecord& record) {
  const int64_t round = record.key().round();
  const int64_t before = commits_.empty() ? 0 : commits_.back().key().round();
  if (round <= before) {
    Report(Invariant::kOneCommit, absl::StrCat("round ", round, " is committed after round ", before));
  }
  if (record.base_digest() != digest_of_round_[before] || record.base_round() != before) {
    Report(Invariant::kBase,
           absl::StrCat("round ", round, " is committed on the anchor of round ", record.base_round(),
                        ", not on the last committed state (round ", before, ")"));
  }
  commits_.push_back(record);
  commit_bytes_.push_back(record.SerializeAsString());
  digest_of_round_[round] = record.state_digest();
  auto bytes = updates_->find(record.update_digest());
  if (bytes == updates_->end()) {
    return Report(Invariant::kSum, absl::StrCat("the update of round ", round, " was never written"));
  }
  absl::StatusOr<Update> update = DecodeUpdate(run_->table().layout(), bytes->second);
  if (!update.ok() || DigestOf(absl::string_view(bytes->second)).ToBytes() != record.update_digest()) {
    return Report(Invariant::kSum, absl::StrCat("the update of round ", round, " is damaged"));
  }
  CheckWeights(record);
  CheckSum(record, *update);
  CheckState(record, *update);
  std::set<std::pair<std::string, std::string>> seen;
  for (int i = 0; i < record.included_size(); ++i) {
    const IncludedContribution& c = record.included(i);
    const FrameRecorder::Frame* frame = frames_->Find(c.life().site(), c.frame_digest());
    if (frame == nullptr) continue;  // CheckSum has said so
    Process::Counted counted;
    counted.round = round;
    counted.frame = c.frame_digest();
    counted.included.assign(run_->table().layout().tensors(), true);
    for (const LeftOut& l : record.left_out()) {
      if (l.included_index() == i) counted.included[l.tensor()] = false;
    }
    auto process = processes_.find(frame->process);
    if (process != processes_.end()) process->second.waiting.push_back(std::move(counted));
  }
}

void SimInvariants::CheckKeepingUp(const CommitRecord& record) {
  constexpr absl::Duration kToSettle =
      absl::Seconds(60);  // the last clog, dial again, be dead, join, catch up
  constexpr int64_t kMostBehind = 4, kMostMissed = 12;
  const absl::Time now = run_->clock().SteadyNow();
  for (const auto& [site, process] : run_->workers()) {
    Process& p = ProcessOf(site, *process);
    if (process->worker->has_ended() || process->worker->is_leaving()) continue;
    if (now < calm_from_ + kToSettle || now < p.begun + kToSettle) continue;
    ++p.behind;
    ++p.not_included;
    if (p.newest_round >= 0 && commits_.size() > 3 &&
        p.newest_round >= commits_[commits_.size() - 4].key().round()) {
      p.behind = 0;
    }
    for (const IncludedContribution& c : record.included()) {
      if (c.life().site() == site) p.not_included = 0;
    }
    if (p.behind > kMostBehind) {
      Report(Invariant::kProgress, absl::StrCat("site ", site, " stays at round ", p.newest_round,
                                                " while round ", record.key().round(), " is committed"));
    }
    if (p.not_included > kMostMissed) {
      Report(Invariant::kProgress, absl::StrCat("no frame of site ", site, " is in the last ", kMostMissed,
                                                " commits up to round ", record.key().round()));
    }
  }
}

void SimInvariants::CheckWeights(const CommitRecord& record) {
  std::vector<int64_t> measures;
  int64_t total = 0;
  const auto kind = run_->options().run.exchange().weights();
  for (const IncludedContribution& c : record.included()) {
    measures.push_back(kind == ExchangeConfig::TOKENS ? std::max<int64_t>(1, c.tokens()) : 1);
    total += c.weight();
  }
  const std::vector<int32_t> weights = ContributionWeights(measures);
  for (int i = 0; i < record.included_size(); ++i) {
    if (record.included(i).weight() == weights[i]) continue;
    return Report(Invariant::kSum, absl::StrCat("round ", record.key().round(), " gives site ",
                                                record.included(i).life().site(), " the weight ",
                                                record.included(i).weight(), ", not ", weights[i]));
  }
  if (total != record.total_weight()) {
    Report(Invariant::kSum, absl::StrCat("round ", record.key().round(), ": weights add up to ", total,
                                         ", not ", record.total_weight()));
  }
}

void SimInvariants::CheckSum(const CommitRecord& record, const Update& update) {
  const Layout& layout = run_->table().layout();
  std::vector<WeightedFrame> frames;
  for (const IncludedContribution& c : record.included()) {
    const FrameRecorder::Frame* frame = frames_->Find(c.life().site(), c.frame_digest());
    if (frame == nullptr) {
      return Report(Invariant::kSum,
                    absl::StrCat("round ", record.key().round(), " includes a frame that site ",
                                 c.life().site(), " never made"));
    }
    WeightedFrame w;
    w.frame = &frame->decoded;
    w.weight = c.weight();
    frames.push_back(w);
  }
  const Averaging averaging = run_->options().run.exchange().averaging() == ExchangeConfig::CONTRIBUTORS
                                  ? Averaging::kContributors
                                  : Averaging::kPeers;
  Update reference = ReferenceSum(layout, frames, averaging);
  // Tensors that were refused as implausible are left out beyond what the formula itself leaves out.
  for (const LeftOut& l : record.left_out()) {
    const std::vector<uint16_t>& by_formula = reference.tensors[l.tensor()].left_out;
    if (std::find(by_formula.begin(), by_formula.end(), l.included_index()) == by_formula.end())
      frames[l.included_index()].refused.push_back(l.tensor());
  }
  for (WeightedFrame& f : frames) std::sort(f.refused.begin(), f.refused.end());
  reference = ReferenceSum(layout, frames, averaging);
  if (!record.update_codec().empty()) return CheckEncodedAnew(record, reference, update);
  if (SameUpdate(reference, update)) return;
  Report(Invariant::kSum, absl::StrCat("the update of round ", record.key().round(),
                                       " is not the weighted sum of its frames"));
}

// What went out must be what the codec makes of what the hub carried and the round's mean together, and what
// the hub carries from then on must be the rest.
void SimInvariants::CheckEncodedAnew(const CommitRecord& record, const Update& exact, const Update& update) {
  const Layout& layout = run_->table().layout();
  residual_.resize(layout.total());
  std::vector<float> x = MeansOf(layout, exact);
  for (size_t i = 0; i < x.size(); ++i) x[i] = residual_[i] + x[i];
  const std::vector<float> sent = MeansOf(layout, update);
  std::vector<double> right(x.begin(), x.end());
  const bool is_flush = record.update_codec() == kFlushUpdate;
  if (!is_flush) {
    const auto codec = ParseCodecSpec(record.update_codec());
    const std::vector<float> zero(x.size());
    const auto frame = (*codec)->Encode(layout, x, zero);
    right.assign(x.size(), 0.0);
    AddDecoded(layout, *(*codec)->Decode(layout, *frame), {}, 1, &right);
  }
  for (int t = 0; t < layout.tensors(); ++t) {
    double largest = 0;
    const int64_t from = layout.offset(t), to = from + layout.size(t);
    for (int64_t i = from; i < to; ++i) largest = std::max(largest, std::abs(right[i]));
    for (int64_t i = from; i < to; ++i) {
      if (std::abs(sent[i] - right[i]) <= (is_flush ? 0x1p-51 * largest : 0)) continue;
      return Report(Invariant::kSum, absl::StrCat("the update of round ", record.key().round(), " says ",
                                                  sent[i], " at value ", i, ", not ", right[i]));
    }
  }
  for (size_t i = 0; i < x.size(); ++i) residual_[i] = x[i] - sent[i];
  if (DigestOf(absl::Span<const float>(residual_)).ToBytes() == record.residual_digest()) return;
  Report(Invariant::kMass, absl::StrCat("what the hub carries after round ", record.key().round(),
                                        " is not what its updates have left"));
}

void SimInvariants::CheckState(const CommitRecord& record, const Update& update) {
  const Layout& layout = run_->table().layout();
  if (record.is_nesterov() && momentum_.empty()) momentum_.assign(anchor_.size(), 0.0f);
  const absl::Status applied = ops_->ApplyToAnchor(layout, update, OuterStepOf(record),
                                                   absl::MakeSpan(anchor_), absl::MakeSpan(momentum_));
  const Digest digest = run_->table().StateDigestOf(StampOf(record), anchor_, momentum_);
  if (applied.ok() && digest.ToBytes() == record.state_digest()) return;
  Report(Invariant::kDigests, absl::StrCat("the anchor rebuilt from the ledger's updates after round ",
                                           record.key().round(), " has not the committed digest"));
}

SimInvariants::Process& SimInvariants::ProcessOf(const std::string& site,
                                                 const SimRun::WorkerProcess& process) {
  Process& p = processes_[process.id];
  if (p.site.empty()) {
    p.site = site;
    p.begun = run_->clock().SteadyNow();
    p.delivered.assign(run_->table().layout().total(), 0.0);
  }
  return p;
}

void SimInvariants::LookAtWorker(const std::string& site, SimRun::WorkerProcess* process) {
  Process& p = ProcessOf(site, *process);
  if (!p.has_joined && process->worker->life().incarnation() > 0) {
    p.has_joined = true;
    Books& books = books_[site];
    books.least += std::exchange(books.unbooked, 0);
  }
  if (process->worker->has_ended()) {
    if (!p.has_ended) ProcessEnds(site);
    return;
  }
  Replica* replica = process->worker->mutable_replica();
  if (replica == nullptr || replica->anchor().empty()) return;
  const bool is_new = p.newest_round < 0;
  if (is_new) replica->TraceForfeited();
  if (!is_new && replica->stamp().round == p.stamp.round) return;
  p.stamp = replica->stamp();
  p.newest_round = std::max(p.newest_round, p.stamp.round);
  ++p.applies;
  CheckDigest(site, *replica);
  CheckMass(&p, process);
}

void SimInvariants::CheckDigest(const std::string& site, const Replica& replica) {
  auto known = digest_of_round_.find(replica.stamp().round);
  if (known == digest_of_round_.end()) {
    return Report(Invariant::kDigests, absl::StrCat("site ", site, " is at round ", replica.stamp().round,
                                                    ", which was never committed"));
  }
  const bool is_same = replica.AnchorDigest().ToBytes() == known->second;
  if (is_same) flipped_.erase(site);
  if (is_same || flipped_.count(site) > 0) return;
  Report(Invariant::kDigests,
         absl::StrCat("site ", site, "'s anchor at round ", replica.stamp().round, " has another digest"));
}

void SimInvariants::Deliver(Process* p, const Process::Counted& counted) {
  const FrameRecorder::Frame* frame = frames_->Find(p->site, counted.frame);
  AddDecoded(run_->table().layout(), frame->decoded, counted.included, 1, &p->delivered);
}

// What is in frames only: taken out of what the site carries, and not known to count.
void SimInvariants::AddOpenFrames(const Process& p, const Worker& worker, std::vector<double>* sums) const {
  const Layout& layout = run_->table().layout();
  const bool is_separate = !worker.replica()->residual().empty();
  if (is_separate) {
    for (const auto& frame : worker.returned_frames()) AddDecoded(layout, *frame, {}, 1, sums);
  }
  const DecodedFrame* pending = worker.pending_frame();
  const bool has_right = worker.has_pending_right();
  if (pending == nullptr || (has_right && !is_separate)) return;  // it is still in the parameters
  // Of one that a reset took, what the ledger does not have is open still; another's went back to its sender.
  std::vector<bool> open(layout.tensors(), true);
  for (const Process::Counted& c : p.counted) {
    if (c.frame != worker.pending_digest()) continue;
    for (int t = 0; t < layout.tensors(); ++t) open[t] = !c.included[t] && !has_right;
  }
  AddDecoded(layout, *pending, open, 1, sums);
}

void SimInvariants::CheckMass(Process* p, SimRun::WorkerProcess* process) {
  const Worker& worker = *process->worker;
  const Replica& replica = *worker.replica();
  const Layout& layout = run_->table().layout();
  std::vector<Process::Counted> later;
  for (Process::Counted& c : p->waiting) {
    if (c.round > p->newest_round) {
      later.push_back(std::move(c));
      continue;
    }
    Deliver(p, c);
    p->counted.push_back(std::move(c));
    if (p->counted.size() > 8) p->counted.erase(p->counted.begin());
  }
  p->waiting = std::move(later);
  std::vector<double> sums = p->delivered;
  AddOpenFrames(*p, worker, &sums);
  absl::Span<const float> parameters = process->trainer->parameters();
  absl::Span<const float> residual = replica.residual();
  for (int64_t i = 0; i < layout.total(); ++i) {
    const double anchor = replica.anchor()[i], parameter = parameters[i];
    const double beside = residual.empty() ? 0 : residual[i];
    const double carried = (anchor - parameter) + beside;
    const double right = carried + sums[i] + replica.forfeited()[i];
    const double done = process->trainer->inner_sum()[i];
    if (!std::isfinite(right)) continue;  // a NaN was put there, or was once
    const double scale = std::max({1.0, std::abs(anchor), std::abs(parameter), std::abs(beside)});
    const double tolerance = options_.is_exact ? 0 : 0x1p-23 * scale * (p->applies + 4) * 2;
    if (std::abs(done - right) <= tolerance) continue;
    return Report(Invariant::kMass,
                  absl::StrCat("site ", p->site, " at round ", p->stamp.round, ", value ", i,
                               ": inner steps did ", done, ", but carried ", carried, " + committed ",
                               sums[i], " + forfeited ", replica.forfeited()[i], " = ", right));
  }
}

void SimInvariants::ProcessEnds(const std::string& site) {
  SimRun::WorkerProcess* process = run_->worker(site);
  if (process == nullptr) return;
  Process& p = ProcessOf(site, *process);
  if (p.has_ended) return;
  p.has_ended = true;
  ++kills_;
  BookKill(site, *process);
  const Worker& worker = *process->worker;
  if (worker.replica() == nullptr || worker.replica()->anchor().empty() || process->trainer == nullptr)
    return;
  // A residual gives a frame away before anybody outside can see it.
  if (worker.is_encoding() && !worker.replica()->residual().empty()) return;
  if (p.newest_round >= 0) CheckMass(&p, process);
}

void SimInvariants::BookKill(const std::string& site, const SimRun::WorkerProcess& process) {
  Worker& worker = *process.worker;
  Books& books = books_[site];
  // What it did since the last heartbeat is estimated by the coordinator.
  double speed = 1;
  for (const SimSite& s : run_->options().sites) {
    if (s.name == site) speed = s.steps_per_second;
  }
  const int64_t unspoken = worker.inner_steps() - worker.settled_steps();
  books.most += unspoken + worker.Progress().forfeited_steps() + 4 + static_cast<int64_t>(speed * 8);
  const SimRun::CoordinatorProcess* c = run_->coordinator();
  // One that goes on, or that ended in order, has told itself.
  if (is_over_ || worker.has_ended() || c == nullptr || c->role == nullptr) return;
  const RunStatus status = c->role->Status(false);
  for (const SiteStatus& s : status.sites()) {
    if (s.site() != site || s.incarnation() != worker.life().incarnation()) continue;
    const int64_t spoken_for = std::max(worker.settled_steps(), worker.pending_steps());
    books.unbooked = std::max<int64_t>(0, s.progress().inner_steps() - spoken_for);
  }
}

void SimInvariants::CheckLeases() {
  const SimRun::CoordinatorProcess* c = run_->coordinator();
  if (c == nullptr || c->role == nullptr) return;
  RangeSet leased;
  for (const DataLease& lease : c->role->leases().Outstanding()) {
    if (leased.Add(lease.range) == lease.range.size()) continue;
    return Report(Invariant::kLeases, absl::StrCat("data lease ", lease.number, " of ", lease.life.name, "/",
                                                   lease.life.incarnation, " overlaps with another one"));
  }
  std::map<std::pair<int64_t, int64_t>, std::string> held;
  for (const auto& [site, process] : run_->workers()) {
    const Worker& worker = *process->worker;
    const SiteLife life{worker.life().site(), worker.life().incarnation()};
    if (worker.has_ended() || life.incarnation == 0 || !c->role->IsAlive(life)) continue;
    for (const LeasePosition& at : worker.leases().Left()) {
      auto [other, is_new] = held.emplace(std::make_pair(at.pass, at.position), site);
      if (is_new) continue;
      return Report(Invariant::kLeases,
                    absl::StrCat("sites ", site, " and ", other->second, " both hold position ", at.position,
                                 " of pass ", at.pass));
    }
  }
}

void SimInvariants::CheckBytes(int64_t resend_faults) {
  constexpr int64_t kHeader = 512, kRequest = 160, kEnvelope = 64;
  for (const SimSite& site : run_->options().sites) {
    const FrameRecorder::Sent sent = frames_->SentBy(site.name);
    const SiteTraffic& traffic = run_->network().traffic(site.name);
    const int64_t commits = commits_.size();
    // Every frame once, and once more after each fault that can have broken an upload; offers are asked again
    // in every round and session.
    const int64_t frames = sent.bytes + sent.largest * resend_faults;
    const int64_t offers = (kHeader + kEnvelope) * (sent.frames * 2 + commits + 4 * resend_faults + 8);
    const int64_t requests = (kRequest + kEnvelope) * (commits * (1 + kills_) + 4 * resend_faults + 8);
    if (traffic.data_up <= frames + offers + requests) continue;
    Report(Invariant::kBytes, absl::StrCat("site ", site.name, " sent ", traffic.data_up,
                                           " bytes of data up, budget ", frames + offers + requests, " for ",
                                           sent.frames, " frames of ", sent.bytes, " bytes"));
  }
}

void SimInvariants::CheckForfeited() {
  const SimRun::CoordinatorProcess* c = run_->coordinator();
  if (c == nullptr || c->role == nullptr || !options_.counts_forfeits) return;
  const RunStatus status = c->role->Status(false);
  for (const SiteStatus& s : status.sites()) {
    auto books = books_.find(s.site());
    if (books == books_.end()) continue;
    const bool is_gone = s.state() == "dead" || s.state() == "left";
    if (run_->is_finished() && is_gone) books->second.least += std::exchange(books->second.unbooked, 0);
    if (s.forfeited_steps() >= books->second.least && s.forfeited_steps() <= books->second.most) continue;
    Report(Invariant::kForfeited,
           absl::StrCat("site ", s.site(), " has ", s.forfeited_steps(), " forfeited steps booked, not ",
                        books->second.least, " to ", books->second.most));
  }
}

void SimInvariants::AtEnd(int64_t resend_faults) {
  is_over_ = true;
  LookAtCommits();
  for (const auto& [site, process] : run_->workers()) ProcessEnds(site);
  CheckLeases();
  CheckBytes(resend_faults + restarts_);
  CheckForfeited();
}

}  // namespace isthmus
