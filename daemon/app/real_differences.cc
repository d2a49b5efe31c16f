#include "daemon/app/real_differences.h"

#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/training/difference_dump.h"

namespace isthmus {

absl::StatusOr<RealDifferences> OpenRealDifferences(const std::string& folder) {
  ISTHMUS_ASSIGN_OR_RETURN(DifferenceSet set, OpenDifferences(folder));
  RealDifferences real;
  real.layout = set.layout;
  real.set = folder;
  for (const DumpedDifference& one : set.differences)
    real.names.push_back(absl::StrCat(folder, "/", one.file));
  real.load = [set = std::move(set)](size_t i) { return LoadDifference(set, set.differences[i]); };
  return real;
}

}  // namespace isthmus
