#include "daemon/store/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/store/blobs.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

// A file from a header's JSON and some data.
std::string FileOf(const std::string& json, const std::string& data = "") {
  std::string out;
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<char>(json.size() >> (8 * i)));
  return out + json + data;
}

absl::StatusOr<SafetensorsHeader> Read(const std::string& file, int64_t limit = 1 << 20) {
  return ReadSafetensorsHeader(BorrowedBlob(file), limit);
}

TEST(SafetensorsTest, AHeaderReadsBackAsItWasWritten) {
  const std::string head = EncodeSafetensorsHeader({{"note", "a \"quoted\"\n text"}},
                                                   {{"b", "F32", {2, 3}, 0, 24}, {"a", "BF16", {}, 24, 26}});
  EXPECT_EQ(head.size() % 8, 0u);
  const auto header = Read(head + std::string(26, 'x'));
  ASSERT_EQ(header.status(), absl::OkStatus());
  EXPECT_EQ(header->metadata.at("note"), "a \"quoted\"\n text");
  EXPECT_EQ(header->data_offset, static_cast<int64_t>(head.size()));
  ASSERT_EQ(header->tensors.size(), 2u);
  EXPECT_EQ(header->tensors[0].name, "b");
  EXPECT_EQ(header->tensors[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(header->tensors[1].type, "BF16");
  EXPECT_EQ(header->tensors[1].end, 26);
}

TEST(SafetensorsTest, TheWrittenBytesAreTheDocumentedOnes) {
  EXPECT_EQ(EncodeSafetensorsHeader({{"k", "v"}}, {{"t", "F32", {1}, 0, 4}}),
            FileOf("{\"__metadata__\":{\"k\":\"v\"},\"t\":{\"dtype\":\"F32\",\"shape\":[1],"
                   "\"data_offsets\":[0,4]}} "));
}

struct BadCase {
  std::string file;
  std::string message;
};

TEST(SafetensorsTest, HostileFilesAreRefusedWithTheirReason) {
  const std::string tensor = "\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}";
  const std::string huge(8, '\xFF');
  const BadCase cases[] = {
      {"", "only 0 bytes"},
      {"1234567", "only 7 bytes"},
      {huge, "header of 18446744073709551615 bytes"},
      {FileOf("[1,2]"), "not a JSON object"},
      {FileOf("{\"t\":"), "not a JSON object"},
      {FileOf("{" + tensor + "}", "123"), "tensors fill 4 of 3"},
      {FileOf("{" + tensor + "}", "12345"), "tensors fill 4 of 5"},
      {FileOf("{\"t\":7}"), "tensor t has no usable description"},
      {FileOf("{\"t\":{\"shape\":[1],\"data_offsets\":[0,4]}}", "1234"), "no usable dtype"},
      {FileOf("{\"t\":{\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}", "1234"),
       "unknown type F99"},
      {FileOf("{\"t\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", "1234"),
       "no usable shape"},
      {FileOf("{\"t\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,4]}}", "1234"),
       "no usable shape"},
      {FileOf("{\"t\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}", "1234"),
       "impossible shape"},
      {FileOf("{\"t\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", "1234"),
       "needs 8 bytes and has 4"},
      {FileOf("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", "1234"),
       "no usable data_offsets"},
      {FileOf("{\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,18446744073709551615]}}", "1234"),
       "no usable data_offsets"},
      {FileOf("{" + tensor + ",\"u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", "12345678"),
       "tensor u starts at 0, expected 4"},
      {FileOf("{" + tensor + ",\"u\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}",
              "123456789012"),
       "tensor u starts at 8, expected 4"},
      {FileOf("{\"__metadata__\":{\"k\":1}," + tensor + "}", "1234"), "metadata k is not a text"},
      {FileOf("{\"\xFF\":1}"), "not a JSON object"},
      {FileOf(std::string(100000, '[')), "not a JSON object"},
  };
  for (const BadCase& bad : cases) {
    const auto header = Read(bad.file);
    EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument) << bad.message;
    EXPECT_THAT(std::string(header.status().message()), HasSubstr(bad.message));
  }
}

TEST(SafetensorsTest, AHeaderBeyondTheLimitIsRefusedBeforeItIsRead) {
  const std::string file = FileOf("{}" + std::string(1000, ' '));
  EXPECT_EQ(Read(file, 1002).status(), absl::OkStatus());
  EXPECT_THAT(std::string(Read(file, 1001).status().message()), HasSubstr("at most 1001 possible"));
}

TEST(SafetensorsTest, EveryTruncationAndEveryFlippedByteOfAHeaderIsSurvived) {
  const std::string good =
      EncodeSafetensorsHeader({{"k", "v"}}, {{"t", "F32", {2}, 0, 8}, {"u", "F32", {1}, 8, 12}}) +
      std::string(12, 'd');
  for (size_t n = 0; n < good.size(); ++n) EXPECT_FALSE(Read(good.substr(0, n)).ok()) << n;
  for (size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[i] = static_cast<char>(bad[i] ^ (1 << bit));
      const auto header = Read(bad);
      if (header.ok()) {
        EXPECT_EQ(header->tensors.back().end, 12);
      } else {
        EXPECT_EQ(header.status().code(), absl::StatusCode::kInvalidArgument);
      }
    }
  }
}

}  // namespace
}  // namespace isthmus
