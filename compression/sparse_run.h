// A share of an encoder's work: consecutive blocks of one tensor, encoded but for what the tensor's exponent
// decides.
#ifndef ISTHMUS_COMPRESSION_SPARSE_RUN_H_
#define ISTHMUS_COMPRESSION_SPARSE_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "compression/block_picker.h"
#include "compression/difference.h"
#include "compression/layout.h"
#include "compression/row_form.h"
#include "compression/simd_path.h"
#include "compression/tensor_plan.h"

namespace isthmus {

// Blocks of a run: long enough to hide its cost, short enough to divide. The bytes of a frame hang on it.
inline constexpr int64_t kRunBlocks = 256;

// All tensors' values or one's, all of them or those of some of its rows.
struct RunSource {
  absl::Span<const float> anchor, parameters;
  DecayedResidual residual;  // without values: there is none
  absl::Span<float> left;    // the residual after, where there is one
  int64_t row_length = 0;
  absl::Span<const uint32_t> rows;  // none: all values; without a residual only

  bool has_residual() const { return !residual.values.empty(); }
  RunSource Slice(int64_t at, int64_t values) const {
    RunSource slice;
    slice.anchor = anchor.subspan(at, values);
    slice.parameters = parameters.subspan(at, values);
    if (!has_residual()) return slice;
    slice.residual = {residual.values.subspan(at, values), residual.beta};
    slice.left = left.subspan(at, values);
    return slice;
  }
};

// What a decoder will most likely read for a class of this mean: levels have five bits in all of a tensor's
// range but its ends, and those are known only when the whole tensor is.
float LikelyLevel(double mean);

// Words a block's codes take; every block begins a new word.
constexpr int64_t CodeWords(int kept, int value_bits) { return (int64_t{kept} * value_bits + 63) / 64; }

// Plain value, used again for other runs so that its memory is.
struct Run {
  int tensor = 0;
  TensorPlan plan;
  absl::Span<const uint32_t> rows;  // as in RunSource
  int64_t first = 0, values = 0;    // among the source's
  bool ends_tensor = false;         // nothing of the tensor comes after it

  // What encoding gives.
  bool is_finite = true;
  int64_t bad_block = 0;           // when not finite: first position of the block
  std::string gaps;                // as in the frame, of all blocks
  std::vector<uint32_t> gap_ends;  // per block: end of its bytes in `gaps`
  std::vector<uint16_t> kept;      // per block: values kept
  std::vector<uint64_t> codes;     // bits of the value stream
  std::vector<double> levels;      // per block: means of the classes

  // Memory it holds.
  int64_t Bytes() const;
};

// One thread's means to encode runs; too large for a small stack.
class RunEncoder {
 public:
  // The path must be there (HasSimdPath).
  explicit RunEncoder(SimdPath path) : picker_(path) {}

  // `source` is of the run's tensor and rows. Fills what encoding gives.
  void Encode(const RunSource& source, Run* run);

 private:
  bool Pick(const RunSource& source, int64_t at, int64_t values, int kept);
  void Fit(const TensorPlan& plan, double* levels);
  void WriteLeft(int value_bits, const double* levels, absl::Span<float> left);
  char* WriteGaps(int wanted, int values, char* out) const;
  uint64_t* WriteCodes(int value_bits, uint64_t* out) const;

  BlockPicker picker_;
  PickedBlock picked_;
  uint8_t classes_[kBlockValues];
  float row_anchor_[kBlockValues], row_parameters_[kBlockValues];  // a block of rows
};

// How a tensor is encoded: as it is, and where it has rows by these as well, to see which is smaller.
struct TensorWork {
  TensorPlan plan;
  RowForm by_rows;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPARSE_RUN_H_
