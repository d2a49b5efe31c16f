// What encoding holds beside the two arrays and the frame: measured by counting every allocation, zstd's too.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/sparse_codec.h"
#include "compression/sparse_encoder.h"
#include "compression/test_random.h"

namespace {

std::atomic<int64_t> held{0}, most_held{0}, allocations{0};

void Count(void* p) {
  if (p == nullptr) return;
  ++allocations;
  const int64_t now = held += static_cast<int64_t>(malloc_usable_size(p));
  int64_t most = most_held;
  while (now > most && !most_held.compare_exchange_weak(most, now)) {
  }
}

void Uncount(void* p) {
  if (p != nullptr) held -= static_cast<int64_t>(malloc_usable_size(p));
}

}  // namespace

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ISTHMUS_COUNTS_ALLOCATIONS 1

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* p, size_t bytes);
void __libc_free(void* p);

void* malloc(size_t bytes) {
  void* p = __libc_malloc(bytes);
  Count(p);
  return p;
}
void* calloc(size_t count, size_t bytes) {
  void* p = __libc_calloc(count, bytes);
  Count(p);
  return p;
}
void* realloc(void* p, size_t bytes) {
  Uncount(p);
  void* q = __libc_realloc(p, bytes);
  Count(q == nullptr ? p : q);
  return q;
}
void free(void* p) {
  Uncount(p);
  __libc_free(p);
}
}
#endif

namespace isthmus {
namespace {

struct Measured {
  int64_t scratch = 0;  // most held at once, less the frame
  int64_t allocations = 0;
};

Measured MeasureEncode(const CodecSpec& spec, int threads, const Layout& layout,
                       const std::vector<float>& anchor, const std::vector<float>& parameters) {
  const SparseCodec codec(spec, {BestSimdPath(), threads});
  const int64_t before = held, allocated_before = allocations;
  most_held = before;
  const auto frame = codec.Encode(layout, anchor, parameters);
  EXPECT_TRUE(frame.ok()) << frame.status();
  return {most_held - before - static_cast<int64_t>(frame->capacity()), allocations - allocated_before};
}

// Differences of all magnitudes, cheap to make.
std::vector<float> Differences(int64_t count) {
  TestRandom random(5);
  const std::vector<float> few = random.Normals(1 << 16, 0.01);
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = few[(i * 40503 + i / 65536 * 977) % few.size()];
  return values;
}

TEST(SparseScratchTest, ScratchIsBoundedWhateverTheModel) {
#if !defined(ISTHMUS_COUNTS_ALLOCATIONS)
  GTEST_SKIP() << "allocations cannot be counted in this build";
#endif
  constexpr int64_t kMiB = 1 << 20;
  for (const auto& [k, bits] : std::vector<std::pair<int, int>>{{64, 1}, {64, 3}, {4096, 1}}) {
    CodecSpec spec;
    spec.k = k;
    spec.value_bits = bits;
    for (int64_t values : {int64_t{1} << 20, int64_t{1} << 22, int64_t{1} << 24}) {
      const std::vector<float> anchor(values), parameters = Differences(values);
      for (int threads : {1, 2}) {
        const Measured one = MeasureEncode(spec, threads, Layout({values}, 1), anchor, parameters);
        const std::vector<int64_t> parts(16, values / 16);
        const Measured many = MeasureEncode(spec, threads, Layout(parts, 1), anchor, parameters);
        const std::string what =
            absl::StrCat("k ", k, ", bits ", bits, ", values ", values, ", threads ", threads);
        std::cout << what << ": " << one.scratch << " and " << many.scratch << " bytes, " << one.allocations
                  << " and " << many.allocations << " allocations\n";
        EXPECT_LE(one.scratch, 64 * kMiB) << what;
        EXPECT_LE(many.scratch, 64 * kMiB) << what;
        // A run, which is 256 blocks, allocates a few times at most; a tensor as much.
        EXPECT_LE(one.allocations, 400 + 16 * (values >> 20)) << what;
      }
    }
  }
}

TEST(SparseScratchTest, WhatIsHeldOfATensorDoesNotChangeItsFrame) {
  // Blocks ever larger: each makes those 2^20 below it send nothing, which were sent before.
  const Layout layout({12 << 20, 5000}, 1);
  std::vector<float> anchor(layout.total()), parameters = Differences(layout.total());
  for (int64_t i = 0; i < layout.total(); ++i) parameters[i] = std::ldexp(parameters[i], i >> 18);
  CodecSpec spec;
  spec.value_bits = 2;
  const EncodePlan plan{BestSimdPath(), 2};
  const auto expected = EncodeSparse(spec, plan, layout, anchor, parameters, int64_t{1} << 40);
  ASSERT_TRUE(expected.ok());
  for (int64_t held_bytes : {0, 100000, 1 << 20}) {
    const auto frame = EncodeSparse(spec, plan, layout, anchor, parameters, held_bytes);
    ASSERT_TRUE(frame.ok());
    EXPECT_TRUE(*frame == *expected) << held_bytes;
  }
}

TEST(SparseScratchTest, WhatIsHeldOfATensorDoesNotChangeItsResidual) {
  const Layout layout({8 << 20, 5000}, 1);
  const std::vector<float> anchor(layout.total());
  std::vector<float> parameters = Differences(layout.total());
  for (int64_t i = 0; i < layout.total(); ++i) parameters[i] = std::ldexp(parameters[i], i >> 18);
  std::vector<float> residual(layout.total());
  for (int64_t i = 0; i < layout.total(); ++i) residual[i] = parameters[(i * 7) % 4096] * 0x1p-10f;
  for (int bits : {1, 3}) {
    CodecSpec spec;
    spec.value_bits = bits;
    const EncodePlan plan{BestSimdPath(), 2};
    std::vector<float> expected(layout.total()), left(layout.total());
    const auto encode = [&](std::vector<float>* out, int64_t held_bytes) {
      const ResidualPass pass{{residual, 0.5f}, absl::MakeSpan(*out)};
      return EncodeSparse(spec, plan, layout, anchor, parameters, pass, held_bytes);
    };
    const auto expected_frame = encode(&expected, int64_t{1} << 40);
    ASSERT_TRUE(expected_frame.ok());
    for (int64_t held_bytes : {0, 100000}) {
      const auto frame = encode(&left, held_bytes);
      ASSERT_TRUE(frame.ok());
      EXPECT_TRUE(*frame == *expected_frame) << held_bytes;
      EXPECT_EQ(std::memcmp(left.data(), expected.data(), sizeof(float) * left.size()), 0) << held_bytes;
    }
  }
}

TEST(SparseScratchTest, WhatIsHeldOfATensorDoesNotChangeItsForm) {
  const Layout layout({6 << 20, 2 << 20, 77}, 1, {512, 512, 0});
  const std::vector<float> anchor(layout.total());
  std::vector<float> parameters = Differences(layout.total());
  for (int64_t i = 0; i < layout.offset(2); ++i) {
    if (i / 512 % 12 != 3) parameters[i] = 0;  // few rows
  }
  const CodecSpec spec;
  const EncodePlan plan{BestSimdPath(), 2};
  const auto expected = EncodeSparse(spec, plan, layout, anchor, parameters, int64_t{1} << 40);
  ASSERT_TRUE(expected.ok());
  const auto decoded = SparseCodec(spec, plan).Decode(layout, *expected);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  for (int64_t held_bytes : {0, 20000, 200000}) {
    const auto frame = EncodeSparse(spec, plan, layout, anchor, parameters, held_bytes);
    ASSERT_TRUE(frame.ok());
    EXPECT_TRUE(*frame == *expected) << held_bytes;
  }
}

}  // namespace
}  // namespace isthmus
