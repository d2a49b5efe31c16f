// The kernel against its host twin, bit for bit, on seeded cases of every kind. No library but CUDA's own, so
// that a machine with nvcc and little else can run it.
#ifndef ISTHMUS_GPU_DEVICE_CHECK_CASES_H_
#define ISTHMUS_GPU_DEVICE_CHECK_CASES_H_

#include <string>

namespace isthmus {

enum class DeviceCheckResult { kSame, kDiffers, kNoDevice };

// Runs `cases` cases from `seed`. *report says what was run or, at the first difference, which case, array
// and value.
DeviceCheckResult RunDeviceCheck(int cases, unsigned seed, std::string* report);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_DEVICE_CHECK_CASES_H_
