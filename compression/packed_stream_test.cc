#include "compression/packed_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

namespace isthmus {
namespace {

const char kRaw[] =
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    "aaaaaa";

std::string ZstdFrame(absl::string_view raw, bool has_size, bool has_checksum) {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_contentSizeFlag, has_size);
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, has_checksum);
  std::string out(ZSTD_compressBound(raw.size()), '\0');
  out.resize(ZSTD_compress2(context, &out[0], out.size(), raw.data(), raw.size()));
  ZSTD_freeCCtx(context);
  return out;
}

absl::Status Read(absl::string_view stored) {
  std::string bytes, raw;
  ByteWriter writer(&bytes);
  writer.Varint(sizeof kRaw - 1);
  writer.Varint(stored.size());
  writer.Bytes(stored);
  ByteReader reader(bytes);
  const absl::Status status = ReadPackedStream("gap", 1000, &reader, &raw);
  if (status.ok()) {
    EXPECT_EQ(raw, kRaw);
  }
  return status;
}

TEST(PackedStreamTest, IsOneZstdFrameWithoutSizeAndChecksum) {
  EXPECT_TRUE(Read(ZstdFrame(kRaw, false, false)).ok());
  const std::string skippable("\x50\x2A\x4D\x18\x02\0\0\0hi", 10);
  const std::string plain = ZstdFrame(kRaw, false, false), empty = ZstdFrame("", false, false);
  for (const std::string& other : {ZstdFrame(kRaw, true, false), ZstdFrame(kRaw, false, true), empty + plain,
                                   plain + empty, skippable + plain, plain + skippable, plain + "x"}) {
    const absl::Status status = Read(other);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("not one plain zstd frame"));
  }
}

TEST(PackedStreamTest, WhatIsWrittenIsReadBack) {
  for (int level : {0, 1, 19}) {
    std::string bytes, raw;
    ByteWriter writer(&bytes);
    WritePackedStream(kRaw, level, &writer);
    ByteReader reader(bytes);
    ASSERT_TRUE(ReadPackedStream("gap", 1000, &reader, &raw).ok()) << level;
    EXPECT_EQ(raw, kRaw);
    EXPECT_EQ(reader.left(), 0u);
  }
}

}  // namespace
}  // namespace isthmus
