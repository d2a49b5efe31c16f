#include "compression/entry_sum.h"

#include <gtest/gtest.h>

#include <vector>

#include "compression/test_random.h"

namespace isthmus {
namespace {

std::vector<Entry> Entries(int count, int value_bits, TestRandom* random) {
  std::vector<Entry> entries(count);
  for (Entry& e : entries) e = static_cast<Entry>(random->Below(uint64_t{4096} << value_bits));
  return entries;
}

TEST(EntrySumTest, PairsAndSumsAreThoseOfOneEntryAfterAnother) {
  TestRandom random(11);
  for (int count : {0, 1, 7, 8, 9, 63, 64, 65, 500}) {
    for (int value_bits : {1, 2, 3}) {
      const std::vector<Entry> entries = Entries(count, value_bits, &random);
      const int32_t mantissas[kMostCodes] = {100, -100, 2000, -2000, 30000, -30000, 400000, -400000};
      std::vector<int32_t> sums(4096), wanted(4096);
      for (Entry e : entries) wanted[e >> value_bits] += mantissas[e & ((1 << value_bits) - 1)];
      SoonWanted nothing;
      AddToSums(entries.data(), count, value_bits, mantissas, &nothing, sums.data());
      EXPECT_EQ(sums, wanted) << count << " entries of " << value_bits << " bits";
      if (value_bits > 1) continue;
      std::vector<int16_t> pairs(2 * 4096);
      AddToPairs(entries.data(), count, 100, &nothing, pairs.data());
      for (int i = 0; i < 4096; ++i) ASSERT_EQ(pairs[2 * i] - pairs[2 * i + 1], wanted[i]) << i;
    }
  }
}

TEST(EntrySumTest, OnePartMoreThanSaidCoversAllThatIsWanted) {
  const std::vector<char> memory(10000);
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{9999}}) {
    for (size_t parts : {size_t{0}, size_t{1}, size_t{3}, size_t{1000}}) {
      SoonWanted soon(memory.data(), bytes, parts);
      for (size_t i = 0; i <= parts; ++i) soon.Ask();
      EXPECT_EQ(soon.left(), 0u) << bytes << " bytes in " << parts;
    }
  }
}

}  // namespace
}  // namespace isthmus
