#include "compression/golden_carried.h"

#include <cstring>
#include <functional>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compression/byte_io.h"
#include "compression/carry_codec.h"
#include "compression/carry_forms.h"
#include "compression/codec_spec.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"
#include "compression/test_random.h"

namespace isthmus {
namespace {

constexpr int64_t kCount = 75;
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

Layout LayoutOf(int64_t values) { return values == 0 ? Layout({}, 0) : Layout({values}, 0); }

// Normal ones and some at the edges, all finite.
std::vector<float> Finite() {
  std::vector<float> values = TestRandom(1).Normals(kCount, 0.01);
  values[0] = 0.0f;
  values[1] = -0.0f;
  values[2] = 0x1p-149f;
  values[20] = std::numeric_limits<float>::max();
  values[40] = -0x1p-20f;
  return values;
}

std::vector<float> WithInfAndNaN() {
  std::vector<float> values = Finite();
  values[3] = std::numeric_limits<float>::infinity();
  values[4] = -values[3];
  const uint32_t nan = 0xFF812345;
  std::memcpy(&values[5], &nan, sizeof nan);
  return values;
}

// What a codec gives for Finite() or Inf and NaN, but for what `change` does to its parts.
struct Parts {
  std::string magic = "ISCV";
  uint16_t version = kFormatVersion;
  uint64_t count = kCount;
  std::string spec;
  CarryStreams streams;
  std::string more;  // after the streams
};

std::string Made(const std::string& spec_text, const std::function<void(Parts*)>& change) {
  const CodecSpec spec = *ParseSpecText(spec_text);
  Parts parts;
  parts.spec = SpecText(spec);
  EncodeCarried(spec, IsLossless(spec) ? WithInfAndNaN() : Finite(), &parts.streams);
  change(&parts);
  std::string out;
  ByteWriter writer(&out);
  writer.Bytes(parts.magic);
  writer.U16(parts.version);
  writer.U64(parts.count);
  writer.U16(static_cast<uint16_t>(parts.spec.size()));
  writer.Bytes(parts.spec);
  WritePackedStream(parts.streams.scales, spec.zstd_level, &writer);
  WritePackedStream(parts.streams.values, spec.zstd_level, &writer);
  writer.Bytes(parts.more);
  EndSealed(&out);
  return out;
}

void AddGood(std::vector<GoldenCase>* out) {
  const auto add = [&](const char* name, const char* spec, const std::vector<float>& values) {
    out->push_back({absl::StrCat("good_", name, ".carried"),
                    spec,
                    LayoutOf(static_cast<int64_t>(values.size())),
                    std::move(ParseCarrySpec(spec)).value()->Encode(values).value(),
                    {},
                    ""});
  };
  add("fp32", "fp32|zstd(1)", WithInfAndNaN());
  add("fp32_nothing", "fp32|zstd(1)", {});
  add("bf16", "bf16|zstd(1)", WithInfAndNaN());
  add("fp8", "fp8(group=16)|zstd(1)", Finite());
  add("nf4", "nf4(group=16)|zstd(1)", Finite());
}

void AddBad(std::vector<GoldenCase>* out) {
  const auto add = [&](const char* name, const char* spec, std::string bytes, const char* message,
                       absl::StatusCode code = kInvalid) {
    out->push_back(
        {absl::StrCat("bad_", name, ".carried"), spec, LayoutOf(kCount), std::move(bytes), code, message});
  };
  const auto changed = [&](const char* name, const char* spec, const char* message,
                           const std::function<void(Parts*)>& change) {
    add(name, spec, Made(spec, change), message);
  };
  const char* fp32 = "fp32|zstd(1)";
  const char* fp8 = "fp8(group=16)|zstd(1)";
  const char* nf4 = "nf4(group=16)|zstd(1)";
  const std::string good = Made(fp32, [](Parts*) {});
  std::string flipped = good;
  flipped[30] ^= 4;
  add("empty", fp32, "", "0 bytes: cut short", kDataLoss);
  add("truncated", fp32, good.substr(0, 50), "checksum differs", kDataLoss);
  add("bit_flip", fp32, flipped, "checksum differs", kDataLoss);
  add("oversize", fp32, std::string(1000, 'x'), "1000 bytes, at most");
  changed("magic", fp32, "wrong magic", [](Parts* p) { p->magic = "ISFR"; });
  changed("version", fp32, "version 7, this program reads", [](Parts* p) { p->version = 7; });
  changed("count", fp32, "76 of them, 75 are expected", [](Parts* p) { p->count = 76; });
  changed("spec", fp32, "another codec spec than fp32", [](Parts* p) { p->spec = "fp32|zstd(2)"; });
  changed("left_over", fp32, "1 bytes left over", [](Parts* p) { p->more = "x"; });
  changed("short", fp32, "value stream of 299 bytes, not 300",
          [](Parts* p) { p->streams.values.pop_back(); });
  changed("scales", fp32, "scale stream: claims 1 bytes, at most 0",
          [](Parts* p) { p->streams.scales = "x"; });
  changed("fp8_nan", fp8, "a byte that no encoder writes", [](Parts* p) { p->streams.values[8] = '\x7F'; });
  changed("fp8_scale", fp8, "a byte that no encoder writes", [](Parts* p) { p->streams.scales[0] = '\xF8'; });
  changed("fp8_not_finite", fp8, "a byte that no encoder writes", [](Parts* p) {
    p->streams.scales[0] = '\xF7';
    p->streams.values[3] = '\x78';  // 256, times 2^120
  });
  changed("nf4_infinite", nf4, "a byte that no encoder writes", [](Parts* p) {
    p->streams.scales[0] = '\x80';
    p->streams.scales[5] = '\x7F';
  });
  changed("nf4_negative", nf4, "a byte that no encoder writes",
          [](Parts* p) { p->streams.scales[5] |= '\x80'; });
  changed("nf4_tail", nf4, "a byte that no encoder writes",
          [](Parts* p) { p->streams.values.back() |= '\x10'; });
}

}  // namespace

void AddGoldenCarried(std::vector<GoldenCase>* out) {
  AddGood(out);
  AddBad(out);
}

absl::Status ReadGoldenCarried(const GoldenCase& golden, const std::string& bytes, std::string* text) {
  std::vector<float> values(static_cast<size_t>(golden.layout.total()));
  const auto codec = std::move(ParseCarrySpec(golden.spec)).value();
  if (absl::Status s = codec->Decode(bytes, absl::MakeSpan(values)); !s.ok()) return s;
  for (float v : values) {
    uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    absl::StrAppendFormat(text, "%08x\n", bits);
  }
  return absl::OkStatus();
}

}  // namespace isthmus
