// The carried values among the golden cases. Test only.
#ifndef ISTHMUS_COMPRESSION_GOLDEN_CARRIED_H_
#define ISTHMUS_COMPRESSION_GOLDEN_CARRIED_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compression/golden_cases.h"

namespace isthmus {

// Appends them, good ones first; files ….carried. The layout has one tensor of as many values, or none.
void AddGoldenCarried(std::vector<GoldenCase>* out);

// ReadGolden for them: the values' bits.
absl::Status ReadGoldenCarried(const GoldenCase& golden, const std::string& bytes, std::string* text);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GOLDEN_CARRIED_H_
