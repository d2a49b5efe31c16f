#include "compression/codec_spec.h"

#include <cstdint>
#include <map>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compression/layout.h"

namespace isthmus {
namespace {

// A number and where it stands, for messages that point at it.
struct Setting {
  int64_t value = 0;
  size_t at = 0;
};

struct Transform {
  std::string name;
  size_t at = 0;
  std::map<std::string, Setting> settings;  // "" for a number without a key
};

class SpecParser {
 public:
  explicit SpecParser(absl::string_view text) : text_(text) {}

  absl::StatusOr<CodecSpec> Parse() {
    CodecSpec spec;
    const absl::StatusOr<Transform> transform = ReadTransform();
    if (!transform.ok()) return transform.status();
    if (transform->name == "topk") {
      if (absl::Status s = TopK(*transform, &spec); !s.ok()) return s;
    } else if (transform->name == "dense") {
      spec.kind = CodecSpec::Kind::kDense;
      spec.k = 0;
      spec.value_bits = 24;
      if (absl::Status s = Keys(*transform, {"bits"}); !s.ok()) return s;
      if (absl::Status s = Number(*transform, "bits", 24, 24, &spec.value_bits); !s.ok()) return s;
    } else {
      return Error(transform->at,
                   absl::StrCat("\"", transform->name, "\" begins no codec; topk or dense does"));
    }
    if (absl::Status s = Rest(&spec); !s.ok()) return s;
    return spec;
  }

 private:
  absl::Status Error(size_t at, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("codec spec \"", text_, "\", character ", at + 1, ": ", what));
  }

  void Spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  // Whether the next character is `c`, which is then passed.
  bool Take(char c) {
    Spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string Word() {
    Spaces();
    const size_t from = at_;
    while (at_ < text_.size() && (absl::ascii_isalpha(text_[at_]) || text_[at_] == '_')) ++at_;
    return std::string(text_.substr(from, at_ - from));
  }

  absl::StatusOr<Setting> Integer() {
    Spaces();
    Setting setting;
    setting.at = at_;
    while (at_ < text_.size() && absl::ascii_isdigit(text_[at_])) {
      if (setting.value > 1000000) return Error(setting.at, "number too large");
      setting.value = setting.value * 10 + (text_[at_++] - '0');
    }
    if (at_ == setting.at) return Error(at_, "a number is expected");
    return setting;
  }

  absl::StatusOr<Transform> ReadTransform() {
    Transform transform;
    Spaces();
    transform.at = at_;
    transform.name = Word();
    if (transform.name.empty()) return Error(at_, "the name of a transform is expected");
    if (!Take('(')) return transform;
    do {
      Spaces();
      const size_t key_at = at_;
      const std::string key = Word();
      if (!key.empty() && !Take('=')) return Error(at_, absl::StrCat("= is expected after ", key));
      const absl::StatusOr<Setting> setting = Integer();
      if (!setting.ok()) return setting.status();
      if (!transform.settings.emplace(key, *setting).second) {
        return Error(key_at, absl::StrCat(key.empty() ? "number" : key, " is given twice"));
      }
    } while (Take(','));
    if (!Take(')')) return Error(at_, ", or ) is expected");
    return transform;
  }

  // Refuses settings other than `known`.
  absl::Status Keys(const Transform& transform, std::initializer_list<const char*> known) const {
    for (const auto& [key, setting] : transform.settings) {
      bool found = false;
      for (const char* k : known) found |= key == k;
      if (!found) {
        return Error(setting.at,
                     absl::StrCat(transform.name, " has no setting ", key.empty() ? "without a name" : key));
      }
    }
    return absl::OkStatus();
  }

  // *out stays when the setting is not given.
  absl::Status Number(const Transform& transform, const char* key, int least, int most, int* out) const {
    const auto found = transform.settings.find(key);
    if (found == transform.settings.end()) return absl::OkStatus();
    const std::string what = absl::StrCat(transform.name, *key ? " " : "", key);
    if (found->second.value < least || found->second.value > most) {
      return Error(found->second.at, least == most ? absl::StrCat(what, " must be ", least)
                                                   : absl::StrCat(what, " must be ", least, " to ", most));
    }
    *out = static_cast<int>(found->second.value);
    return absl::OkStatus();
  }

  absl::Status TopK(const Transform& transform, CodecSpec* spec) const {
    if (absl::Status s = Keys(transform, {"k", "block"}); !s.ok()) return s;
    if (transform.settings.count("k") == 0) return Error(transform.at, "topk needs k, as in topk(k=64)");
    int block = kBlockValues;
    if (absl::Status s = Number(transform, "k", 1, kBlockValues, &spec->k); !s.ok()) return s;
    return Number(transform, "block", kBlockValues, kBlockValues, &block);
  }

  // The transforms after the first: each may be missing, none may be out of order.
  absl::Status Rest(CodecSpec* spec) {
    const bool sparse = spec->kind == CodecSpec::Kind::kTopK;
    int passed = sparse ? 0 : 2;
    while (Take('|')) {
      const absl::StatusOr<Transform> transform = ReadTransform();
      if (!transform.ok()) return transform.status();
      if (transform->name == "levels" && passed < 1) {
        passed = 1;
        if (absl::Status s = Keys(*transform, {"bits"}); !s.ok()) return s;
        if (absl::Status s = Number(*transform, "bits", 1, 3, &spec->value_bits); !s.ok()) return s;
      } else if (transform->name == "gaps" && passed < 2) {
        passed = 2;
        if (absl::Status s = Keys(*transform, {}); !s.ok()) return s;
      } else if (transform->name == "zstd" && passed < 3) {
        passed = 3;
        if (absl::Status s = Keys(*transform, {""}); !s.ok()) return s;
        if (absl::Status s = Number(*transform, "", 1, 19, &spec->zstd_level); !s.ok()) return s;
      } else {
        return Error(transform->at,
                     absl::StrCat("\"", transform->name, "\" does not belong here; the order is ",
                                  sparse ? "topk|levels|gaps|zstd" : "dense|zstd"));
      }
    }
    Spaces();
    if (at_ < text_.size()) return Error(at_, "| or the end is expected");
    return absl::OkStatus();
  }

  absl::string_view text_;
  size_t at_ = 0;
};

}  // namespace

absl::StatusOr<CodecSpec> ParseSpecText(absl::string_view text) { return SpecParser(text).Parse(); }

std::string SpecText(const CodecSpec& spec) {
  const std::string zstd = absl::StrCat("|zstd(", spec.zstd_level, ")");
  if (spec.kind == CodecSpec::Kind::kDense) return absl::StrCat("dense(bits=", spec.value_bits, ")", zstd);
  return absl::StrCat("topk(k=", spec.k, ",block=", kBlockValues, ")|levels(bits=", spec.value_bits, ")|gaps",
                      zstd);
}

}  // namespace isthmus
