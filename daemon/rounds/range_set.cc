#include "daemon/rounds/range_set.h"

#include <algorithm>
#include <iterator>

namespace isthmus {

int64_t RangeSet::Add(const DataRange& r) {
  const int64_t before = size_;
  Take(r);
  int64_t begin = r.begin, end = r.end;
  auto next = ends_.lower_bound({r.pass, begin});
  if (next != ends_.end() && next->first == std::make_pair(r.pass, end)) {
    end = next->second;
    next = ends_.erase(next);
  }
  if (next != ends_.begin()) {
    auto before_it = std::prev(next);
    if (before_it->first.first == r.pass && before_it->second == begin) {
      begin = before_it->first.second;
      ends_.erase(before_it);
    }
  }
  ends_[{r.pass, begin}] = end;
  size_ += r.size();
  return size_ - before;
}

std::vector<DataRange> RangeSet::Take(const DataRange& r) {
  std::vector<DataRange> taken;
  auto it = ends_.lower_bound({r.pass, r.begin});
  if (it != ends_.begin()) {
    auto before = std::prev(it);
    if (before->first.first == r.pass && before->second > r.begin) it = before;
  }
  while (it != ends_.end() && it->first.first == r.pass && it->first.second < r.end) {
    const int64_t begin = it->first.second, end = it->second;
    it = ends_.erase(it);
    if (begin < r.begin) ends_[{r.pass, begin}] = r.begin;
    if (end > r.end) ends_[{r.pass, r.end}] = end;
    taken.push_back({r.pass, std::max(begin, r.begin), std::min(end, r.end)});
    size_ -= taken.back().size();
  }
  return taken;
}

bool RangeSet::Contains(const DataRange& r) const {
  auto it = ends_.upper_bound({r.pass, r.begin});
  if (it == ends_.begin()) return false;
  --it;
  return it->first.first == r.pass && it->second >= r.end;
}

std::vector<DataRange> RangeSet::All() const {
  std::vector<DataRange> out;
  for (const auto& [start, end] : ends_) out.push_back({start.first, start.second, end});
  return out;
}

DataRange RangeSet::First() const {
  const auto& [start, end] = *ends_.begin();
  return {start.first, start.second, end};
}

}  // namespace isthmus
