// A codec spec as text and as numbers: which transforms a frame went through.
#ifndef ISTHMUS_COMPRESSION_CODEC_SPEC_H_
#define ISTHMUS_COMPRESSION_CODEC_SPEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// What the text says. Plain value.
struct CodecSpec {
  enum class Kind { kTopK, kDense };
  Kind kind = Kind::kTopK;
  int k = 64;          // kTopK: kept values per block of 4096, 1 … 4096
  int value_bits = 1;  // kTopK: 1, 2 or 3 (sign and 1, 2 or 4 levels); kDense: 24
  int zstd_level = 1;  // 1 … 19

  bool operator==(const CodecSpec& o) const {
    return kind == o.kind && k == o.k && value_bits == o.value_bits && zstd_level == o.zstd_level;
  }
};

// Reads "topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1)" or "dense(bits=24)|zstd(1)". In the first, all
// after topk(k=…) may be left out, and in the second all after `dense`. Spaces are allowed between words.
// INVALID_ARGUMENT otherwise, saying at which character (counted from 1) and what was expected.
absl::StatusOr<CodecSpec> ParseSpecText(absl::string_view text);

// The canonical text, everything spelled out; ParseSpecText gives the spec back.
std::string SpecText(const CodecSpec& spec);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_CODEC_SPEC_H_
