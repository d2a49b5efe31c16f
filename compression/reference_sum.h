// The weighted formula of ROUNDS §8, written down slowly and on its own: what SumFrames must give. Test only.
#ifndef ISTHMUS_COMPRESSION_REFERENCE_SUM_H_
#define ISTHMUS_COMPRESSION_REFERENCE_SUM_H_

#include "absl/types/span.h"
#include "compression/update.h"

namespace isthmus {

// Frames must be valid. Shares no code with SumFrames.
Update ReferenceSum(const Layout& layout, absl::Span<const WeightedFrame> frames, Averaging averaging);

// Whether two updates are the same, field by field.
bool SameUpdate(const Update& a, const Update& b);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_REFERENCE_SUM_H_
