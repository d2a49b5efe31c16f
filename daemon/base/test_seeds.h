// Seeds for property tests, and how to run a failing one again. For tests only.
#ifndef ISTHMUS_DAEMON_BASE_TEST_SEEDS_H_
#define ISTHMUS_DAEMON_BASE_TEST_SEEDS_H_

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// 1 … `count`, or only the one in the environment variable ISTHMUS_SEED.
inline std::vector<uint64_t> TestSeeds(int count) {
  std::vector<uint64_t> seeds;
  uint64_t chosen = 0;
  const char* text = std::getenv("ISTHMUS_SEED");
  if (text != nullptr && absl::SimpleAtoi(text, &chosen)) return {chosen};
  for (int i = 1; i <= count; ++i) seeds.push_back(i);
  return seeds;
}

// For SCOPED_TRACE: "replay: bazel test …".
inline std::string ReplayLine(absl::string_view target, uint64_t seed) {
  return absl::StrCat("replay: bazel test --test_env=ISTHMUS_SEED=", seed, " ", target);
}

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_BASE_TEST_SEEDS_H_
