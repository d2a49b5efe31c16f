// Whether an update, an own frame and the arrays they move fit one layout: asked before anything is written.
#ifndef ISTHMUS_GPU_APPLY_INPUT_H_
#define ISTHMUS_GPU_APPLY_INPUT_H_

#include <cstddef>

#include "absl/status/status.h"
#include "gpu/device_ops.h"

namespace isthmus {

// Lengths of the arrays handed to an apply.
struct ApplySizes {
  size_t anchor = 0, momentum = 0;
};

// INVALID_ARGUMENT when anchor or momentum have another length than the step needs.
absl::Status CheckArrays(const Layout& layout, const OuterStep& step, const ApplySizes& sizes);
// INVALID_ARGUMENT, naming the tensor or array, when something does not fit.
absl::Status CheckUpdate(const Layout& layout, const Update& update, const OuterStep& step,
                         const ApplySizes& sizes);
// INVALID_ARGUMENT likewise; an absent frame fits.
absl::Status CheckOwnFrame(const Layout& layout, const OwnFrame& own, size_t parameters);

// The own frame's tensor that the outcome decodes, null where there is none.
const DecodedTensor* OwnTensor(const OwnFrame& own, int tensor);

}  // namespace isthmus

#endif  // ISTHMUS_GPU_APPLY_INPUT_H_
