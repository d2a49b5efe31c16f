// What the memory system gives: passes over arrays that compute next to nothing. Measuring only.
#ifndef ISTHMUS_GPU_MEMORY_SPEED_H_
#define ISTHMUS_GPU_MEMORY_SPEED_H_

#include "absl/types/span.h"

namespace isthmus {

// Reads both, equally long, and adds all up; `threads` share the work. The result keeps the reading alive.
float ReadAndAdd(absl::Span<const float> a, absl::Span<const float> b, int threads);

// Reads, changes and writes back each value, on the calling thread.
void ReadAndWriteInPlace(absl::Span<float> values);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_MEMORY_SPEED_H_
