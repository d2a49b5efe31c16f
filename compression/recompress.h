// The update coming down, encoded anew: a round's mean joins what the hub still carries, a codec takes what
// it can of the two, and the rest stays with the hub.
//
// The exact update names every position any site sent; this one names what the codec keeps, so that it costs
// one contribution's bytes instead of a union's. What comes out is an ordinary Update (PEERS, weight 1, sums
// = mantissas): whoever applies it notices nothing. Pure functions, thread-safe; the same bits from the same
// input. Knows nothing of rounds and of how the residual is kept.
#ifndef ISTHMUS_COMPRESSION_RECOMPRESS_H_
#define ISTHMUS_COMPRESSION_RECOMPRESS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/layout.h"
#include "compression/update.h"

namespace isthmus {

// x = fp32(residual + mean), where mean is what applying `exact` would subtract before the outer rate;
// gives Decode(Encode(x)) as an update and leaves residual = fp32(x − that). Sites left out stay named.
// `codec` must be summable. INVALID_ARGUMENT: sizes that do not fit the layout, or an x that is NaN or Inf,
// named; `residual` is then as before.
absl::StatusOr<Update> Recompress(const Layout& layout, const Codec& codec, const Update& exact,
                                  absl::Span<float> residual);

// The same without a codec, to end a run: x goes out as it is. A tensor's values that lie so far apart that
// 52 bits do not hold them all are rounded to the last of those bits; only that rest, below 2^-51 of the
// tensor's largest, stays in `residual`. Costs several bytes a value. Errors as above.
absl::StatusOr<Update> FlushResidual(const Layout& layout, const Update& exact, absl::Span<float> residual);

// Sum of squares, in a fixed order.
double SquareSum(absl::Span<const float> values);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_RECOMPRESS_H_
