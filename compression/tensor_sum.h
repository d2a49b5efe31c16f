// One tensor's exact sum over the included frames, block by block: nothing larger than a block is held.
//
// What becomes of a block's sums is the caller's: SumFrames makes an Update of them, an apply moves the
// anchor at once.
#ifndef ISTHMUS_COMPRESSION_TENSOR_SUM_H_
#define ISTHMUS_COMPRESSION_TENSOR_SUM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "compression/checked_frame.h"
#include "compression/layout.h"
#include "compression/update.h"

namespace isthmus {

inline constexpr int kSumMarkWords = kBlockValues / 64;

// The sums of one block, in scratch memory of the sum. Whoever is shown them leaves all of it zero.
struct BlockSums {
  int64_t from = 0;  // the block's first value in the tensor
  int values = 0;    // in the block, 1 … 4096
  // The sum at value i is (pairs[2i] − pairs[2i + 1]) · 2^shift, narrow[i] · 2^shift or wide[i]; the others
  // are null. Where nobody sent, 0. Pairs are not negative, and come only to those who take them.
  int16_t* pairs = nullptr;
  int32_t* narrow = nullptr;
  int shift = 0;
  int64_t* wide = nullptr;
  int32_t* weights = nullptr;  // Σ weight of those that sent it; null when not asked for
  // Bit i: somebody sent it. Null when not asked for, when the tensor is dense, and with pairs, which are
  // then both 0 only where nobody did.
  uint64_t* marks = nullptr;
};

// What a sum's user wants beside the sums.
struct SumNeeds {
  bool weights = false, marks = false;
  bool takes_pairs = false;     // when it has no weights
  const float* soon = nullptr;  // the tensor's values, which the user will touch block by block; null: none
};

// A thread's scratch memory, 80 KiB: made once, used for tensor after tensor.
class SumScratch {
 public:
  SumScratch();
  ~SumScratch();
  SumScratch(const SumScratch&) = delete;
  SumScratch& operator=(const SumScratch&) = delete;

 private:
  friend class TensorSum;
  struct Memory;
  const std::unique_ptr<Memory> memory_;
};

// Frames must have been checked (CheckSumInput) and outlive it. Const calls may run at once, each with a
// scratch of its own.
class TensorSum {
 public:
  TensorSum(int tensor, int64_t size, absl::Span<const WeightedFrame> frames);

  TensorForm form() const { return form_; }
  int32_t exponent() const { return exponent_; }  // E_min
  const std::vector<uint16_t>& left_out() const { return left_out_; }
  // Most positions the sum can have.
  size_t MostPositions() const;

  // Shows every block of a tensor that is not absent, in order; also those without a sum.
  void Run(const SumNeeds& needs, SumScratch* scratch, absl::FunctionRef<void(const BlockSums&)> show) const;

 private:
  // One site's tensor on its way into the sum.
  struct Addend {
    const DecodedTensor* decoded = nullptr;
    const CheckedFrame* checked = nullptr;  // null: `decoded` has the values
    const PlacedTensor* placed = nullptr;
    int64_t factor = 0;  // weight · 2^(shift to the common exponent)
    int32_t weight = 0;
  };
  class Runner;

  const int64_t size_;
  TensorForm form_ = TensorForm::kAbsent;
  int32_t exponent_ = 0;
  std::vector<uint16_t> left_out_;
  std::vector<Addend> addends_;
};

// Whether the frames can be summed: 1 to 1,024 that fit the layout, weights in range. INVALID_ARGUMENT else.
absl::Status CheckSumInput(const Layout& layout, absl::Span<const WeightedFrame> frames);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_TENSOR_SUM_H_
