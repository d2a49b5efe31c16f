// Which tensors of a frame claim values far above what the last rounds had.
//
// E + M bounds a tensor's largest value from above, in bits. The sum keeps only 34 bits below the largest of
// the included frames (ROUNDS §8), so one bogus exponent would push all the others out. Only the upper side
// is judged: a value far too small pushes nobody out and does no harm. Not thread-safe.
#ifndef ISTHMUS_COMPRESSION_EXPONENT_HISTORY_H_
#define ISTHMUS_COMPRESSION_EXPONENT_HISTORY_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compression/codec.h"

namespace isthmus {

// A tensor of a frame that is to be refused.
struct ImplausibleTensor {
  uint32_t frame = 0;   // index into the frames given
  uint32_t tensor = 0;  // index in the layout
  std::string reason;  // "exponent 40 (2^60) is above 2^−3, 10 bits over the largest of the last 16 rounds"
};

// Bounded memory: `rounds` numbers a tensor.
class ExponentHistory {
 public:
  static constexpr int kSlackBits = 10;

  // Remembers the last `rounds` committed rounds, at least 1.
  explicit ExponentHistory(int rounds = 16) : rounds_(rounds) {}

  // Judges a round's frames together, before they are summed. A tensor may be up to kSlackBits above the
  // largest of the rounds remembered; one that no remembered round had, up to as much above the lower median
  // of these frames. Ordered by frame, then tensor: each frame's tensors are its WeightedFrame::refused. All
  // frames have equally many tensors.
  std::vector<ImplausibleTensor> Check(absl::Span<const DecodedFrame* const> frames) const;

  // Takes in the frames a round committed, without their refused tensors (`refused` as Check gave it for
  // them).
  void Committed(absl::Span<const DecodedFrame* const> frames, absl::Span<const ImplausibleTensor> refused);

 private:
  const int rounds_;
  // Per tensor, of each round that had it: the largest E + M.
  std::vector<std::deque<int>> largest_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_EXPONENT_HISTORY_H_
