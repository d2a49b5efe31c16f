#include "compression/codec_spec.h"

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "compression/layout.h"

namespace isthmus {
namespace {

using Kind = CodecSpec::Kind;
using Share = CodecSpec::Share;

constexpr int kLargestSeed = std::numeric_limits<int32_t>::max();

// One setting of a transform: what it may be and where it goes.
struct SettingRule {
  const char* key;      // "" for a number without one
  const char* allowed;  // for messages
  bool (*allows)(int64_t value);
  void (*set)(CodecSpec* spec, int value);
  std::map<std::string, int> words = {};  // that stand for a value of their own
};

struct TransformRule {
  const char* name;
  std::vector<SettingRule> settings;
};

// A codec: the transforms it is made of, in order. The first begins it, the others may be left out.
struct KindRule {
  CodecSpec defaults;
  const char* needed;  // the key its first transform cannot be without, or ""
  std::vector<TransformRule> transforms;
};

SettingRule KeptValuesRule() {
  return {"k", "1 to 4096", [](int64_t v) { return v >= 1 && v <= kBlockValues; },
          [](CodecSpec* s, int v) { s->k = v; }};
}

SettingRule BlockRule() {
  return {"block", "4096", [](int64_t v) { return v == kBlockValues; }, [](CodecSpec*, int) {}};
}

SettingRule GroupRule() {
  return {"group", "a power of two, 16 to 4096",
          [](int64_t v) { return v >= 16 && v <= kBlockValues && (v & (v - 1)) == 0; },
          [](CodecSpec* s, int v) { s->group = v; }};
}

SettingRule SeedRule(const char* key, void (*set)(CodecSpec*, int)) {
  return {key, "0 to 2147483647", [](int64_t v) { return v <= kLargestSeed; }, set};
}

SettingRule LevelBitsRule() {
  return {"bits", "1 to 3", [](int64_t v) { return v >= 1 && v <= 3; },
          [](CodecSpec* s, int v) { s->value_bits = v; }};
}

TransformRule ZstdRule() {
  return {
      "zstd",
      {{"", "0 to 19", [](int64_t v) { return v <= 19; }, [](CodecSpec* s, int v) { s->zstd_level = v; }}}};
}

KindRule TopKRule() {
  SettingRule share{
      "share",
      "uniform or energy",
      [](int64_t) { return false; },
      [](CodecSpec* s, int v) { s->share = static_cast<Share>(v); },
      {{"uniform", static_cast<int>(Share::kUniform)}, {"energy", static_cast<int>(Share::kEnergy)}}};
  SettingRule bits = LevelBitsRule();
  bits.allowed = "1 to 3 or auto";
  bits.words = {{"auto", kAutoValueBits}};
  KindRule rule{
      {},
      "k",
      {{"topk", {KeptValuesRule(), BlockRule(), share}}, {"levels", {bits}}, {"gaps", {}}, ZstdRule()}};
  rule.defaults.kind = Kind::kTopK;
  return rule;
}

KindRule MaskRule() {
  const SettingRule seed = SeedRule("seed", [](CodecSpec* s, int v) { s->seed = v; });
  KindRule rule{
      {}, "k", {{"mask", {KeptValuesRule(), BlockRule(), seed}}, {"levels", {LevelBitsRule()}}, ZstdRule()}};
  rule.defaults.kind = Kind::kMask;
  return rule;
}

KindRule DenseRule() {
  const SettingRule bits{"bits", "24, 8 or 4", [](int64_t v) { return v == 24 || v == 8 || v == 4; },
                         [](CodecSpec* s, int v) { s->value_bits = v; }};
  const SettingRule hadamard = SeedRule("hadamard", [](CodecSpec* s, int v) { s->hadamard = v; });
  KindRule rule{{}, "", {{"dense", {bits, GroupRule(), hadamard}}, ZstdRule()}};
  rule.defaults.kind = Kind::kDense;
  rule.defaults.k = 0;
  rule.defaults.value_bits = 24;
  return rule;
}

// A carry-only codec; `group` 0: it has none.
KindRule CarryRule(Kind kind, const char* name, int bits, int group) {
  KindRule rule{{}, "", {{name, {}}, ZstdRule()}};
  if (group > 0) rule.transforms[0].settings = {GroupRule()};
  rule.defaults.kind = kind;
  rule.defaults.k = 0;
  rule.defaults.value_bits = bits;
  rule.defaults.group = group;
  return rule;
}

// In the order of CodecSpec::Kind.
const std::vector<KindRule>& Rules() {
  static const auto* const rules = new std::vector<KindRule>{
      TopKRule(),
      MaskRule(),
      DenseRule(),
      CarryRule(Kind::kFp32, "fp32", 32, 0),
      CarryRule(Kind::kBf16, "bf16", 16, 0),
      CarryRule(Kind::kFp8, "fp8", 8, 128),
      CarryRule(Kind::kNf4, "nf4", 4, 64),
  };
  return *rules;
}

// "topk|levels|gaps|zstd".
std::string Order(const KindRule& rule) {
  std::string order;
  for (const TransformRule& t : rule.transforms) absl::StrAppend(&order, order.empty() ? "" : "|", t.name);
  return order;
}

std::string FirstNames() {
  std::string names;
  for (const KindRule& rule : Rules())
    absl::StrAppend(&names, names.empty() ? "" : ", ", rule.transforms[0].name);
  return names;
}

// Whether the transform has a number without a name, as zstd has.
bool TakesNumber(const std::string& name) {
  for (const KindRule& rule : Rules()) {
    for (const TransformRule& t : rule.transforms) {
      if (name != t.name) continue;
      for (const SettingRule& s : t.settings) {
        if (*s.key == 0) return true;
      }
    }
  }
  return false;
}

// A number or word and where it stands, for messages that point at it.
struct Setting {
  int64_t value = 0;
  std::string word;  // empty: a number
  size_t at = 0;
  size_t key_at = 0;  // where its key begins
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
    const std::string name = Word();
    const size_t begin = at_ - name.size();
    at_ = 0;
    for (const KindRule& rule : Rules()) {
      if (name != rule.transforms[0].name) continue;
      const absl::StatusOr<Transform> first = ReadTransform();
      if (!first.ok()) return first.status();
      CodecSpec spec = rule.defaults;
      if (absl::Status s = Apply(rule.transforms[0], *first, &spec); !s.ok()) return s;
      if (*rule.needed && first->settings.count(rule.needed) == 0) {
        return Error(first->at, absl::StrCat(first->name, " needs ", rule.needed, ", as in ", first->name,
                                             "(", rule.needed, "=64)"));
      }
      if (absl::Status s = SettleDense(*first, &spec); !s.ok()) return s;
      if (absl::Status s = Rest(rule, &spec); !s.ok()) return s;
      return spec;
    }
    if (name.empty()) return Error(begin, "the name of a transform is expected");
    return Error(begin, absl::StrCat("\"", name, "\" begins no codec; these do: ", FirstNames()));
  }

 private:
  absl::Status Error(size_t at, absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("codec spec \"", text_, "\", character ", at + 1, ": ", what));
  }

  void Spaces() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool IsAtDigit() const { return at_ < text_.size() && absl::ascii_isdigit(text_[at_]); }

  // Whether the next character is `c`, which is then passed.
  bool Take(char c) {
    Spaces();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Letters, then also digits; empty when none follow.
  std::string Word() {
    Spaces();
    const size_t from = at_;
    while (at_ < text_.size() && (absl::ascii_isalpha(text_[at_]) || text_[at_] == '_' ||
                                  (at_ > from && absl::ascii_isdigit(text_[at_])))) {
      ++at_;
    }
    return std::string(text_.substr(from, at_ - from));
  }

  absl::StatusOr<Setting> Value() {
    Spaces();
    Setting setting;
    setting.at = at_;
    setting.word = Word();
    if (!setting.word.empty()) return setting;
    while (IsAtDigit()) {
      // Beyond what any setting may be it stays there, for the setting's own complaint.
      const int digit = text_[at_++] - '0';
      if (setting.value <= kLargestSeed) setting.value = setting.value * 10 + digit;
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
      if (key.empty() && !TakesNumber(transform.name) && !IsAtDigit()) {
        return Error(at_, "the name of a setting is expected");
      }
      if (!key.empty() && !Take('=')) return Error(at_, absl::StrCat("= is expected after ", key));
      absl::StatusOr<Setting> setting = Value();
      if (!setting.ok()) return setting.status();
      setting->key_at = key_at;
      if (!transform.settings.emplace(key, *setting).second) {
        return Error(key_at, absl::StrCat(key.empty() ? "number" : key, " is given twice"));
      }
    } while (Take(','));
    if (!Take(')')) return Error(at_, ", or ) is expected");
    return transform;
  }

  // Puts a transform's settings into *spec; those not given keep what is there.
  absl::Status Apply(const TransformRule& rule, const Transform& transform, CodecSpec* spec) const {
    for (const auto& [key, setting] : transform.settings) {
      const SettingRule* known = nullptr;
      for (const SettingRule& s : rule.settings) {
        if (key == s.key) known = &s;
      }
      if (known == nullptr) {
        return Error(setting.key_at,
                     absl::StrCat(transform.name, " has no setting ", key.empty() ? "without a name" : key));
      }
      const auto word = known->words.find(setting.word);
      const bool is_number = setting.word.empty();
      if (is_number ? !known->allows(setting.value) : word == known->words.end()) {
        return Error(setting.at, absl::StrCat(transform.name, *known->key ? " " : "", known->key, " must be ",
                                              known->allowed));
      }
      known->set(spec, is_number ? static_cast<int>(setting.value) : word->second);
    }
    return absl::OkStatus();
  }

  // Which settings of a dense codec go together.
  absl::Status SettleDense(const Transform& transform, CodecSpec* spec) const {
    if (spec->kind != Kind::kDense) return absl::OkStatus();
    const auto group = transform.settings.find("group"), hadamard = transform.settings.find("hadamard");
    if (spec->value_bits == 24 && group != transform.settings.end()) {
      return Error(group->second.at, "dense group goes with bits=8 and bits=4 only");
    }
    if (spec->value_bits != 4 && hadamard != transform.settings.end()) {
      return Error(hadamard->second.at, "dense hadamard goes with bits=4 only");
    }
    if (spec->value_bits != 24 && spec->group == 0) spec->group = 64;
    return absl::OkStatus();
  }

  // The transforms after the first: each may be missing, none may be out of order.
  absl::Status Rest(const KindRule& rule, CodecSpec* spec) {
    size_t next = 1;
    while (Take('|')) {
      const absl::StatusOr<Transform> transform = ReadTransform();
      if (!transform.ok()) return transform.status();
      while (next < rule.transforms.size() && transform->name != rule.transforms[next].name) ++next;
      if (next == rule.transforms.size()) {
        return Error(transform->at, absl::StrCat("\"", transform->name,
                                                 "\" does not belong here; the order is ", Order(rule)));
      }
      if (absl::Status s = Apply(rule.transforms[next++], *transform, spec); !s.ok()) return s;
    }
    Spaces();
    if (at_ < text_.size()) return Error(at_, "| or the end is expected");
    return absl::OkStatus();
  }

  absl::string_view text_;
  size_t at_ = 0;
};

// The first transform, canonical.
std::string FirstText(const CodecSpec& spec) {
  const std::string kept = absl::StrCat("(k=", spec.k, ",block=", kBlockValues);
  const std::string group = absl::StrCat("group=", spec.group);
  switch (spec.kind) {
    case Kind::kTopK:
      return absl::StrCat("topk", kept, spec.share == Share::kEnergy ? ",share=energy)" : ")");
    case Kind::kMask:
      return absl::StrCat("mask", kept, ",seed=", spec.seed, ")");
    case Kind::kDense:
      return absl::StrCat("dense(bits=", spec.value_bits,
                          spec.value_bits == 24 ? "" : absl::StrCat(",", group),
                          spec.hadamard == kNoHadamard ? "" : absl::StrCat(",hadamard=", spec.hadamard), ")");
    case Kind::kFp32:
      return "fp32";
    case Kind::kBf16:
      return "bf16";
    case Kind::kFp8:
      return absl::StrCat("fp8(", group, ")");
    case Kind::kNf4:
      return absl::StrCat("nf4(", group, ")");
  }
  return "";
}

}  // namespace

absl::StatusOr<CodecSpec> ParseSpecText(absl::string_view text) { return SpecParser(text).Parse(); }

std::string SpecText(const CodecSpec& spec) {
  std::string text = FirstText(spec);
  if (spec.kind == Kind::kTopK || spec.kind == Kind::kMask) {
    const std::string bits = spec.value_bits == kAutoValueBits ? "auto" : absl::StrCat(spec.value_bits);
    absl::StrAppend(&text, "|levels(bits=", bits, ")", spec.kind == Kind::kTopK ? "|gaps" : "");
  }
  return absl::StrCat(text, "|zstd(", spec.zstd_level, ")");
}

bool IsSummable(const CodecSpec& spec) {
  return spec.kind == Kind::kTopK || spec.kind == Kind::kMask || spec.kind == Kind::kDense;
}

bool IsLossless(const CodecSpec& spec) { return spec.kind == Kind::kFp32; }

}  // namespace isthmus
