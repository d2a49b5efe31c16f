// Makes an Update's tensor of the block sums a TensorSum shows.
#ifndef ISTHMUS_COMPRESSION_UPDATE_BUILDER_H_
#define ISTHMUS_COMPRESSION_UPDATE_BUILDER_H_

#include <cstddef>
#include <cstdint>

#include "compression/block_take.h"
#include "compression/tensor_sum.h"
#include "compression/update.h"

namespace isthmus {

// For one tensor, whose memory is that of what `out` held before.
class UpdateTensorBuilder {
 public:
  // Sets form, exponent and sites left out, and makes room for all positions. Both must outlive it.
  UpdateTensorBuilder(const TensorSum& sum, bool has_weights, SimdPath path, UpdateTensor* out);

  // Appends a block; reads only. Needs marks for a sparse tensor.
  void Append(const BlockSums& sums);
  // After the last block.
  void Finish();

 private:
  const BlockTakeFn take_;
  UpdateTensor* const out_;
  size_t count_ = 0;
};

// Leaves a block's scratch zero.
void ClearBlock(const BlockSums& sums);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_UPDATE_BUILDER_H_
