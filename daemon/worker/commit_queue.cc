#include "daemon/worker/commit_queue.h"

#include <utility>

namespace isthmus {

bool CommitQueue::Add(const CommitRecord& record, int64_t anchor_round) {
  const int64_t round = record.key().round();
  if (round <= anchor_round || commits_.count(round) > 0) return false;
  commits_[round].record = record;
  return true;
}

std::vector<int64_t> CommitQueue::TakeMissing() {
  std::vector<int64_t> out;
  for (auto& [round, entry] : commits_) {
    if (entry.has_bytes || entry.is_fetching) continue;
    entry.is_fetching = true;
    out.push_back(round);
  }
  return out;
}

void CommitQueue::Fetched(int64_t round, std::string update) {
  auto it = commits_.find(round);
  if (it == commits_.end()) return;
  it->second.is_fetching = false;
  it->second.has_bytes = true;
  it->second.update = std::move(update);
}

void CommitQueue::FetchFailed(int64_t round) {
  auto it = commits_.find(round);
  if (it != commits_.end()) it->second.is_fetching = false;
}

bool CommitQueue::TakeNext(int64_t anchor_round, Ready* ready) {
  if (commits_.empty()) return false;
  auto it = commits_.begin();
  if (!it->second.has_bytes || it->second.record.base_round() != anchor_round) return false;
  ready->record = std::move(it->second.record);
  ready->update = std::move(it->second.update);
  commits_.erase(it);
  return true;
}

void CommitQueue::DropUpTo(int64_t anchor_round) {
  commits_.erase(commits_.begin(), commits_.upper_bound(anchor_round));
}

const CommitRecord* CommitQueue::Find(int64_t round) const {
  auto it = commits_.find(round);
  return it == commits_.end() ? nullptr : &it->second.record;
}

const CommitRecord* CommitQueue::FindFrame(const std::string& site, const std::string& frame_digest) const {
  for (const auto& [round, entry] : commits_) {
    for (const IncludedContribution& c : entry.record.included()) {
      if (c.frame_digest() == frame_digest && c.life().site() == site) return &entry.record;
    }
  }
  return nullptr;
}

}  // namespace isthmus
