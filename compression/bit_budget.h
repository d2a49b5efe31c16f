// What a block's kept values cost, and how a budget of bits is spent: on wider values or on more of them, on
// this tensor or on that. Pure functions; integers wherever a result depends on rounding.
#ifndef ISTHMUS_COMPRESSION_BIT_BUDGET_H_
#define ISTHMUS_COMPRESSION_BIT_BUDGET_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compression/layout.h"

namespace isthmus {

// Costs are counted in parts of a bit.
inline constexpr int64_t kPartsPerBit = 256;

// What a block's level byte comes to after zstd, in bits: blocks of one tensor have levels near each other.
inline constexpr int kLevelBits = 4;

// log2 of how many ways there are to choose k of a block's 4096 positions, rounded down to parts; 0 ≤ k ≤
// 4096. Within a hundredth of what coded gaps take.
int64_t PositionCost(int k);

// A whole block with k kept values of value_bits each: positions, values and levels; 1 ≤ k ≤ 4096. Past
// where more kept values need fewer bits (they are then named by the gaps between the others), the largest
// cost of any smaller k: so it never falls.
int64_t BlockCost(int k, int value_bits);

// The most kept values of value_bits that cost no more than `cost`; at least 1, at most 4096.
int KeptWithin(int64_t cost, int value_bits);

// The k with which values of `to_bits` cost as much as k of `from_bits`: k itself when both are the same,
// else KeptWithin of its cost.
int KeptAtEqualCost(int k, int from_bits, int to_bits);

// What a stream of symbols takes of which counts[i] are the i-th, each coded by itself and, as in a Huffman
// code, by whole bits where it is over half of those left: such a one takes a bit and the others one more, as
// long as there is one, and what is left its entropy Σ counts[i]·log2(Σ counts / counts[i]). In parts; all
// together below 2^31. Nothing when all symbols are the same.
int64_t SymbolCost(absl::Span<const int64_t> counts);

// One tensor's claim to kept values.
struct EnergyClaim {
  int64_t values = 0;  // > 0
  double energy = 0;   // mean square of its differences; ≥ 0 and finite
};

// k for each tensor, so that together they cost what they all cost with k of `value_bits` (a part of a block
// counts as such a part of a block's cost): never more, and less only by what is too little for one more
// value in each block of the tensor next in line (those of equal energy stand in line together).
//
// k grows in proportion to a tensor's energy per value, from ⌈k/4⌉ (at least 1) to min(4·k, 4096), and one of
// more energy never gets the smaller k. Why in proportion: the most energy is captured when the smallest kept
// magnitude is the same everywhere. Where magnitudes fall off as a power law, |d| > x for x^−ν of the values,
// that is k ∝ energy^(ν/2). Proportion is right for ν = 2, the heaviest tail whose energy still exists; for
// lighter tails (ν = 3: 1.5; normal values: above 2) the best exponent is larger, and proportion lies between
// uniform and it, gaining less and never overshooting. Less than the best is wanted: what a quiet tensor
// does not send waits in its residual, which then grows until it is heard, and limits keep that wait short.
// Each kept value then stands for the same share of the model's energy. On differences of a small model
// (167 k parameters, k = 64) frames so shared hold 0.105 and 0.118 of the energy, uniform ones of the same
// cost 0.066 and 0.091 (carried for 120 rounds, and after 40); the exponent 1.5 would give 0.110 and 0.120.
//
// A tensor without energy sends nothing and has no part in the budget; its k is ⌈k/4⌉, should the energy have
// been missed. With no energy anywhere all have k.
std::vector<int> ShareByEnergy(absl::Span<const EnergyClaim> claims, int k, int value_bits);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_BIT_BUDGET_H_
