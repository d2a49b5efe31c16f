// How a model's values lie in one flat array: tensor after tensor, in canonical order.
#ifndef ISTHMUS_COMPRESSION_LAYOUT_H_
#define ISTHMUS_COMPRESSION_LAYOUT_H_

#include <cstdint>
#include <utility>
#include <vector>

namespace isthmus {

// Values per block: the unit of selection. Blocks never span tensors; a tensor's last one may be shorter.
inline constexpr int64_t kBlockValues = 4096;

// Immutable once built; safe to share between threads.
class Layout {
 public:
  Layout() = default;
  // `sizes`: values in each tensor, all > 0. `digest`: the layout digest agreed at join, stamped in frames.
  // `row_lengths`: values in a row of each, as row_length says; none: no tensor has rows.
  Layout(std::vector<int64_t> sizes, uint64_t digest, std::vector<int64_t> row_lengths = {})
      : sizes_(std::move(sizes)), row_lengths_(std::move(row_lengths)), digest_(digest) {
    row_lengths_.resize(sizes_.size());
    offsets_.reserve(sizes_.size() + 1);
    int64_t at = 0;
    for (int64_t n : sizes_) {
      offsets_.push_back(at);
      at += n;
    }
    offsets_.push_back(at);
  }

  int tensors() const { return static_cast<int>(sizes_.size()); }
  int64_t size(int tensor) const { return sizes_[tensor]; }
  int64_t offset(int tensor) const { return offsets_[tensor]; }
  // Values in one row of a matrix, which divides its size; 0 for a tensor without rows. The digest speaks for
  // it.
  int64_t row_length(int tensor) const { return row_lengths_[tensor]; }
  int64_t rows(int tensor) const {
    return row_lengths_[tensor] == 0 ? 0 : sizes_[tensor] / row_lengths_[tensor];
  }
  int64_t total() const { return offsets_.empty() ? 0 : offsets_.back(); }
  uint64_t digest() const { return digest_; }

 private:
  std::vector<int64_t> sizes_, row_lengths_;
  std::vector<int64_t> offsets_;
  uint64_t digest_ = 0;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_LAYOUT_H_
