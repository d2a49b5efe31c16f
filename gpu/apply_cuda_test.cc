#include <gtest/gtest.h>

#include <string>

#include "gpu/device_check_cases.h"

namespace isthmus {
namespace {

TEST(ApplyCudaTest, KernelGivesItsHostTwinsBits) {
  std::string report;
  const DeviceCheckResult result = RunDeviceCheck(100, 2, &report);
  if (result == DeviceCheckResult::kNoDevice) GTEST_SKIP() << report;
  EXPECT_EQ(result, DeviceCheckResult::kSame) << report;
}

}  // namespace
}  // namespace isthmus
