// What a round commits: the exact weighted sum of the included frames, and its bytes.
#ifndef ISTHMUS_COMPRESSION_UPDATE_H_
#define ISTHMUS_COMPRESSION_UPDATE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "compression/checked_frame.h"
#include "compression/codec.h"
#include "compression/layout.h"
#include "compression/simd_path.h"

namespace isthmus {

// What a position's sum is divided by.
enum class Averaging : uint8_t {
  kPeers = 0,         // the round's total weight; a tensor left out for a site counts as zero
  kContributors = 1,  // the weight of those sites that sent this position
};

struct UpdateTensor {
  TensorForm form = TensorForm::kAbsent;
  int32_t exponent = 0;             // E_min: a sum is worth sum · 2^exponent
  std::vector<uint32_t> positions;  // kSparse: union of the contributors' positions, strictly increasing
  std::vector<int64_t> sums;        // Σ weight · mantissa, aligned; |sum| < 2^52
  std::vector<int32_t> weights;     // kContributors only: Σ weight of those that sent the position
  std::vector<uint16_t> left_out;   // indices into the included list of sites whose tensor was left out
};

struct Update {
  Averaging averaging = Averaging::kPeers;
  int64_t total_weight = 0;
  std::vector<UpdateTensor> tensors;
};

// One included contribution. Its frame must outlive the call.
struct WeightedFrame {
  const DecodedFrame* frame = nullptr;
  int32_t weight = 64;  // 16 … 256 (ROUNDS §8 "Weights")
  // Tensors refused (ExponentHistory): left out like those below E_min. Strictly increasing.
  std::vector<uint32_t> refused = {};
  const CheckedFrame* checked = nullptr;  // where not null, the frame, and `frame` is not looked at
};

// How a sum works; the result does not depend on it.
struct SumOptions {
  int threads = 1;  // that share the tensors, the caller's among them
  SimdPath path = BestSimdPath();
};

// Exact sums are below this: 1,024 sites, weights to 256, mantissas and shifts of 34 bits together.
inline constexpr int64_t kSumLimit = int64_t{1} << 52;

// The exact sum; the same for any order of `frames` except for the indices in left_out.
// INVALID_ARGUMENT: no frames, over 1,024, one that does not fit the layout, or a weight out of range.
absl::StatusOr<Update> SumFrames(const Layout& layout, absl::Span<const WeightedFrame> frames,
                                 Averaging averaging, const SumOptions& options = {});

// Memory for encoding and decoding updates, to be used again for the next one: fresh pages cost more than the
// work itself. Grows to a small part of an update. One call at a time.
class UpdateScratch {
 public:
  // Results do not depend on the path.
  explicit UpdateScratch(SimdPath path = BestSimdPath());
  ~UpdateScratch();
  UpdateScratch(const UpdateScratch&) = delete;
  UpdateScratch& operator=(const UpdateScratch&) = delete;

  struct Memory;
  Memory* memory() const { return memory_.get(); }

 private:
  const std::unique_ptr<Memory> memory_;
};

// The update as bytes and back (FORMAT.md). `update` must be one SumFrames or DecodeUpdate gave for this
// layout. Decoding treats its input as hostile: INVALID_ARGUMENT: malformed or of another layout; DATA_LOSS:
// checksum. Memory stays below a small multiple of the layout.
std::string EncodeUpdate(const Layout& layout, const Update& update);
absl::StatusOr<Update> DecodeUpdate(const Layout& layout, absl::string_view bytes);

// The same in memory of the time before, that of *update among it. When decoding fails *update holds nothing
// of use.
std::string EncodeUpdate(const Layout& layout, const Update& update, UpdateScratch* scratch);
absl::Status DecodeUpdate(const Layout& layout, absl::string_view bytes, UpdateScratch* scratch,
                          Update* update);

// w_r = clamp(round(64 · v_r / median v), 16, 256) in integer arithmetic; median of an even count is the
// lower middle. `measures` all > 0; same order out.
std::vector<int32_t> ContributionWeights(absl::Span<const int64_t> measures);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_UPDATE_H_
