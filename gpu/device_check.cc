// Compares the apply kernel with its host twin: exit 0 the same bits, 1 they differ, 2 no device.
#include <cstdio>
#include <string>

#include "gpu/device_check_cases.h"

int main() {
  std::string report;
  const isthmus::DeviceCheckResult result = isthmus::RunDeviceCheck(400, 1, &report);
  std::printf("device check: %s\n", report.c_str());
  switch (result) {
    case isthmus::DeviceCheckResult::kSame:
      return 0;
    case isthmus::DeviceCheckResult::kDiffers:
      return 1;
    case isthmus::DeviceCheckResult::kNoDevice:
      return 2;
  }
  return 1;
}
