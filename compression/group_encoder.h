// Fills a frame's table and streams with dense integers in groups (FORMAT.md): runs of blocks in parallel,
// then tensors in order.
#ifndef ISTHMUS_COMPRESSION_GROUP_ENCODER_H_
#define ISTHMUS_COMPRESSION_GROUP_ENCODER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compression/encode_plan.h"
#include "compression/frame_format.h"
#include "compression/group_block.h"
#include "compression/group_form.h"
#include "compression/layout.h"

namespace isthmus {

// Writes the table, levels (the shifts) and, at `integers`, room for form.BytesOf of every tensor; of those
// written, *bytes are the frame's. Reads each array once, but for blocks with groups far below their tensor's
// largest, which are read twice; writes neither. `signs`: null without a transform. INVALID_ARGUMENT when a
// difference is not finite, naming the first. `exponents` is scratch.
absl::Status EncodeGroups(const GroupForm& form, const HadamardSigns* signs, const EncodePlan& plan,
                          const Layout& layout, absl::Span<const float> anchor,
                          absl::Span<const float> parameters, std::vector<int16_t>* exponents,
                          std::vector<TensorHeader>* tensors, std::string* shifts, uint8_t* integers,
                          int64_t* bytes);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_GROUP_ENCODER_H_
