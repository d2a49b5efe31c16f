// Codecs for tests: one that loses nothing, one that loses most. Same seam, same conformance suite.
#ifndef ISTHMUS_COMPRESSION_FAKE_CODECS_H_
#define ISTHMUS_COMPRESSION_FAKE_CODECS_H_

#include <memory>

#include "compression/codec.h"

namespace isthmus {

// Carries every difference exactly. Encode gives INVALID_ARGUMENT when a tensor's differences need more than
// 24 bits at one exponent: tests choose values that do not.
std::unique_ptr<Codec> MakeIdentityCodec();

// Sends only every third position of a tensor, cut to five bits towards zero: what it leaves is far from
// nothing.
std::unique_ptr<Codec> MakeLossyCodec();

}  // namespace isthmus

#endif  // ISTHMUS_COMPRESSION_FAKE_CODECS_H_
