#include "daemon/coordinator/told_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

constexpr size_t kLongestName = 128;
constexpr size_t kLongestLine = 200;

absl::Status CheckCount(absl::string_view field, int64_t told) {
  if (told >= 0 && told <= kMostTold) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(field, " of ", told, " cannot be"));
}

}  // namespace

absl::Status CheckSiteName(absl::string_view name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (is_plain && !name.empty() && name.size() <= kLongestName) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a site's name has 1 to ", kLongestName, " letters, digits, '-', '_' and '.'"));
}

std::string OneLine(absl::string_view text) {
  if (text.size() > kLongestLine) {
    size_t end = kLongestLine;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // within a character
    text = text.substr(0, end);
  }
  std::string line(text);
  for (char& c : line) {
    if (absl::ascii_iscntrl(c)) c = ' ';
  }
  return line;
}

absl::Status CheckTold(const ContributionHeader& h) {
  if (h.key().round() < 1 || h.key().round() > kMostTold)
    return absl::InvalidArgumentError(absl::StrCat("there is no round ", h.key().round()));
  if (h.key().fragment() != 0)
    return absl::InvalidArgumentError(absl::StrCat("there is no fragment ", h.key().fragment()));
  if (h.base_digest().size() != 16) return absl::InvalidArgumentError("base_digest is not 16 bytes");
  if (h.frame_digest().size() != 16) return absl::InvalidArgumentError("frame_digest is not 16 bytes");
  if (!std::isfinite(h.decayed_square_sum()) || h.decayed_square_sum() < 0)
    return absl::InvalidArgumentError("decayed_square_sum cannot be");
  for (auto [field, told] :
       {std::pair("tokens", h.tokens()), std::pair("steps", h.steps()),
        std::pair("tokens_per_step", h.tokens_per_step()), std::pair("inner_steps", h.inner_steps()),
        std::pair("base_round", h.base_round())}) {
    if (absl::Status s = CheckCount(field, told); !s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace isthmus
