// The apply kernel on a CUDA device. Only where nvcc was found; no library but CUDA's own.
#ifndef ISTHMUS_GPU_APPLY_CUDA_H_
#define ISTHMUS_GPU_APPLY_CUDA_H_

#include <cstdint>

#include "gpu/apply_kernel.h"

namespace isthmus {

// Devices that can be used; 0 also when there is no driver.
int CudaDevices();

// Runs one tensor's apply on the current device. `args` points to host memory; anchor, momentum and
// parameters are `values` long and are written back. Null when done, else CUDA's words for what went wrong
// (nothing is written then).
const char* ApplyTensorOnDevice(const ApplyTensorArgs& args, int64_t values);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_APPLY_CUDA_H_
