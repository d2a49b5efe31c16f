// Makes an Update's tensor of the block sums a TensorSum shows.
#ifndef ISTHMUS_COMPRESSION_UPDATE_BUILDER_H_
#define ISTHMUS_COMPRESSION_UPDATE_BUILDER_H_

#include <cstdint>

#include "compression/tensor_sum.h"
#include "compression/update.h"

namespace isthmus {

// Starts `out` for a sum: form, exponent, sites left out, and room for all positions.
void BeginUpdateTensor(const TensorSum& sum, bool has_weights, UpdateTensor* out);

// Appends a block; reads only. Needs marks for a sparse tensor.
void AppendBlock(const BlockSums& sums, UpdateTensor* out);

// Leaves a block's scratch zero.
void ClearBlock(const BlockSums& sums);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_UPDATE_BUILDER_H_
