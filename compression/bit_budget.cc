#include "compression/bit_budget.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "compression/level_fit.h"

namespace isthmus {
namespace {

constexpr int kMostKept = static_cast<int>(kBlockValues);
constexpr int kLogBits = 24;  // of a logarithm's fraction
static_assert(kPartsPerBit == 1 << 8, "PositionCost shifts by it");

// log2(x) · 2^24, rounded down, for 1 ≤ x < 2^31: squares the mantissa, and each time it passes 2 that is the
// logarithm's next bit.
int64_t Log2Of(uint64_t x) {
  int whole = 0;
  while (x >> (whole + 1) != 0) ++whole;
  uint64_t mantissa = x << (31 - whole);  // 2^31 is 1
  int64_t log = whole;
  for (int i = 0; i < kLogBits; ++i) {
    mantissa = mantissa * mantissa >> 31;
    const uint64_t bit = mantissa >> 32;
    mantissa >>= bit;
    log = 2 * log + static_cast<int64_t>(bit);
  }
  return log;
}

using CostTable = std::array<int64_t, kMostKept + 1>;

CostTable MakePositionCosts() {
  CostTable log_factorials{}, costs{};
  for (int i = 1; i <= kMostKept; ++i) log_factorials[i] = log_factorials[i - 1] + Log2Of(i);
  for (int k = 0; k <= kMostKept; ++k) {
    const int64_t log = log_factorials[kMostKept] - log_factorials[k] - log_factorials[kMostKept - k];
    costs[k] = std::max<int64_t>(log, 0) >> (kLogBits - 8);
  }
  return costs;
}

CostTable MakeBlockCosts(int value_bits) {
  CostTable costs{};
  for (int k = 1; k <= kMostKept; ++k) {
    const int64_t bits = int64_t{k} * value_bits + kLevelBits * LevelsOf(value_bits);
    costs[k] = std::max(costs[k - 1], PositionCost(k) + bits * kPartsPerBit);
  }
  return costs;
}

const CostTable& BlockCosts(int value_bits) {
  static const std::array<CostTable, 3> tables = {MakeBlockCosts(1), MakeBlockCosts(2), MakeBlockCosts(3)};
  return tables[value_bits - 1];
}

// A division of the budget in the making.
class Sharing {
 public:
  Sharing(absl::Span<const EnergyClaim> claims, int k, int value_bits)
      : claims_(claims),
        costs_(BlockCosts(value_bits)),
        least_((k + 3) / 4),
        most_(std::min(4 * k, kMostKept)),
        kept_(claims.size(), least_) {
    for (const EnergyClaim& claim : claims_) {
      most_energy_ = std::max(most_energy_, claim.energy);
      if (claim.energy > 0) budget_ += claim.values * costs_[k];
    }
  }

  bool has_energy() const { return most_energy_ > 0; }

  std::vector<int> Divide() {
    // The largest factor that stays within the budget. Doubles ≥ 0 order as their bits do.
    uint64_t within = 0, beyond = BitsOf(std::numeric_limits<double>::max());
    while (beyond - within > 1) {
      const uint64_t middle = within + (beyond - within) / 2;
      (Spend(middle) <= budget_ ? within : beyond) = middle;
    }
    SpendTheRest(budget_ - Spend(within));
    return kept_;
  }

 private:
  static uint64_t BitsOf(double v) {
    uint64_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
  }

  // Sets every k by a factor; the cost of it all.
  int64_t Spend(uint64_t factor_bits) {
    double factor;
    std::memcpy(&factor, &factor_bits, sizeof factor);
    int64_t cost = 0;
    for (size_t i = 0; i < claims_.size(); ++i) {
      if (claims_[i].energy == 0) continue;
      const double wanted = std::floor(factor * (claims_[i].energy / most_energy_) + 0.5);
      kept_[i] = static_cast<int>(std::clamp<double>(wanted, least_, most_));
      cost += claims_[i].values * costs_[kept_[i]];
    }
    return cost;
  }

  // One more value a block, of those of most energy first, for whom there is still enough.
  void SpendTheRest(int64_t rest) {
    std::vector<size_t> order(claims_.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [this](size_t a, size_t b) { return claims_[a].energy > claims_[b].energy; });
    int most = most_;
    for (size_t i : order) {
      if (claims_[i].energy == 0) break;
      const int64_t price =
          claims_[i].values * (costs_[std::min(kept_[i] + 1, kMostKept)] - costs_[kept_[i]]);
      if (kept_[i] < most && price <= rest) {
        ++kept_[i];
        rest -= price;
      }
      most = kept_[i];
    }
  }

  const absl::Span<const EnergyClaim> claims_;
  const CostTable& costs_;
  const int least_, most_;
  std::vector<int> kept_;
  double most_energy_ = 0;
  int64_t budget_ = 0;  // in parts, times the values of a block
};

}  // namespace

int64_t PositionCost(int k) {
  static const CostTable costs = MakePositionCosts();
  return costs[k];
}

int64_t BlockCost(int k, int value_bits) { return BlockCosts(value_bits)[k]; }

int KeptWithin(int64_t cost, int value_bits) {
  const CostTable& costs = BlockCosts(value_bits);
  const auto above = std::upper_bound(costs.begin() + 1, costs.end(), cost);
  return std::max(static_cast<int>(above - costs.begin()) - 1, 1);
}

int KeptAtEqualCost(int k, int from_bits, int to_bits) {
  return from_bits == to_bits ? k : KeptWithin(BlockCost(k, from_bits), to_bits);
}

int64_t SymbolCost(absl::Span<const int64_t> counts) {
  std::vector<int64_t> left(counts.begin(), counts.end());
  std::sort(left.begin(), left.end());
  int64_t all = std::accumulate(left.begin(), left.end(), int64_t{0}), bits = 0;
  while (!left.empty() && left.back() < all && 2 * left.back() > all) {
    bits += all;
    all -= left.back();
    left.pop_back();
  }
  int64_t log = 0;  // below 2^31 · 2^5 · 2^24
  for (int64_t count : left) {
    if (count > 0) log += count * (Log2Of(all) - Log2Of(count));
  }
  return bits * kPartsPerBit + (log >> (kLogBits - 8));
}

std::vector<int> ShareByEnergy(absl::Span<const EnergyClaim> claims, int k, int value_bits) {
  Sharing sharing(claims, k, value_bits);
  if (!sharing.has_energy()) return std::vector<int>(claims.size(), k);
  return sharing.Divide();
}

}  // namespace isthmus
