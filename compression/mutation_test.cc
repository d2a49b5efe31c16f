// Thousands of seeded mutations of good frames and updates: every decoder answers, and asks for little
// memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "absl/strings/match.h"
#include "compression/byte_io.h"
#include "compression/codec.h"
#include "compression/frame_format.h"
#include "compression/golden_cases.h"
#include "compression/packed_stream.h"
#include "compression/test_random.h"

namespace {

size_t largest_allocation = 0;

void* Counted(size_t bytes) {
  largest_allocation = std::max(largest_allocation, bytes);
  return std::malloc(bytes == 0 ? 1 : bytes);
}

}  // namespace

void* operator new(size_t bytes) { return Counted(bytes); }
void* operator new[](size_t bytes) { return Counted(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return Counted(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return Counted(bytes); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, size_t) noexcept { std::free(p); }
void operator delete[](void* p, size_t) noexcept { std::free(p); }

namespace isthmus {
namespace {

// No allocation for these layouts of at most 8,299 values need be larger: updates hold 8 bytes a value and
// the reader's vectors double.
constexpr size_t kMostBytes = 256 * 1024;

void Mutate(TestRandom* random, std::string* bytes) {
  const uint64_t times = 1 + random->Below(4);
  for (uint64_t i = 0; i < times; ++i) {
    const size_t at = random->Below(bytes->size() + 1);
    const char byte = static_cast<char>(random->Chance(0.3) ? 255 : random->Next());
    switch (random->Below(5)) {
      case 0:
        bytes->insert(at, 1 + random->Below(3), byte);
        break;
      case 1:
        bytes->erase(at, 1 + random->Below(8));
        break;
      case 2:
        bytes->resize(at);
        break;
      default:
        if (at < bytes->size())
          (*bytes)[at] = random->Chance(0.5) ? byte : (*bytes)[at] ^ char(1 << random->Below(8));
    }
  }
}

// Where an envelope's packed streams begin.
size_t StreamsAt(const GoldenCase& golden) {
  if (absl::EndsWith(golden.name, ".carried")) return 16 + static_cast<uint8_t>(golden.bytes[14]);
  if (golden.spec.empty()) return 18 + 1 + (static_cast<uint8_t>(golden.bytes[19]) < 0x80 ? 1 : 2);
  return 20 + static_cast<uint8_t>(golden.bytes[18]);
}

// Changes the raw bytes of one stream and packs it again, so that the change gets past zstd.
std::string MutateStream(const GoldenCase& golden, TestRandom* random) {
  const size_t begin = StreamsAt(golden);
  ByteReader reader(absl::string_view(golden.bytes).substr(begin, golden.bytes.size() - begin - 8));
  const bool has_pieces = absl::EndsWith(golden.name, ".frame");
  std::vector<std::string> streams;
  std::vector<uint8_t> marks;  // frames have one before every two streams
  while (reader.left() > 0) {
    if (has_pieces && streams.size() % 2 == 0) {
      marks.push_back(0);
      EXPECT_TRUE(reader.U8(&marks.back()));
    }
    streams.emplace_back();
    EXPECT_TRUE(ReadPackedStream(golden.name, 1 << 20, &reader, &streams.back()).ok());
  }
  Mutate(random, &streams[random->Below(streams.size())]);
  std::string out = golden.bytes.substr(0, begin);
  ByteWriter writer(&out);
  for (size_t i = 0; i < streams.size(); ++i) {
    if (has_pieces && i % 2 == 0) writer.U8(marks[i / 2]);
    WritePackedStream(streams[i], 1, &writer);
  }
  out.append(8, '\0');
  return out;
}

TEST(MutationTest, MutatedBytesAreReadOrRefusedWithinBoundedMemory) {
  TestRandom random(31);
  int read = 0, refused = 0;
  for (const GoldenCase& golden : GoldenCases()) {
    if (golden.code != absl::StatusCode::kOk) continue;
    for (int i = 0; i < 3000; ++i) {
      std::string bytes = golden.bytes;
      if (i % 3 == 0) {
        bytes = MutateStream(golden, &random);
      } else {
        Mutate(&random, &bytes);
      }
      if (i % 10 != 1) FixChecksum(&bytes);
      std::string text;
      largest_allocation = 0;
      const absl::Status status = ReadGolden(golden, bytes, &text);
      ASSERT_LE(largest_allocation, kMostBytes) << golden.name << " mutation " << i << ": " << status;
      ++(status.ok() ? read : refused);
    }
  }
  // Both kinds must occur in numbers, else the mutations test nothing.
  EXPECT_GT(read, 200);
  EXPECT_GT(refused, 20000);
}

// A byte sent in a piece of its own takes six; remembering each piece would take eight times as many.
TEST(MutationTest, ManyPiecesTakeNoMoreMemoryThanTheirBytes) {
  const Layout layout({2 * 4096}, 1);
  const auto codec = std::move(ParseCodecSpec("topk(k=4096)|zstd(0)")).value();
  FrameWriter writer(layout, codec->spec(), 0, 0);
  for (int i = 0; i < 1400; ++i) writer.Piece(i % 2 == 0 ? "\x01" : "", i % 2 == 0 ? "" : "\x01");
  const std::string frame = writer.Finish("", std::vector<TensorHeader>(1));
  ASSERT_LE(static_cast<int64_t>(frame.size()), codec->BoundBytes(layout));
  largest_allocation = 0;
  EXPECT_EQ(codec->Decode(layout, frame).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_LE(largest_allocation, frame.size());
}

}  // namespace
}  // namespace isthmus
