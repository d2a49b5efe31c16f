#include "compression/sum_passes.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "compression/test_random.h"

namespace isthmus {
namespace {

std::vector<SimdPath> Paths() {
  std::vector<SimdPath> paths;
  for (SimdPath path : kAllSimdPaths) {
    if (HasSimdPath(path)) paths.push_back(path);
  }
  return paths;
}

bool Bit(const uint64_t* words, int i) { return words[i / 64] >> (i % 64) & 1; }

// About a third of them 0, others of any size below 2^bits.
std::vector<int64_t> Sums(int count, int bits, TestRandom* random) {
  std::vector<int64_t> sums(count);
  for (int64_t& sum : sums) {
    const auto magnitude = static_cast<int64_t>(random->Below(int64_t{1} << random->Below(bits + 1)));
    sum = random->Below(3) == 0 ? 0 : random->Below(2) == 0 ? magnitude : -magnitude;
  }
  return sums;
}

TEST(SumPassesTest, SumsFallIntoMagnitudesAndSignsOfThoseThatAreNotZero) {
  TestRandom random(3);
  for (SimdPath path : Paths()) {
    const SumPasses& passes = SumPassesOf(path);
    const auto split = std::make_unique<SplitSums>();
    for (int count : {1, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096}) {
      for (int bits : {1, 12, 50}) {
        for (bool has_zero : {true, false}) {
          std::vector<int64_t> sums = Sums(count, bits, &random);
          for (int64_t& sum : sums) sum = (sum == 0 && !has_zero ? -1 : sum) * 4;
          passes.split(sums.data(), count, 2, split.get());
          uint64_t any = 0, any_sum = 0;
          int signs = 0;
          for (int i = 0; i < count; ++i) {
            const auto magnitude = static_cast<uint64_t>(std::abs(sums[i]) / 4);
            ASSERT_EQ(split->magnitudes[i], magnitude & 0xFFFF) << i;
            any |= magnitude;
            any_sum |= static_cast<uint64_t>(sums[i]);
            if (sums[i] == 0) continue;
            ASSERT_EQ(Bit(split->signs, signs++), sums[i] < 0) << i;
          }
          EXPECT_EQ(split->any, any);
          EXPECT_EQ(split->sign_count, signs) << SimdPathName(path) << ", " << count;
          EXPECT_EQ(signs % 64 == 0 ? 0 : split->signs[signs / 64] >> (signs % 64), 0u);
          EXPECT_EQ(passes.any(sums.data(), sums.size()), any_sum);
        }
      }
    }
  }
}

TEST(SumPassesTest, FewEntriesAreCountedAndNamed) {
  TestRandom random(6);
  const auto few = std::make_unique<FewEntries>();
  for (SimdPath path : Paths()) {
    for (int entries : {1, 2, 15, 16, 17}) {
      for (int count : {17, 31, 32, 33, 1000, 4096}) {
        alignas(64) uint16_t magnitudes[kBlockValues];
        for (int i = 0; i < count; ++i) {
          magnitudes[i] = static_cast<uint16_t>(4099 * (i < entries ? i : random.Below(entries)));
        }
        const int found = SumPassesOf(path).count_few(magnitudes, count, few.get());
        const bool is_looked_for = path == SimdPath::kAvx512 && entries <= FewEntries::kMost;
        EXPECT_EQ(found, is_looked_for ? entries : 0);
        if (found == 0) continue;
        std::vector<int> counts(found);
        for (int i = 0; i < count; ++i) {
          ASSERT_EQ(few->magnitudes[few->places[i]], magnitudes[i]) << i;
          ++counts[few->places[i]];
        }
        EXPECT_EQ(std::vector<int>(few->counts, few->counts + found), counts);
        uint8_t ranks[FewEntries::kMost];
        for (uint8_t& rank : ranks) rank = static_cast<uint8_t>(random.Below(255));
        for (SimdPath by : Paths()) {
          std::vector<uint8_t> symbols(2 * count);
          SumPassesOf(by).name_few(few->places, count, 7, ranks, symbols.data());
          for (int i = 0; i < count; ++i) {
            ASSERT_EQ(symbols[2 * i], 7);
            ASSERT_EQ(symbols[2 * i + 1], ranks[few->places[i]]);
          }
        }
      }
    }
  }
}

TEST(SumPassesTest, NamesBecomeSumsAndUnknownOnesAreFound) {
  TestRandom random(4);
  for (int known : {1, 5, 32, 33, 255}) {
    for (bool has_zero : {false, true}) {
      for (int count : {1, 8, 13, 64, 1000, 4096}) {
        std::vector<int64_t> magnitudes(256);
        for (int64_t& m : magnitudes) m = 1 + static_cast<int64_t>(random.Below(int64_t{1} << 50));
        if (has_zero) magnitudes[random.Below(known)] = 0;
        std::vector<uint8_t> names(count), signs(count / 8 + 16);
        for (uint8_t& name : names) name = static_cast<uint8_t>(random.Below(known));
        for (uint8_t& byte : signs) byte = static_cast<uint8_t>(random.Below(256));
        std::vector<int64_t> wanted(count);
        size_t at = 3;
        for (int i = 0; i < count; ++i) {
          const bool is_negative = signs[at / 8] >> (at % 8) & 1;
          wanted[i] = is_negative ? -magnitudes[names[i]] : magnitudes[names[i]];
          at += wanted[i] != 0;
        }
        for (SimdPath path : Paths()) {
          NamedSums named{magnitudes.data(), known, has_zero, signs.data(), 3};
          std::vector<int64_t> sums(count);
          EXPECT_TRUE(SumPassesOf(path).look_up(names.data(), count, &named, sums.data()));
          EXPECT_EQ(sums, wanted) << SimdPathName(path) << ", " << count << " of " << known;
          EXPECT_EQ(named.sign_at, at);
          for (int place : {0, count - 1}) {
            std::vector<uint8_t> bad = names;
            bad[place] = static_cast<uint8_t>(known);
            named.sign_at = 3;
            EXPECT_FALSE(SumPassesOf(path).look_up(bad.data(), count, &named, sums.data()));
          }
        }
      }
    }
  }
}

TEST(SumPassesTest, SetBitsBecomePlacesAndPlacesBits) {
  TestRandom random(5);
  for (int count : {0, 1, 2, 3, 8, 17, 512, 1300}) {
    for (int density : {0, 3, 100}) {
      std::vector<uint8_t> bytes(count);
      std::vector<uint32_t> wanted;
      for (int i = 0; i < 8 * count; ++i) {
        if (static_cast<int>(random.Below(100)) >= density) continue;
        bytes[i / 8] |= static_cast<uint8_t>(1 << (i % 8));
        wanted.push_back(static_cast<uint32_t>(i));
      }
      for (SimdPath path : Paths()) {
        const SumPasses& passes = SumPassesOf(path);
        std::vector<uint8_t> marked(bytes.size());
        passes.mark(wanted.data(), wanted.size(), marked.data(), marked.size());
        EXPECT_EQ(marked, bytes) << SimdPathName(path);
        ASSERT_EQ(passes.ones(bytes.data(), bytes.size()), wanted.size());
        std::vector<uint32_t> places(wanted.size());
        passes.places(bytes.data(), bytes.size(), wanted.size(), places.data());
        EXPECT_EQ(places, wanted) << SimdPathName(path);
      }
    }
  }
}

}  // namespace
}  // namespace isthmus
