#include "daemon/training/tensor_table.h"

#include <cmath>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

constexpr uint64_t kLayoutDigestVersion = 1;
constexpr int64_t kMaxTensorValues = int64_t{1} << 31;  // positions inside a tensor are 32 bits
constexpr int64_t kMaxVocabulary = int64_t{1} << 24;
constexpr int64_t kMaxWidth = int64_t{1} << 20;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxContext = int64_t{1} << 20;
constexpr double kEmbeddingDeviation = 0.02;

void AppendBig(uint64_t v, std::string* out) {
  for (int shift = 56; shift >= 0; shift -= 8) out->push_back(static_cast<char>(v >> shift));
}

uint64_t LayoutDigestOf(const std::vector<TensorInfo>& tensors) {
  std::string text;
  AppendBig(kLayoutDigestVersion, &text);
  AppendBig(tensors.size(), &text);
  for (const TensorInfo& t : tensors) {
    AppendBig(t.name.size(), &text);
    text += t.name;
    AppendBig(t.shape.size(), &text);
    for (int64_t n : t.shape) AppendBig(n, &text);
  }
  return DigestOf(text).low;
}

// Number `index` of a stream of nearly normal integers: 4 draws of 64 bits give 16 uniform 16-bit numbers,
// whose sum has mean 16·65535/2 and variance 16·(2^32 − 1)/12. Nothing but integers, so the same everywhere.
int64_t NormalInteger(uint64_t seed, uint64_t stream, uint64_t index) {
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t bits = RandomAt(seed, stream, index * 4 + i);
    for (int shift = 0; shift < 64; shift += 16) sum += (bits >> shift) & 0xFFFF;
  }
  return sum - 8 * 65535;
}

absl::Status CheckField(const char* field, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("model shape: ", field, " is ", value, ", must be between 1 and ", most));
}

absl::Status CheckShape(const ModelShape& s) {
  ISTHMUS_RETURN_IF_ERROR(CheckField("vocabulary", s.vocabulary, kMaxVocabulary));
  ISTHMUS_RETURN_IF_ERROR(CheckField("width", s.width, kMaxWidth));
  ISTHMUS_RETURN_IF_ERROR(CheckField("layers", s.layers, kMaxLayers));
  ISTHMUS_RETURN_IF_ERROR(CheckField("heads", s.heads, s.width));
  ISTHMUS_RETURN_IF_ERROR(CheckField("kv_heads", s.kv_heads, s.heads));
  ISTHMUS_RETURN_IF_ERROR(CheckField("feed_forward", s.feed_forward, kMaxWidth));
  ISTHMUS_RETURN_IF_ERROR(CheckField("context", s.context, kMaxContext));
  if (s.width % s.heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("model shape: width ", s.width, " does not divide into ", s.heads, " heads"));
  }
  if (s.width / s.heads % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("model shape: heads of width ", s.width / s.heads,
                                                   " are odd; rotary positions need pairs"));
  }
  if (s.heads % s.kv_heads != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("model shape: kv_heads ", s.kv_heads, " does not divide heads ", s.heads));
  }
  if (!std::isfinite(s.rotary_base) || s.rotary_base <= 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("model shape: rotary_base is ", s.rotary_base, ", must be above 1"));
  }
  return absl::OkStatus();
}

TensorInfo Matrix(std::string name, int64_t rows, int64_t columns, double deviation) {
  return {std::move(name), {rows, columns}, TensorInit::kNormal, deviation, true};
}

TensorInfo Norm(std::string name, int64_t width) {
  return {std::move(name), {width}, TensorInit::kOnes, 0, false};
}

void AppendLayer(const ModelShape& s, int64_t layer, std::vector<TensorInfo>* out) {
  const std::string prefix = absl::StrCat("model.layers.", layer, ".");
  const int64_t kv_width = s.width / s.heads * s.kv_heads;
  const double from_width = 1 / std::sqrt(static_cast<double>(s.width));
  const double from_feed_forward = 1 / std::sqrt(static_cast<double>(s.feed_forward));
  // What writes into the residual stream starts smaller, so that its sum over the layers keeps its size.
  const double depth = std::sqrt(2.0 * static_cast<double>(s.layers));
  out->push_back(Matrix(prefix + "self_attn.q_proj.weight", s.width, s.width, from_width));
  out->push_back(Matrix(prefix + "self_attn.k_proj.weight", kv_width, s.width, from_width));
  out->push_back(Matrix(prefix + "self_attn.v_proj.weight", kv_width, s.width, from_width));
  out->push_back(Matrix(prefix + "self_attn.o_proj.weight", s.width, s.width, from_width / depth));
  out->push_back(Matrix(prefix + "mlp.gate_proj.weight", s.feed_forward, s.width, from_width));
  out->push_back(Matrix(prefix + "mlp.up_proj.weight", s.feed_forward, s.width, from_width));
  out->push_back(Matrix(prefix + "mlp.down_proj.weight", s.width, s.feed_forward, from_feed_forward / depth));
  out->push_back(Norm(prefix + "input_layernorm.weight", s.width));
  out->push_back(Norm(prefix + "post_attention_layernorm.weight", s.width));
}

absl::Status CheckTensor(const TensorInfo& t) {
  if (t.name.empty()) return absl::InvalidArgumentError("tensor table: a tensor has no name");
  if (t.shape.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", t.name, " has no shape"));
  }
  int64_t values = 1;
  for (int64_t n : t.shape) {
    if (n < 1 || n > kMaxTensorValues / values) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", t.name, ": dimension ", n,
                                                     " gives no size between 1 and ", kMaxTensorValues));
    }
    values *= n;
  }
  if (!std::isfinite(t.deviation) || t.deviation < 0) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", t.name, ": deviation is ", t.deviation));
  }
  return absl::OkStatus();
}

}  // namespace

int64_t TensorInfo::values() const {
  int64_t n = 1;
  for (int64_t d : shape) n *= d;
  return n;
}

int64_t TensorInfo::row_length() const { return shape.size() < 2 ? 0 : values() / shape[0]; }

absl::StatusOr<TensorTable> TensorTable::ForModel(const ModelShape& shape) {
  ISTHMUS_RETURN_IF_ERROR(CheckShape(shape));
  std::vector<TensorInfo> tensors;
  tensors.push_back(Matrix("model.embed_tokens.weight", shape.vocabulary, shape.width, kEmbeddingDeviation));
  for (int64_t layer = 0; layer < shape.layers; ++layer) AppendLayer(shape, layer, &tensors);
  tensors.push_back(Norm("model.norm.weight", shape.width));
  if (!shape.is_head_tied) {
    tensors.push_back(Matrix("lm_head.weight", shape.vocabulary, shape.width,
                             1 / std::sqrt(static_cast<double>(shape.width))));
  }
  return FromTensors(std::move(tensors));
}

absl::StatusOr<TensorTable> TensorTable::FromTensors(std::vector<TensorInfo> tensors) {
  if (tensors.empty()) return absl::InvalidArgumentError("tensor table: no tensors");
  std::set<std::string> names;
  std::vector<int64_t> sizes, row_lengths;
  for (const TensorInfo& t : tensors) {
    ISTHMUS_RETURN_IF_ERROR(CheckTensor(t));
    if (!names.insert(t.name).second) {
      return absl::InvalidArgumentError(absl::StrCat("tensor ", t.name, " is named twice"));
    }
    sizes.push_back(t.values());
    row_lengths.push_back(t.row_length());
  }
  TensorTable table;
  table.layout_ = Layout(std::move(sizes), LayoutDigestOf(tensors), std::move(row_lengths));
  table.tensors_ = std::move(tensors);
  return table;
}

std::vector<float> TensorTable::InitialValues(uint64_t seed) const {
  // 1 / the deviation of NormalInteger, as a literal: 12 / (16·(2^32 − 1)), its root.
  constexpr double kUnit = 1.3214498960651507e-05;
  std::vector<float> values(layout_.total(), 0.0f);
  for (int t = 0; t < layout_.tensors(); ++t) {
    float* out = values.data() + layout_.offset(t);
    const TensorInfo& info = tensors_[t];
    if (info.init == TensorInit::kOnes) std::fill(out, out + layout_.size(t), 1.0f);
    if (info.init != TensorInit::kNormal) continue;
    const double unit = kUnit * info.deviation;
    for (int64_t i = 0; i < layout_.size(t); ++i) {
      out[i] = static_cast<float>(static_cast<double>(NormalInteger(seed, t, i)) * unit);
    }
  }
  return values;
}

Digest TensorTable::StateDigestOf(const StateStamp& stamp, absl::Span<const float> values,
                                  absl::Span<const float> momentum) const {
  std::vector<DigestTensor> parts;
  parts.reserve(tensors_.size());
  for (int t = 0; t < layout_.tensors(); ++t) {
    parts.push_back(
        {tensors_[t].name, tensors_[t].shape, values.subspan(layout_.offset(t), layout_.size(t))});
  }
  return StateDigest(stamp, parts, momentum);
}

}  // namespace isthmus
