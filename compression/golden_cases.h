// Frames, updates and carried values, good and bad, as compression/testdata keeps them, and what reading each
// must give. Test only.
#ifndef ISTHMUS_COMPRESSION_GOLDEN_CASES_H_
#define ISTHMUS_COMPRESSION_GOLDEN_CASES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compression/layout.h"

namespace isthmus {

// One file of testdata.
struct GoldenCase {
  std::string name;  // file name without folder: ….frame, ….update or ….carried
  std::string spec;  // frames: of the codec that reads it
  Layout layout;
  std::string bytes;                              // what the file holds when it is written anew
  absl::StatusCode code = absl::StatusCode::kOk;  // what reading gives
  std::string message;                            // bad ones: words the error must hold
};

// The same cases on every call and, given one zstd version, on every machine.
std::vector<GoldenCase> GoldenCases();

// Reads `bytes` as the case says. Good ones: *text describes all that was decoded.
absl::Status ReadGolden(const GoldenCase& golden, const std::string& bytes, std::string* text);

// Replaces the last eight bytes by the checksum of the rest; shorter strings stay.
void FixChecksum(std::string* bytes);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GOLDEN_CASES_H_
