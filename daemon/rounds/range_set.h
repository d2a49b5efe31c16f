// Sets of positions in data passes, kept as few ranges.
#ifndef ISTHMUS_DAEMON_ROUNDS_RANGE_SET_H_
#define ISTHMUS_DAEMON_ROUNDS_RANGE_SET_H_

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace isthmus {

// Positions [begin, end) of one data pass.
struct DataRange {
  int64_t pass = 0;  // from 0
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const DataRange& o) const { return pass == o.pass && begin == o.begin && end == o.end; }
  bool operator<(const DataRange& o) const {
    return std::tie(pass, begin, end) < std::tie(o.pass, o.begin, o.end);
  }
};

// Disjoint ranges in order, neighbours merged. Ranges given to it must not be empty. Not thread-safe.
class RangeSet {
 public:
  // Adds the positions of `r` that are not in yet; returns how many those are.
  int64_t Add(const DataRange& r);
  // Removes the positions of `r` that are in; returns them.
  std::vector<DataRange> Take(const DataRange& r);

  bool Contains(const DataRange& r) const;
  // Positions in, over all passes.
  int64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::vector<DataRange> All() const;
  // The least range; must not be empty.
  DataRange First() const;

 private:
  std::map<std::pair<int64_t, int64_t>, int64_t> ends_;  // (pass, begin) → end
  int64_t size_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_ROUNDS_RANGE_SET_H_
