// How an encoder works; what it writes does not depend on it. Header-only.
#ifndef ISTHMUS_COMPRESSION_ENCODE_PLAN_H_
#define ISTHMUS_COMPRESSION_ENCODE_PLAN_H_

#include "compression/simd_path.h"

namespace isthmus {

struct EncodePlan {
  SimdPath path = SimdPath::kPortable;  // one that is there
  int threads = 1;                      // the caller's among them; at least 1
};

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_ENCODE_PLAN_H_
