// Real differences (anchor − parameters) of a learning run on disk, for studying codecs on them.
//
// A folder with index.txt and, for each round and site taken, a file of little-endian fp32 values: all
// tensors in TensorTable order, back to back. The index has a line for each tensor, in that order, with its
// name and its sides, and one for each file with its round and site:
//   tensor model.embed_tokens.weight 256 64
//   difference 3 0 round-3-site-0.f32
#ifndef ISTHMUS_DAEMON_TRAINING_DIFFERENCE_DUMP_H_
#define ISTHMUS_DAEMON_TRAINING_DIFFERENCE_DUMP_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/layout.h"
#include "daemon/training/tensor_table.h"

namespace isthmus {

struct DumpedTensor {
  std::string name;
  std::vector<int64_t> shape;
};

struct DumpedDifference {
  int64_t round = 0, site = 0;
  std::string file;  // in the folder
};

struct DifferenceSet {
  std::string folder;
  std::vector<DumpedTensor> tensors;
  std::vector<DumpedDifference> differences;  // in the order they were added
  Layout layout;                              // of the values in a file, rows included; digest 0
};

// Writes one. Not thread-safe.
class DifferenceDump {
 public:
  // Makes the folder if it is not there, and ends the set that is. FAILED_PRECONDITION naming the path when
  // it cannot be made or written to.
  static absl::StatusOr<DifferenceDump> Create(const std::string& folder, const TensorTable& table);

  // UNAVAILABLE naming the file when it cannot be written.
  absl::Status Add(int64_t round, int64_t site, absl::Span<const float> difference);
  // Writes the index; without it there is no set.
  absl::Status Finish() const;

 private:
  DifferenceSet set_;
};

// Reads the index. NOT_FOUND: no index; INVALID_ARGUMENT naming the file: not what is described above.
absl::StatusOr<DifferenceSet> OpenDifferences(const std::string& folder);

// The values of one. INVALID_ARGUMENT when the file is not as long as the tensors say.
absl::StatusOr<std::vector<float>> LoadDifference(const DifferenceSet& set, const DumpedDifference& one);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_DIFFERENCE_DUMP_H_
