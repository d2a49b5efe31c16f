// DeviceOps through the kernel's body run on the host: what the CUDA kernel computes, testable without a GPU.
// Test only.
#ifndef ISTHMUS_GPU_HOST_TWIN_DEVICE_OPS_H_
#define ISTHMUS_GPU_HOST_TWIN_DEVICE_OPS_H_

#include <memory>

#include "gpu/device_ops.h"

namespace isthmus {

// Encode, Sum and MoveToAnchor are the CPU reference's.
std::unique_ptr<DeviceOps> MakeHostTwinDeviceOps();

}  // namespace isthmus

#endif  // ISTHMUS_GPU_HOST_TWIN_DEVICE_OPS_H_
