#include "compression/rans_code.h"

#include <gtest/gtest.h>

#include <cmath>

#include "compression/test_random.h"

namespace isthmus {
namespace {

using Counts = std::array<uint64_t, kRansSymbols>;

Counts CountsOf(const std::vector<uint8_t>& symbols) {
  Counts counts = {};
  for (uint8_t s : symbols) ++counts[s];
  return counts;
}

std::vector<RansSymbol> By(uint8_t table, const std::vector<uint8_t>& symbols) {
  std::vector<RansSymbol> out;
  for (uint8_t s : symbols) out.push_back({table, s});
  return out;
}

// Symbols whose distribution falls by `factor` from one to the next.
std::vector<uint8_t> Falling(TestRandom* random, size_t count, double factor) {
  std::vector<uint8_t> out;
  for (size_t i = 0; i < count; ++i) {
    int symbol = 0;
    while (symbol < 255 && random->Chance(factor)) ++symbol;
    out.push_back(static_cast<uint8_t>(symbol));
  }
  return out;
}

TEST(RansCodeTest, SymbolsComeBackAtNearTheirEntropy) {
  TestRandom random(3);
  for (double factor : {0.0, 0.001, 0.03, 0.5, 0.98}) {
    const std::vector<uint8_t> symbols = Falling(&random, 20001, factor);
    const Counts counts = CountsOf(symbols);
    const RansFrequencies frequencies = FitFrequencies(counts);
    const std::string code = RansEncode({frequencies}, By(0, symbols));
    double bits = 0;
    for (uint64_t n : counts) bits += n == 0 ? 0 : n * std::log2(symbols.size() / static_cast<double>(n));
    EXPECT_LE(code.size(), 32 + 2 + 1.01 * bits / 8) << factor;

    const RansTable table(frequencies);
    RansReader reader(code);
    std::vector<uint8_t> read(symbols.size());
    // In takes of every size, so that they begin at every coder.
    for (size_t at = 0, step = 1; at < read.size(); at += step, step = step % 37 + 1) {
      step = std::min(step, read.size() - at);
      EXPECT_EQ(reader.is_spent(), factor == 0) << at;  // where all symbols are the same none takes anything
      reader.Take(table, step, &read[at]);
    }
    EXPECT_EQ(read, symbols);
    EXPECT_TRUE(reader.is_spent());
  }
}

TEST(RansCodeTest, SymbolsOfSeveralTablesComeBack) {
  TestRandom random(4);
  const std::vector<uint8_t> even = Falling(&random, 500, 0.9), odd = Falling(&random, 500, 0.1);
  const std::vector<RansFrequencies> frequencies = {FitFrequencies(CountsOf(even)),
                                                    FitFrequencies(CountsOf(odd))};
  std::vector<RansSymbol> mixed;
  for (int i = 0; i < 500; ++i) {
    mixed.push_back({0, even[i]});
    mixed.push_back({1, odd[i]});
  }
  const std::string code = RansEncode(frequencies, mixed);
  const RansTable tables[] = {RansTable(frequencies[0]), RansTable(frequencies[1])};
  RansReader reader(code);
  for (const RansSymbol& s : mixed) {
    uint8_t symbol;
    reader.Take(tables[s.table], 1, &symbol);
    ASSERT_EQ(symbol, s.symbol);
  }
  EXPECT_TRUE(reader.is_spent());
}

TEST(RansCodeTest, EveryPathGivesTheSameCode) {
  TestRandom random(6);
  for (double factor : {0.0, 0.3, 0.9, 0.99}) {
    for (size_t count : {1, 7, 8, 9, 64, 20001}) {
      const std::vector<uint8_t> one = Falling(&random, count, factor), other = Falling(&random, count, 0.5);
      const std::vector<RansFrequencies> frequencies = {FitFrequencies(CountsOf(one)),
                                                        FitFrequencies(CountsOf(other))};
      std::vector<RansSymbol> mixed;  // runs of one table, and changes within a row
      for (size_t i = 0; i < count; ++i) {
        mixed.push_back(i % 100 < 70 ? RansSymbol{0, one[i]} : RansSymbol{1, other[i]});
      }
      std::string wanted;
      RansEncode(frequencies, mixed, SimdPath::kPortable, &wanted);
      for (SimdPath path : kAllSimdPaths) {
        std::string code = "what was there before";
        RansEncode(frequencies, mixed, path, &code);
        EXPECT_EQ(code, wanted) << SimdPathName(path) << ", " << count << " symbols, " << factor;
      }
    }
  }
}

TEST(RansCodeTest, NothingIsNoBytes) {
  EXPECT_EQ(RansEncode({}, {}), "");
  EXPECT_TRUE(RansReader("").is_spent());
}

TEST(RansCodeTest, ACodeCutOrWithMoreBehindIsNotSpent) {
  TestRandom random(5);
  const std::vector<uint8_t> symbols = Falling(&random, 300, 0.7);
  const RansFrequencies frequencies = FitFrequencies(CountsOf(symbols));
  const std::string code = RansEncode({frequencies}, By(0, symbols));
  const RansTable table(frequencies);
  const auto spent = [&](const std::string& bytes) {
    RansReader reader(bytes);
    std::vector<uint8_t> read(symbols.size());
    reader.Take(table, read.size(), read.data());
    return reader.is_spent();
  };
  EXPECT_TRUE(spent(code));
  for (size_t size = 0; size < code.size(); ++size) EXPECT_FALSE(spent(code.substr(0, size))) << size;
  EXPECT_FALSE(spent(code + std::string(2, '\0')));
}

TEST(RansCodeTest, FrequenciesSumTo4096AndLeaveNobodyOut) {
  Counts one_each;
  one_each.fill(1);
  Counts skewed = one_each;
  skewed[200] = 1000000000;
  Counts single = {};
  single[7] = 3;
  for (const Counts& counts : {one_each, skewed, single}) {
    const RansFrequencies frequencies = FitFrequencies(counts);
    int sum = 0;
    for (int s = 0; s < kRansSymbols; ++s) {
      sum += frequencies[s];
      EXPECT_EQ(frequencies[s] > 0, counts[s] > 0) << s;
    }
    EXPECT_EQ(sum, 4096);
    std::string bytes;
    ByteWriter writer(&bytes);
    WriteFrequencies(frequencies, &writer);
    ByteReader reader(bytes);
    RansFrequencies read;
    EXPECT_TRUE(ReadFrequencies(&reader, &read));
    EXPECT_EQ(read, frequencies);
  }
  EXPECT_EQ(FitFrequencies({}), RansFrequencies{});
}

TEST(RansCodeTest, MalformedFrequenciesAreRefused) {
  const auto read = [](std::vector<uint64_t> numbers) {
    std::string bytes;
    for (uint64_t n : numbers) ByteWriter(&bytes).Varint(n);
    ByteReader reader(bytes);
    RansFrequencies frequencies;
    return ReadFrequencies(&reader, &frequencies);
  };
  EXPECT_TRUE(read({2, 4000, 96}));
  EXPECT_TRUE(read({0}));
  EXPECT_FALSE(read({2, 4000, 97}));
  EXPECT_FALSE(read({2, 4096, 0}));
  EXPECT_FALSE(read({2, 4000}));
  EXPECT_FALSE(read({2, 4097, uint64_t{1} << 63}));
  EXPECT_FALSE(read({257}));
  EXPECT_FALSE(read({}));
}

}  // namespace
}  // namespace isthmus
