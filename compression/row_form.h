// Which rows of a matrix are worth sending: embedding tables have rows that no token of a round touched.
//
// The touched rows of a matrix, one after another, are coded as a sparse tensor of that size, and the numbers
// of the rows are sent with it (FORMAT.md). Pure; threads may share everything.
#ifndef ISTHMUS_COMPRESSION_ROW_FORM_H_
#define ISTHMUS_COMPRESSION_ROW_FORM_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compression/difference.h"

namespace isthmus {

// A tensor's touched rows, and how they would be coded. Plain value.
struct RowForm {
  std::vector<uint32_t> rows;  // touched, ascending; none: the tensor is coded as it is
  int k = 0;                   // kept values of a whole block of theirs, 1 … 2048; 0 without rows
};

// The rows that have a difference other than 0 (NaN is one), ascending. Both arrays are as long, a multiple
// of row_length. Reads a touched row up to its first difference only.
std::vector<uint32_t> TouchedRows(absl::Span<const float> anchor, absl::Span<const float> parameters,
                                  int64_t row_length);

// Whether one of 64 rows spread evenly over the tensor, or of all, has no sum with the residual that is not
// 0; false when row_length is 0. Without such a row the tensor of the sums has no form by rows. Needs plain
// float mode.
bool HasUntouchedRow(int64_t row_length, absl::Span<const float> anchor, absl::Span<const float> parameters,
                     const DecayedResidual& residual);

// The form by rows of a tensor of which a whole block keeps `k` when it is coded as it is; no rows when that
// has no use: row_length is 0, no row has a difference, over three quarters have one, or more than half of
// the touched rows' values would be kept. k of the form is the largest with which the rows keep no more
// values than the tensor as it is would, had all values of a touched row a difference: so both forms send as
// much, and the smaller is the better. Where none of 64 rows spread evenly is untouched, no more are looked
// at. Needs plain float mode (float_mode.h).
RowForm FindRowForm(int k, int64_t row_length, absl::Span<const float> anchor,
                    absl::Span<const float> parameters);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_ROW_FORM_H_
