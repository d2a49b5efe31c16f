// What an update must at least cost, so that its bytes have something to be held against.
//
// The model: the receiver knows the layout, the exponents and how many positions each block has, and learns
//  * positions: which u of a block's n values were sent, all choices alike: log2 C(n, u);
//  * names: which magnitude each of the u positions has, at the entropy of the block's own magnitudes:
//    Σ count · log2(u / count). With averaging over contributors a "magnitude" is a magnitude and a weight;
//  * literals: the block's distinct magnitudes themselves, in any order, at the entropy they have among all
//  that
//    blocks of the tensor list: Σ times listed · log2(all listed / times listed) − Σ log2(distinct of a
//    block)!, at least 0. Listing which magnitudes a tensor has at all is not counted;
//  * signs: one bit for each sum that is not 0.
// It is a bound for codes that treat positions as independent and each block's magnitudes alike. Positions
// that cluster could be had for less; a code that must first tell a block's counts takes more.
//
// The second reference is what sending the included frames themselves would cost: the bounds of their sums of
// one. Pure; nothing here runs outside benches and tests.
#ifndef ISTHMUS_COMPRESSION_UPDATE_BOUND_H_
#define ISTHMUS_COMPRESSION_UPDATE_BOUND_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compression/layout.h"
#include "compression/update.h"

namespace isthmus {

// Bits.
struct UpdateBound {
  double positions = 0, names = 0, literals = 0, signs = 0;

  double total() const { return positions + names + literals + signs; }
};

// Of the sparse tensors of an update; dense ones have no bound and count as nothing.
UpdateBound BoundOf(const Layout& layout, const Update& update);

// Of all the frames themselves. Fails as SumFrames does.
absl::StatusOr<UpdateBound> BoundOfFrames(const Layout& layout, absl::Span<const WeightedFrame> frames);

// log2 of the number of ways to choose k of n, 0 ≤ k ≤ n.
double ChoiceBits(int64_t n, int64_t k);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_UPDATE_BOUND_H_
