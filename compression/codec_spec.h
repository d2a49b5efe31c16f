// A codec spec as text and as numbers: which transforms a frame went through. One grammar for all traffic.
#ifndef ISTHMUS_COMPRESSION_CODEC_SPEC_H_
#define ISTHMUS_COMPRESSION_CODEC_SPEC_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace isthmus {

// CodecSpec::value_bits of levels(bits=auto): chosen per tensor by the encoder, written in the frame.
inline constexpr int kAutoValueBits = 0;
// CodecSpec::hadamard where no transform is asked for.
inline constexpr int kNoHadamard = -1;

// What the text says. Plain value; settings a kind does not have keep what ParseSpecText leaves in them.
struct CodecSpec {
  enum class Kind {
    kTopK,   // the largest of each block, positions sent
    kMask,   // positions both ends derive from a seed
    kDense,  // every value: integers of 24, 8 or 4 bits times powers of two
    kFp32,   // the floats themselves; carry-only, like those below
    kBf16,
    kFp8,  // E4M3, a scale per group
    kNf4,  // sixteen normal-distribution levels, a scale per group
  };
  enum class Share { kUniform, kEnergy };  // of the kept values among tensors

  Kind kind = Kind::kTopK;
  int k = 64;                     // kTopK, kMask: kept values per block of 4096, 1 … 4096
  Share share = Share::kUniform;  // kTopK
  int value_bits = 1;  // kTopK, kMask: 1, 2 or 3 (sign and 1, 2 or 4 levels), kTopK also kAutoValueBits;
                       // kDense: 24, 8 or 4; others: bits of a value
  int group = 0;  // kDense of 8 and 4 bits, kFp8, kNf4: values that share a scale; a power of two, 16 … 4096
  int seed = 0;   // kMask: of the positions
  int hadamard = kNoHadamard;  // kDense of 4 bits: seed of the signs, 0 or more
  int zstd_level = 1;          // 1 … 19; 0: streams are stored as they are

  bool operator==(const CodecSpec& o) const {
    return kind == o.kind && k == o.k && share == o.share && value_bits == o.value_bits && group == o.group &&
           seed == o.seed && hadamard == o.hadamard && zstd_level == o.zstd_level;
  }
};

// Reads one of
//   topk(k=512,block=4096[,share=uniform|energy])|levels(bits=1|2|3|auto)|gaps|zstd(1)
//   mask(k=64,block=4096,seed=7)|levels(bits=1|2|3)|zstd(1)
//   dense(bits=24)|zstd(1)    dense(bits=8,group=64)|zstd(1)    dense(bits=4,group=64[,hadamard=7])|zstd(1)
//   fp32|zstd(1)    bf16|zstd(1)    fp8(group=128)|zstd(1)    nf4(group=64)|zstd(1)
// All transforms after the first may be left out, and all settings but k. Spaces are allowed between words.
// INVALID_ARGUMENT otherwise, saying at which character (counted from 1) and what was expected.
absl::StatusOr<CodecSpec> ParseSpecText(absl::string_view text);

// The canonical text, everything spelled out but share=uniform; ParseSpecText gives the spec back.
std::string SpecText(const CodecSpec& spec);

// Whether frames decode to integers times powers of two, which add exactly: pseudo-gradients and updates take
// these only (ROUNDS §8). The others carry values from end to end (carry_codec.h).
bool IsSummable(const CodecSpec& spec);

// Whether every finite or non-finite float comes back with its own bits.
bool IsLossless(const CodecSpec& spec);

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_CODEC_SPEC_H_
