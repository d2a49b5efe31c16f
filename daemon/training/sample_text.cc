#include "daemon/training/sample_text.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

// Length of the valid UTF-8 sequence at the start of `text` (not empty), 0 when there is none.
size_t Utf8Length(absl::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond the last code point.
  const bool is_bad = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
                      (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);
  return is_bad ? 0 : length;
}

}  // namespace

absl::StatusOr<std::string> SampleText(Trainer* trainer, absl::Span<const float> parameters,
                                       const SampleTextOptions& options) {
  std::vector<int32_t> prompt;
  for (char c : options.prompt) prompt.push_back(static_cast<unsigned char>(c));
  ISTHMUS_ASSIGN_OR_RETURN(
      const std::vector<int32_t> tokens,
      trainer->Sample(parameters, prompt, options.characters, options.temperature, options.seed));
  std::string bytes;
  for (int32_t token : tokens) {
    if (token < 0 || token > 255) {
      return absl::InvalidArgumentError(absl::StrCat("sample: token ", token, " is no byte of a text"));
    }
    bytes.push_back(static_cast<char>(token));
  }
  return PrintableText(bytes);
}

std::string PrintableText(absl::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const size_t length = Utf8Length(bytes);
    const unsigned char first = static_cast<unsigned char>(bytes[0]);
    const bool is_control = (first < 0x20 && first != '\n' && first != '\t') || first == 0x7F;
    if (length == 0 || is_control) {
      out.push_back('?');
      bytes.remove_prefix(1);
    } else {
      absl::StrAppend(&out, bytes.substr(0, length));
      bytes.remove_prefix(length);
    }
  }
  return out;
}

}  // namespace isthmus
