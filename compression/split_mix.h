// The generator that seeds in codec specs stand for (FORMAT.md). Header-only, pure.
#ifndef ISTHMUS_COMPRESSION_SPLIT_MIX_H_
#define ISTHMUS_COMPRESSION_SPLIT_MIX_H_

#include <cstdint>

namespace isthmus {

// 64 bits out of a counter: the generator of FORMAT.md, the same on every machine.
class SplitMix {
 public:
  explicit SplitMix(uint64_t state) : state_(state) {}

  uint64_t Next() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t z = state_;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
  }

 private:
  uint64_t state_;
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_SPLIT_MIX_H_
