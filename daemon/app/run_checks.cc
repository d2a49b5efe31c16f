#include "daemon/app/run_checks.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "compression/codec_spec.h"
#include "daemon/app/run_resolve.h"
#include "daemon/app/run_traffic.h"
#include "daemon/base/logging.h"
#include "daemon/training/tensor_table.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"

namespace isthmus {
namespace {

constexpr size_t kMostNameBytes = 64;
constexpr int64_t kMostSites = 1024;  // what exact sums allow (ROUNDS §8)

class Checker {
 public:
  Checker(const RunFile& run, const RunLocations& locations, std::vector<RunFinding>* findings)
      : run_(run), locations_(locations), findings_(findings) {}

  void Check() {
    CheckEnums(run_, "");
    CheckName();
    CheckModel();
    CheckData();
    CheckEnd();
    CheckRounds();
    CheckCodec();
    CheckOuter();
    CheckInner();
    CheckRest();
  }

 private:
  void Error(absl::string_view path, absl::string_view message) { Add(path, message, false); }
  void Warning(absl::string_view path, absl::string_view message) { Add(path, message, true); }
  void Add(absl::string_view path, absl::string_view message, bool is_warning) {
    // What could not be read has been reported, and its default is not the user's mistake.
    if (locations_.IsUnreadable(path)) return;
    const RunLocations::Place place = locations_.Find(path);
    findings_->push_back({place.line, place.column, is_warning, absl::StrCat(path, ": ", message)});
  }

  // False, with an error, unless least ≤ value ≤ most.
  bool Between(absl::string_view path, int64_t value, int64_t least, int64_t most) {
    if (value >= least && value <= most) return true;
    Error(path, absl::StrCat("is ", value, ", must be between ", least, " and ", most));
    return false;
  }
  // Also refuses what is not a number.
  bool Within(absl::string_view path, double value, double least, double most, bool may_be_least) {
    if ((may_be_least ? value >= least : value > least) && value <= most) return true;
    Error(path, absl::StrCat("is ", value, ", must be ", may_be_least ? "between " : "above ", least,
                             may_be_least ? " and " : " and at most ", most));
    return false;
  }

  void CheckEnums(const google::protobuf::Message& message, const std::string& prefix);
  void CheckName();
  void CheckModel();
  void CheckData();
  void CheckEnd();
  void CheckRounds();
  void CheckCodec();
  void CheckMaskDecay();
  void CheckOuter();
  void CheckInner();
  void CheckPeakRate();
  void CheckRest();
  absl::Duration CheckSpan(absl::string_view path, const google::protobuf::Duration& span,
                           absl::Duration least, absl::Duration most);

  const RunFile& run_;
  const RunLocations& locations_;
  std::vector<RunFinding>* findings_;
  int64_t parameters_ = 0;  // 0: the model is impossible
};

// The parser takes any number where a name is meant.
void Checker::CheckEnums(const google::protobuf::Message& message, const std::string& prefix) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  for (int i = 0; i < type.field_count(); ++i) {
    const google::protobuf::FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    if (field.message_type() != nullptr) {
      CheckEnums(reflection.GetMessage(message, &field), path + ".");
      continue;
    }
    if (field.enum_type() == nullptr) continue;
    const int number = reflection.GetEnumValue(message, &field);
    if (field.enum_type()->FindValueByNumber(number) != nullptr) continue;
    std::string names;
    for (int v = 0; v < field.enum_type()->value_count(); ++v) {
      const google::protobuf::EnumValueDescriptor& value = *field.enum_type()->value(v);
      if (value.number() != 0) absl::StrAppend(&names, names.empty() ? "" : ", ", value.name());
    }
    Error(path, absl::StrCat("is ", number, ", must be one of ", names));
  }
}

void Checker::CheckName() {
  const std::string& name = run_.name();
  if (name.empty()) return Error("name", "is missing; it is the run's name in isthmus://host:port/NAME");
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '-' || c == '_' || c == '.';
  });
  if (!is_plain || name.size() > kMostNameBytes || name[0] == '.') {
    Error("name", absl::StrCat("must be letters, digits, '-', '_' and '.', not begin with '.', and at most ",
                               kMostNameBytes, " long"));
  }
}

void Checker::CheckModel() {
  const ModelConfig& m = run_.model();
  bool is_possible = Between("model.vocabulary", m.vocabulary(), 2, int64_t{1} << 24);
  is_possible &= Between("model.width", m.width(), 2, int64_t{1} << 20);
  is_possible &= Between("model.layers", m.layers(), 1, 4096);
  const bool has_heads = Between("model.heads", m.heads(), 1, int64_t{1} << 20);
  const bool has_kv_heads = Between("model.kv_heads", m.kv_heads(), 1, int64_t{1} << 20);
  is_possible &= has_heads && has_kv_heads;
  is_possible &= Between("model.feed_forward", m.feed_forward(), 1, int64_t{1} << 20);
  is_possible &= Between("model.context", m.context(), 1, int64_t{1} << 20);
  if (has_heads && m.width() > 0 && m.width() % m.heads() != 0) {
    Error("model.heads", absl::StrCat(m.heads(), " heads do not divide a width of ", m.width()));
    is_possible = false;
  } else if (has_heads && m.width() > 0 && m.width() / m.heads() % 2 != 0) {
    Error("model.heads",
          absl::StrCat("heads of width ", m.width() / m.heads(), " are odd; rotary positions need pairs"));
    is_possible = false;
  }
  if (has_heads && has_kv_heads && m.heads() % m.kv_heads() != 0) {
    Error("model.kv_heads",
          absl::StrCat(m.kv_heads(), " key/value heads do not divide ", m.heads(), " heads"));
    is_possible = false;
  }
  if (!is_possible) return;
  const absl::StatusOr<TensorTable> table = TensorTable::ForModel(ModelShapeOf(m));
  if (!table.ok()) return Error("model", table.status().message());
  parameters_ = table->layout().total();
}

void Checker::CheckData() {
  const DataConfig& data = run_.data();
  Between("data.sequences_per_step", data.sequences_per_step(), 1, int64_t{1} << 20);
  const int64_t vocabulary = run_.model().vocabulary();
  if (data.format() == DataConfig::BYTES && vocabulary < 256) {
    Error("model.vocabulary", absl::StrCat("is ", vocabulary, ", but data.format BYTES has 256 tokens"));
  }
  if (data.format() == DataConfig::UINT16 && vocabulary > 65536) {
    Warning("model.vocabulary",
            absl::StrCat("is ", vocabulary, ", but data.format UINT16 reaches 65536 only"));
  }
}

void Checker::CheckEnd() {
  const RoundConfig& rounds = run_.rounds();
  const bool is_any_unreadable =
      locations_.IsUnreadable("rounds.total_rounds") || locations_.IsUnreadable("rounds.total_tokens");
  if (!rounds.has_total_rounds() && !rounds.has_total_tokens() && !is_any_unreadable) {
    Error("rounds", "neither total_rounds nor total_tokens is given; the run would have no end");
  }
  if (rounds.has_total_rounds()) Between("rounds.total_rounds", rounds.total_rounds(), 1, 1'000'000'000);
  if (!rounds.has_total_tokens()) return;
  if (!Between("rounds.total_tokens", rounds.total_tokens(), 1, int64_t{1} << 53)) return;
  const double per_step =
      static_cast<double>(run_.data().sequences_per_step()) * static_cast<double>(run_.model().context());
  const double per_round = per_step * static_cast<double>(rounds.inner_steps_per_round());
  if (per_round > 0 && static_cast<double>(rounds.total_tokens()) < per_round) {
    Warning("rounds.total_tokens", absl::StrFormat("is %d, less than one site trains in one round (%.0f)",
                                                   rounds.total_tokens(), per_round));
  }
}

void Checker::CheckRounds() {
  const RoundConfig& rounds = run_.rounds();
  Between("rounds.inner_steps_per_round", rounds.inner_steps_per_round(), 1, 1'000'000);
  CheckSpan("rounds.longest_round", rounds.longest_round(), absl::Seconds(1), absl::Hours(24 * 7));
  Between("rounds.start_sites", rounds.start_sites(), 1, kMostSites);
  bool has_both = rounds.has_quorum() && rounds.has_minimum();
  if (rounds.has_quorum()) has_both &= Between("rounds.quorum", rounds.quorum(), 1, kMostSites);
  if (rounds.has_minimum()) has_both &= Between("rounds.minimum", rounds.minimum(), 1, kMostSites);
  if (has_both && rounds.quorum() < rounds.minimum()) {
    Error("rounds.quorum",
          absl::StrCat("is ", rounds.quorum(), ", less than rounds.minimum, which is ", rounds.minimum()));
  }
  if (rounds.dense_last_round() && run_.exchange().error_feedback() == ExchangeConfig::SEPARATE) {
    Warning("rounds.dense_last_round",
            "is true with error_feedback: SEPARATE: the last round then applies at once what many rounds did "
            "not send, which can make the final weights much worse");
  }
  if (rounds.has_minimum() && rounds.minimum() > rounds.start_sites()) {
    Warning("rounds.minimum",
            absl::StrCat("is ", rounds.minimum(), ", more than the ", rounds.start_sites(),
                         " sites of rounds.start_sites; rounds of fewer sites cannot close"));
  }
}

void Checker::CheckCodec() {
  const ExchangeConfig& exchange = run_.exchange();
  Within("exchange.carry_decay", exchange.carry_decay(), 0, 1, /*may_be_least=*/false);
  const int64_t rounds = EstimateRounds(run_, 1);
  const auto check = [this](absl::string_view field, const absl::StatusOr<std::string>& spec) {
    if (!spec.ok()) Error(field, spec.status().message());
  };
  check("exchange.update_codec", ResolveUpdateCodec(exchange.update_codec(), rounds));
  check("exchange.activation_codec", ResolveActivationCodec(exchange.activation_codec()));
  check("exchange.activation_gradient_codec", ResolveActivationCodec(exchange.activation_gradient_codec()));
  check("exchange.snapshot_codec", ResolveSnapshotCodec(exchange.snapshot_codec()));
  const absl::StatusOr<std::string> spec = ResolveContributionCodec(exchange.contribution_codec(), rounds);
  if (!spec.ok()) return Error("exchange.contribution_codec", spec.status().message());
  const absl::StatusOr<CodecSpec> parsed = ParseSpecText(*spec);
  if (parsed.ok() && parsed->kind == CodecSpec::Kind::kTopK && run_.outer().form() == OuterConfig::NESTEROV) {
    Warning("outer.form", "NESTEROV is meant for the dense codec; with a sparse one it was worse than PLAIN");
  }
  if (parsed.ok() && parsed->kind == CodecSpec::Kind::kMask && exchange.carry_decay() < 1) CheckMaskDecay();
}

void Checker::CheckMaskDecay() {
  const ExchangeConfig& exchange = run_.exchange();
  const bool is_separate = exchange.error_feedback() == ExchangeConfig::SEPARATE;
  Warning(is_separate ? "exchange.error_feedback" : "exchange.carry_decay",
          absl::StrCat("is ", is_separate ? "SEPARATE" : absl::StrCat(exchange.carry_decay()),
                       " with a mask: every frame has the same positions; what is learned at the others is "
                       "not sent and decays by ",
                       exchange.carry_decay(), " a frame (", is_separate ? "CARRIED" : "1", " keeps it)"));
}

void Checker::CheckOuter() {
  const OuterConfig& outer = run_.outer();
  if (outer.has_rate()) Within("outer.rate", outer.rate(), 0, 10, /*may_be_least=*/false);
  if (!outer.has_momentum()) return;
  if (outer.form() != OuterConfig::NESTEROV) {
    return Warning("outer.momentum", "is used by the NESTEROV form only");
  }
  if (Within("outer.momentum", outer.momentum(), 0, 1, /*may_be_least=*/true) && outer.momentum() >= 1) {
    Error("outer.momentum", "is 1, must be below");
  }
}

void Checker::CheckInner() {
  const InnerConfig& inner = run_.inner();
  if (Within("inner.peak_rate", inner.peak_rate(), 0, 1, /*may_be_least=*/false)) CheckPeakRate();
  Within("inner.warmup_fraction", inner.warmup_fraction(), 0, 1, /*may_be_least=*/true);
  Within("inner.floor_fraction", inner.floor_fraction(), 0, 1, /*may_be_least=*/true);
  Within("inner.beta1", inner.beta1(), 0, 0.99999, /*may_be_least=*/true);
  Within("inner.beta2", inner.beta2(), 0, 0.9999999, /*may_be_least=*/true);
  Within("inner.epsilon", inner.epsilon(), 0, 1, /*may_be_least=*/false);
  Within("inner.weight_decay", inner.weight_decay(), 0, 100, /*may_be_least=*/true);
  Within("inner.clip_norm", inner.clip_norm(), 0, 1e9, /*may_be_least=*/false);
}

// The rate that suits shrinks with the model: 3e-3 at a million parameters, about 6e-4 at a hundred million.
void Checker::CheckPeakRate() {
  constexpr double kRateOfMillion = 3e-3, kExponent = 0.35, kTolerated = 2;
  if (parameters_ < 2'000'000) return;
  const double suggested = kRateOfMillion * std::pow(static_cast<double>(parameters_) / 1e6, -kExponent);
  if (run_.inner().peak_rate() <= kTolerated * suggested) return;
  Warning("inner.peak_rate", absl::StrFormat("is %g, high for a model of %d parameters; about %.1e is usual",
                                             run_.inner().peak_rate(), parameters_, suggested));
}

absl::Duration Checker::CheckSpan(absl::string_view path, const google::protobuf::Duration& span,
                                  absl::Duration least, absl::Duration most) {
  const absl::Duration value = absl::Seconds(span.seconds()) + absl::Nanoseconds(span.nanos());
  if (value < least || value > most) {
    Error(path, absl::StrCat("is ", absl::FormatDuration(value), ", must be between ",
                             absl::FormatDuration(least), " and ", absl::FormatDuration(most)));
  }
  return value;
}

void Checker::CheckRest() {
  Between("evaluation.every_rounds", run_.evaluation().every_rounds(), 0, 1'000'000'000);
  Between("storage.snapshots_kept", run_.storage().snapshots_kept(), 1, 1000);
  const MembershipConfig& membership = run_.membership();
  const absl::Duration heartbeat =
      CheckSpan("membership.heartbeat", membership.heartbeat(), absl::Milliseconds(10), absl::Hours(1));
  const absl::Duration suspect = CheckSpan("membership.suspect_after", membership.suspect_after(),
                                           absl::Milliseconds(20), absl::Hours(24));
  if (suspect < 2 * heartbeat) {
    Error("membership.suspect_after",
          absl::StrCat("is ", absl::FormatDuration(suspect), ", less than two heartbeats of ",
                       absl::FormatDuration(heartbeat), "; every late one would be a suspicion"));
  }
  LogLevel level;
  if (const absl::Status status = ParseLogLevel(run_.log_level(), &level); !status.ok()) {
    Error("log_level", status.message());
  }
}

}  // namespace

void CheckRun(const RunFile& run, const RunLocations& locations, std::vector<RunFinding>* findings) {
  Checker(run, locations, findings).Check();
}

}  // namespace isthmus
