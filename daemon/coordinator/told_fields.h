// What a site says of itself, held to what can be true: names that are safe to print, numbers that can be
// added up, texts that fit a line. A site is believed, but must not be able to spoil what others see by a
// slip or a damaged memory.
//
// Pure; safe from any thread.
#ifndef ISTHMUS_DAEMON_COORDINATOR_TOLD_FIELDS_H_
#define ISTHMUS_DAEMON_COORDINATOR_TOLD_FIELDS_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "protos/control.pb.h"

namespace isthmus {

// The most of anything that one message can count (steps, tokens, bytes, sequences): thousands of messages
// can be added up.
constexpr int64_t kMostTold = int64_t{1} << 48;

// A site's name: 1 to 128 letters, digits, '-', '_' and '.'. INVALID_ARGUMENT otherwise.
absl::Status CheckSiteName(absl::string_view name);

// At most 200 bytes of it, cut between characters, with control characters as blanks.
std::string OneLine(absl::string_view text);

// INVALID_ARGUMENT naming the field when a number in it cannot be, or a digest is none. A loss may be
// anything: a run that diverged shows it.
absl::Status CheckTold(const ContributionHeader& header);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_COORDINATOR_TOLD_FIELDS_H_
