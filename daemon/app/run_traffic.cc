#include "daemon/app/run_traffic.h"

#include <algorithm>
#include <initializer_list>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "daemon/base/status.h"
#include "daemon/training/schedule.h"

namespace isthmus {
namespace {

constexpr char kAutoWord[] = "auto";
constexpr char kAutoSpec[] = "topk(k=auto)|levels(bits=1)";

size_t SkipBlanks(absl::string_view text, size_t at) {
  while (at < text.size() && text[at] == ' ') ++at;
  return at;
}

// The word that ends before `at`, blanks aside.
absl::string_view KeyBefore(absl::string_view text, size_t at) {
  text = absl::StripTrailingAsciiWhitespace(text.substr(0, at));
  size_t from = text.size();
  while (from > 0 && absl::ascii_isalpha(text[from - 1])) --from;
  return text.substr(from);
}

constexpr char kPlainFloats[] = "fp32";

// The word a spec begins with; may be empty.
absl::string_view FirstWord(absl::string_view spec) {
  const size_t at = SkipBlanks(spec, 0);
  return spec.substr(at, spec.find_first_of(" (|", at) - at);
}

// Points at the word a spec begins with.
absl::Status WrongCodec(absl::string_view spec, absl::string_view what) {
  const absl::string_view name = FirstWord(spec);
  return absl::InvalidArgumentError(absl::StrCat("codec spec \"", spec, "\", character ",
                                                 SkipBlanks(spec, 0) + 1, ": ",
                                                 name.empty() ? "nothing" : name, what));
}

bool IsOneOf(absl::string_view word, std::initializer_list<absl::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// The canonical text of a spec of which it is known that it begins as a summable one does.
absl::StatusOr<std::string> Summable(absl::string_view spec) {
  ISTHMUS_ASSIGN_OR_RETURN(const CodecSpec parsed, ParseSpecText(spec));
  const absl::StatusOr<std::unique_ptr<Codec>> codec = ParseCodecSpec(spec);
  if (!codec.ok()) return codec.status();
  return SpecText(parsed);
}

// An error about a spec whose `auto` was filled in quotes what was written; both are as long.
absl::Status InTheUsersWords(const absl::Status& status, absl::string_view filled, absl::string_view spec) {
  return absl::Status(status.code(), absl::StrReplaceAll(status.message(), {{filled, spec}}));
}

}  // namespace

std::string FillAutoCodec(absl::string_view spec, int64_t total_rounds) {
  const size_t first = SkipBlanks(spec, 0);
  std::string text(spec);
  if (spec.substr(first).substr(0, 4) == kAutoWord && SkipBlanks(spec, first + 4) == spec.size()) {
    text = kAutoSpec;
  }
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '=' || KeyBefore(text, at) != "k") continue;
    const size_t value = SkipBlanks(text, at + 1);
    if (text.compare(value, 4, kAutoWord) != 0) continue;
    if (value + 4 < text.size() && absl::ascii_isalnum(text[value + 4])) continue;  // another word
    std::string k = absl::StrCat(AutoKeptPerBlock(total_rounds));
    k.resize(4, ' ');
    text.replace(value, 4, k);
  }
  return text;
}

absl::StatusOr<std::string> ResolveContributionCodec(absl::string_view spec, int64_t total_rounds) {
  const std::string filled = FillAutoCodec(spec, total_rounds);
  const absl::string_view name = FirstWord(filled);
  if (!IsOneOf(name, {"topk", "mask", "dense"})) {
    const bool is_carried = ParseSpecText(name).ok();
    return WrongCodec(spec,
                      absl::StrCat(is_carried ? " is a carry-only codec: contributions are summed exactly"
                                              : " is no codec of contributions: these are summed",
                                   " and need topk, mask or dense, or auto by itself"));
  }
  const absl::StatusOr<std::string> text = Summable(filled);
  return text.ok() ? text : InTheUsersWords(text.status(), filled, spec);
}

absl::StatusOr<std::string> ResolveUpdateCodec(absl::string_view spec, int64_t total_rounds) {
  if (absl::StripAsciiWhitespace(spec) == kExactUpdates) return kExactUpdates;
  const std::string filled = FillAutoCodec(spec, total_rounds);
  const absl::string_view name = FirstWord(filled);
  if (name != "topk") {
    // An update encoded anew travels as sums, which take a dense or masked one several times its frame's
    // bytes.
    const bool is_large = IsOneOf(name, {"mask", "dense"});
    return WrongCodec(spec,
                      absl::StrCat(is_large ? " would make an update larger" : " is no codec of updates",
                                   ": these are topk(k=...), or exact or auto by itself"));
  }
  const absl::StatusOr<std::string> text = Summable(filled);
  return text.ok() ? text : InTheUsersWords(text.status(), filled, spec);
}

absl::StatusOr<std::string> ResolveActivationCodec(absl::string_view spec) {
  ISTHMUS_ASSIGN_OR_RETURN(const CodecSpec parsed, ParseSpecText(spec));
  return SpecText(parsed);
}

absl::StatusOr<std::string> ResolveSnapshotCodec(absl::string_view spec) {
  if (absl::StripAsciiWhitespace(spec) == kPlainFloats) return kPlainFloats;
  if (FirstWord(spec) != kPlainFloats) {
    const bool is_lossy =
        IsOneOf(FirstWord(spec), {"topk", "mask", "dense"}) || ParseSpecText(FirstWord(spec)).ok();
    return WrongCodec(spec, absl::StrCat(is_lossy ? " loses bits" : " is no codec of snapshots",
                                         ": snapshots are what a run goes on from and take fp32 or "
                                         "fp32|zstd(n)"));
  }
  ISTHMUS_ASSIGN_OR_RETURN(const CodecSpec parsed, ParseSpecText(spec));
  // Not compressed at all is the plain form.
  return parsed.zstd_level == 0 ? kPlainFloats : SpecText(parsed);
}

absl::StatusOr<TrafficCodecs> ResolveTraffic(const ExchangeConfig& exchange, int64_t total_rounds) {
  TrafficCodecs out;
  const auto take = [](absl::string_view field, absl::StatusOr<std::string> spec,
                       std::string* to) -> absl::Status {
    if (!spec.ok()) return Annotate(spec.status(), absl::StrCat("exchange.", field));
    *to = *std::move(spec);
    return absl::OkStatus();
  };
  ISTHMUS_RETURN_IF_ERROR(take("contribution_codec",
                               ResolveContributionCodec(exchange.contribution_codec(), total_rounds),
                               &out.contribution));
  ISTHMUS_RETURN_IF_ERROR(
      take("update_codec", ResolveUpdateCodec(exchange.update_codec(), total_rounds), &out.update));
  ISTHMUS_RETURN_IF_ERROR(
      take("activation_codec", ResolveActivationCodec(exchange.activation_codec()), &out.activation));
  ISTHMUS_RETURN_IF_ERROR(take("activation_gradient_codec",
                               ResolveActivationCodec(exchange.activation_gradient_codec()),
                               &out.activation_gradient));
  ISTHMUS_RETURN_IF_ERROR(
      take("snapshot_codec", ResolveSnapshotCodec(exchange.snapshot_codec()), &out.snapshot));
  return out;
}

}  // namespace isthmus
