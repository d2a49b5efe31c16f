// The updates among the golden cases. Test only.
#ifndef ISTHMUS_COMPRESSION_GOLDEN_UPDATES_H_
#define ISTHMUS_COMPRESSION_GOLDEN_UPDATES_H_

#include <vector>

#include "compression/golden_cases.h"

namespace isthmus {

// Appends them, good ones first.
void AddGoldenUpdates(std::vector<GoldenCase>* out);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GOLDEN_UPDATES_H_
