// From two arrays to the kept differences of a block, in one pass over memory.
#ifndef ISTHMUS_COMPRESSION_BLOCK_PICKER_H_
#define ISTHMUS_COMPRESSION_BLOCK_PICKER_H_

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "compression/block_scan.h"
#include "compression/difference.h"
#include "compression/level_fit.h"
#include "compression/selection.h"
#include "compression/simd_path.h"

namespace isthmus {

// What is kept of a block. The arrays are longer than a block, so that a vector may be written past the last.
struct PickedBlock {
  int kept = 0;
  uint16_t positions[Candidates::kRoom];             // ascending
  alignas(64) float differences[Candidates::kRoom];  // anchor − parameters there
  alignas(64) float magnitudes[Candidates::kRoom];   // of the differences
};

// Picks blocks one after another; what it gives for a block does not depend on the path nor on earlier ones.
// Too large for a small stack. Not thread-safe; one per thread. Needs plain float mode (float_mode.h).
class BlockPicker {
 public:
  // The path must be there (HasSimdPath).
  explicit BlockPicker(SimdPath path) : scan_(BlockScanOf(path)) {}

  // The `kept` differences of largest magnitude; of equal ones those at lower positions. Zeros are never
  // kept: all that are not 0, when they are fewer. 1 ≤ kept ≤ values, both arrays equally long, at most a
  // block. False when a difference is NaN or Inf; *out is then of no use.
  bool Pick(absl::Span<const float> anchor, absl::Span<const float> parameters, int kept, PickedBlock* out) {
    return Pick(anchor, parameters, DecayedResidual(), kept, out);
  }
  // The same of the sums with a residual, where that has values: "difference" then means the sum.
  bool Pick(absl::Span<const float> anchor, absl::Span<const float> parameters,
            const DecayedResidual& residual, int kept, PickedBlock* out);

  // Takes what the decoder will read off the picked differences of the block picked last, which had `values`
  // values: ±taken[classes[i]] off difference i (null: one class). What is left of the block is in `out`
  // after the next block's Pick, or Flush.
  void WriteLeft(const PickedBlock& picked, const uint8_t* classes, const float* taken, int values,
                 float* out);
  void Flush();

  // The path's passes for fitting levels to what was picked.
  ClassFit fit() const { return scan_ == nullptr ? ClassFit() : scan_->fit; }
  // Bit i of *out: whether the picked difference i is negative. Whole words are written, unused bits 0.
  void Signs(const PickedBlock& picked, uint64_t* out) const;

 private:
  bool PickPortably(absl::Span<const float> anchor, absl::Span<const float> parameters,
                    const DecayedResidual& residual, int kept, PickedBlock* out);
  // Moves the threshold until it marks at least `kept` values, or all but the zeros, and not many more if
  // that can be. How many are marked.
  int Narrow(int values, int kept, const ScanResult& scanned);
  // Sets the threshold for the next block, knowing how many this one marked.
  void Follow(int marked, int wanted);
  void KeepLargest(uint32_t largest, PickedBlock* out);
  void KeepTied(uint32_t threshold, int equals, PickedBlock* out) const;

  const BlockScan* const scan_;  // null: portable
  uint32_t threshold_ = 1;       // a guess: bits of a magnitude that somewhat more than `kept` values reach
  alignas(64) float buffers_[2][kBlockValues] = {};
  float* differences_ = buffers_[0];  // the present block's; the other one may be going out
  Outgoing outgoing_;
  uint64_t marks_[kMarkWords] = {};
  Candidates candidates_;
  // Portable path.
  BlockSelector selector_;
  uint32_t magnitudes_[kBlockValues];
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BLOCK_PICKER_H_
