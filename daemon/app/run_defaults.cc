#include "daemon/app/run_defaults.h"

#include <cstdint>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/app/text_table.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/message.h"

namespace isthmus {
namespace {

using google::protobuf::Duration;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

constexpr double kSeparateDecay = 0.95;  // as published
constexpr double kNesterovRate = 0.5;
constexpr double kNesterovMomentum = 0.5;

// Sets an optional field that is absent.
#define ISTHMUS_DEFAULT(message, field, value) \
  if (!(message)->has_##field()) (message)->set_##field(value)

void FillModel(ModelConfig* model) {
  ISTHMUS_DEFAULT(model, vocabulary, 256);
  ISTHMUS_DEFAULT(model, width, 128);
  ISTHMUS_DEFAULT(model, layers, 4);
  ISTHMUS_DEFAULT(model, heads, 4);
  ISTHMUS_DEFAULT(model, kv_heads, model->heads());
  ISTHMUS_DEFAULT(model, feed_forward, 344);
  ISTHMUS_DEFAULT(model, context, 128);
  ISTHMUS_DEFAULT(model, tied_head, true);
}

void FillRounds(bool is_separate, RoundConfig* rounds) {
  ISTHMUS_DEFAULT(rounds, inner_steps_per_round, 30);
  if (!rounds->has_longest_round()) rounds->mutable_longest_round()->set_seconds(600);
  ISTHMUS_DEFAULT(rounds, overlap, true);
  ISTHMUS_DEFAULT(rounds, start_sites, 1);
  // A separate residual holds sums of many rounds, which all at once would carry too far.
  ISTHMUS_DEFAULT(rounds, dense_last_round, !is_separate);
}

void FillExchange(ExchangeConfig* exchange, OuterConfig* outer) {
  ISTHMUS_DEFAULT(exchange, contribution_codec, "auto");
  ISTHMUS_DEFAULT(exchange, update_codec, "exact");
  ISTHMUS_DEFAULT(exchange, activation_codec, "bf16");
  ISTHMUS_DEFAULT(exchange, activation_gradient_codec, "bf16");
  ISTHMUS_DEFAULT(exchange, snapshot_codec, "fp32");
  if (exchange->error_feedback() == ExchangeConfig::ERROR_FEEDBACK_UNSPECIFIED) {
    exchange->set_error_feedback(ExchangeConfig::CARRIED);
  }
  const bool is_separate = exchange->error_feedback() == ExchangeConfig::SEPARATE;
  ISTHMUS_DEFAULT(exchange, carry_decay, is_separate ? kSeparateDecay : 1);
  if (exchange->averaging() == ExchangeConfig::AVERAGING_UNSPECIFIED) {
    exchange->set_averaging(ExchangeConfig::PEERS);
  }
  if (exchange->weights() == ExchangeConfig::WEIGHTS_UNSPECIFIED) {
    exchange->set_weights(ExchangeConfig::TOKENS);
  }
  if (outer->form() == OuterConfig::FORM_UNSPECIFIED) outer->set_form(OuterConfig::PLAIN);
  if (outer->form() == OuterConfig::NESTEROV) {
    ISTHMUS_DEFAULT(outer, rate, kNesterovRate);
    ISTHMUS_DEFAULT(outer, momentum, kNesterovMomentum);
  }
}

void FillInner(InnerConfig* inner) {
  ISTHMUS_DEFAULT(inner, peak_rate, 3e-3);
  ISTHMUS_DEFAULT(inner, warmup_fraction, 0.05);
  ISTHMUS_DEFAULT(inner, floor_fraction, 0.05);
  ISTHMUS_DEFAULT(inner, beta1, 0.9);
  ISTHMUS_DEFAULT(inner, beta2, 0.99);
  ISTHMUS_DEFAULT(inner, epsilon, 1e-8);
  ISTHMUS_DEFAULT(inner, weight_decay, 0.1);
  ISTHMUS_DEFAULT(inner, clip_norm, 1.0);
}

// What a field means, or what stands for its default where none is written down. Every field has a line.
struct Note {
  const char* instead_of_value;  // null: the value FillDefaults gives
  const char* meaning;
};

const std::map<std::string, Note>& Notes() {
  static const auto* const notes = new std::map<std::string, Note>{
      {"name", {"(needed)", "the run's name in isthmus://host:port/NAME"}},
      {"seed", {nullptr, "every random choice flows from it"}},
      {"model.vocabulary", {nullptr, "tokens; 256 for bytes"}},
      {"model.width", {nullptr, "of the residual stream"}},
      {"model.layers", {nullptr, ""}},
      {"model.heads", {nullptr, "divides width into even parts"}},
      {"model.kv_heads", {"heads", "key/value heads; divides heads"}},
      {"model.feed_forward", {nullptr, "inner width of SwiGLU"}},
      {"model.context", {nullptr, "tokens in a training sequence"}},
      {"model.tied_head", {nullptr, "output head shares the embedding table"}},
      {"data.mode", {nullptr, "every site the same file (SHARED), or each its own (PER_SITE)"}},
      {"data.format", {nullptr, "plain text (BYTES), or tokens as UINT16 or UINT32"}},
      {"data.sequences_per_step", {nullptr, "in one inner step of one site"}},
      {"rounds.inner_steps_per_round", {nullptr, "H: inner steps between exchanges at median speed"}},
      {"rounds.total_rounds", {"(one of the two)", "the run ends after so many rounds"}},
      {"rounds.total_tokens", {"(is needed)", "the run ends after so many tokens"}},
      {"rounds.longest_round", {nullptr, "hard deadline of a round"}},
      {"rounds.quorum", {"2/3 of the view", "contributions that close a round after the grace window"}},
      {"rounds.minimum", {"1/2 of the view", "contributions needed at the deadline"}},
      {"rounds.overlap", {nullptr, "train on while frames travel"}},
      {"rounds.start_sites", {nullptr, "the first round waits for so many"}},
      {"rounds.dense_last_round",
       {nullptr, "the last exchange is dense, of 8 bits, and flushes what is carried; not for SEPARATE"}},
      {"exchange.contribution_codec",
       {nullptr, "auto: topk(k=auto)|levels(bits=1); k from the run's length"}},
      {"exchange.update_codec",
       {nullptr, "coming down: exact, auto (as above) or topk(...); the hub keeps what these leave"}},
      {"exchange.activation_codec", {nullptr, "between pipeline stages, once there are any"}},
      {"exchange.activation_gradient_codec", {nullptr, "likewise, on the way back"}},
      {"exchange.snapshot_codec", {nullptr, "on the way to a worker: fp32, or fp32|zstd(n)"}},
      {"exchange.error_feedback",
       {nullptr, "what was not sent stays in the parameters (CARRIED) or in a buffer (SEPARATE)"}},
      {"exchange.carry_decay",
       {nullptr, "what is carried is multiplied by it before each encode; 0.95 for SEPARATE"}},
      {"exchange.averaging", {nullptr, "by the round's whole weight (PEERS) or per position (CONTRIBUTORS)"}},
      {"exchange.weights",
       {nullptr, "of a contribution: TOKENS (of all its steps), TOKENS_PER_STEP or EQUAL"}},
      {"outer.form", {nullptr, "PLAIN, or NESTEROV for the dense codec"}},
      {"outer.rate",
       {"auto", "1 + 0.5 log2(inner steps / 2000) within 1 ... 2; 1 for a dense codec; 0.5 for NESTEROV"}},
      {"outer.momentum", {"none", "0.5 for NESTEROV"}},
      {"inner.peak_rate", {nullptr, "for a million parameters; less for larger models"}},
      {"inner.warmup_fraction", {nullptr, "of the run's schedule"}},
      {"inner.floor_fraction", {nullptr, "of the peak rate, at the end of the cosine"}},
      {"inner.beta1", {nullptr, "AdamW"}},
      {"inner.beta2", {nullptr, "AdamW"}},
      {"inner.epsilon", {nullptr, "AdamW"}},
      {"inner.weight_decay", {nullptr, "matrices only"}},
      {"inner.clip_norm", {nullptr, "of the whole gradient"}},
      {"evaluation.every_rounds", {nullptr, "held-out loss of the anchor; 0: at start and end only"}},
      {"membership.heartbeat", {nullptr, ""}},
      {"membership.suspect_after", {nullptr, "silence before a site is doubted, at least"}},
      {"storage.snapshots_kept", {nullptr, ""}},
      {"log_level", {nullptr, "debug, info, warning or error"}},
  };
  return *notes;
}

std::string ValueText(const Message& message, const FieldDescriptor& field) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (field.message_type() != nullptr) {
    const auto& span = static_cast<const Duration&>(reflection.GetMessage(message, &field));
    return absl::FormatDuration(absl::Seconds(span.seconds()) + absl::Nanoseconds(span.nanos()));
  }
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnum(message, &field)->name();
    case FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(message, &field) ? "true" : "false";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat(reflection.GetDouble(message, &field));
    case FieldDescriptor::CPPTYPE_UINT64:
      return absl::StrCat(reflection.GetUInt64(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(reflection.GetInt64(message, &field));
    default:
      return reflection.GetString(message, &field);
  }
}

void AddRows(const Message& message, const std::string& prefix, TextTable* table) {
  const google::protobuf::Descriptor& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor& field = *type.field(i);
    const std::string path = prefix + field.name();
    if (field.message_type() != nullptr && field.message_type() != Duration::descriptor()) {
      AddRows(message.GetReflection()->GetMessage(message, &field), path + ".", table);
      continue;
    }
    const auto note = Notes().find(path);
    const bool is_spelled = note != Notes().end() && note->second.instead_of_value != nullptr;
    table->AddRow({path, is_spelled ? note->second.instead_of_value : ValueText(message, field),
                   note == Notes().end() ? "" : note->second.meaning});
  }
}

}  // namespace

void FillDefaults(RunFile* run) {
  ISTHMUS_DEFAULT(run, seed, 1);
  FillModel(run->mutable_model());
  DataConfig* data = run->mutable_data();
  if (data->mode() == DataConfig::MODE_UNSPECIFIED) data->set_mode(DataConfig::SHARED);
  if (data->format() == DataConfig::FORMAT_UNSPECIFIED) data->set_format(DataConfig::BYTES);
  ISTHMUS_DEFAULT(data, sequences_per_step, 4);
  FillRounds(run->exchange().error_feedback() == ExchangeConfig::SEPARATE, run->mutable_rounds());
  FillExchange(run->mutable_exchange(), run->mutable_outer());
  FillInner(run->mutable_inner());
  ISTHMUS_DEFAULT(run->mutable_evaluation(), every_rounds, 1);
  MembershipConfig* membership = run->mutable_membership();
  if (!membership->has_heartbeat()) membership->mutable_heartbeat()->set_seconds(1);
  if (!membership->has_suspect_after()) membership->mutable_suspect_after()->set_seconds(3);
  ISTHMUS_DEFAULT(run->mutable_storage(), snapshots_kept, 3);
  ISTHMUS_DEFAULT(run, log_level, "info");
}

#undef ISTHMUS_DEFAULT

std::string ShowDefaults() {
  RunFile run;
  FillDefaults(&run);
  TextTable table({"<field", "<default", "<meaning"});
  AddRows(run, "", &table);
  return table.ToString();
}

}  // namespace isthmus
