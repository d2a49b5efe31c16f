// Numbers as people read them in the status and at the end of a run. Pure; no locale.
#ifndef ISTHMUS_DAEMON_APP_HUMAN_UNITS_H_
#define ISTHMUS_DAEMON_APP_HUMAN_UNITS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace isthmus {

// Three significant digits and a decimal unit: "0 B", "999 B", "12.3 kB", "4.56 GB".
std::string HumanBytes(int64_t bytes);

// The same for counts and rates, without a word: "0", "999", "12.3k", "4.56M".
std::string HumanCount(double count);

// "0.12 s", "34.5 s", "12m 05s", "3h 07m", "2d 04h"; "-" for a negative or not finite one.
std::string HumanSeconds(double seconds);

// Four digits after the point, or "-" for zero and what is not finite (nothing measured yet).
std::string HumanLoss(double loss);

// "12.3 %"; "-" when `whole` is 0.
std::string HumanShare(double part, double whole);

// The first eight hexadecimal digits of a 16-byte digest, enough to compare by eye; "-" when empty.
std::string ShortDigest(absl::string_view bytes);

// All 32 digits; "-" when empty.
std::string FullDigest(absl::string_view bytes);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_APP_HUMAN_UNITS_H_
