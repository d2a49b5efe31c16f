// What a codec spec lets a sparse tensor be: a decoder believes a frame's table within these limits.
#ifndef ISTHMUS_COMPRESSION_SPARSE_LIMITS_H_
#define ISTHMUS_COMPRESSION_SPARSE_LIMITS_H_

#include "absl/status/status.h"
#include "compression/codec_spec.h"
#include "compression/frame_format.h"
#include "compression/layout.h"

namespace isthmus {

// Plain value.
struct SparseLimits {
  // spec.kind is kTopK. A fixed spec leaves no choice. levels(bits=auto) leaves the bits and, so that the
  // bytes can stay the same, k up to twice the spec's; share=energy leaves k up to four times the spec's.
  explicit SparseLimits(const CodecSpec& spec);

  int least_k = 1, most_k = kBlockValues;
  int least_bits = 1, most_bits = 3;
};

// Kept values of a tensor of which a whole block keeps `k`, at most.
int64_t MostKept(int64_t tensor_values, int k);

// Values that are coded for a tensor that is present: all of its own, or those of the rows sent.
int64_t CodedValues(const Layout& layout, const TensorHeader& header, int tensor);

// Largest raw streams of a frame.
FrameLimits SparseFrameLimits(const SparseLimits& limits, const Layout& layout);

// Judges one row of a frame's table. Of rows of a matrix k may be any, as long as they keep no more than the
// whole tensor might. INVALID_ARGUMENT, naming the tensor.
absl::Status CheckSparseHeader(const SparseLimits& limits, const Layout& layout, const TensorHeader& header,
                               int tensor);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_LIMITS_H_
