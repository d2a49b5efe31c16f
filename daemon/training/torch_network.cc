#include "daemon/training/torch_network.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <exception>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/training/llama_kernels.h"
#include "daemon/training/torch_compat.h"

namespace isthmus {
namespace {

// Evaluation walks a batch in pieces of at most this many tokens, so that its buffers stay small.
constexpr int64_t kPieceTokens = 4096;
constexpr size_t kKeptWorkspaces = 3;

at::Tensor Buffer(at::IntArrayRef sizes) { return at::empty(sizes, at::kFloat); }

at::Tensor View(const float* data, int64_t rows, int64_t columns, int64_t stride) {
  return at::from_blob(const_cast<float*>(data), {rows, columns}, {stride, 1}, at::kFloat);
}

float* DataOf(const at::Tensor& t) { return t.data_ptr<float>(); }

// One matrix as the products need it.
struct Matrix {
  at::Tensor plain, turned;
  Matrix() = default;
  Matrix(const float* data, int64_t rows, int64_t columns)
      : plain(View(data, rows, columns, columns)), turned(plain.t()) {}
};

struct LayerViews {
  Matrix qkv, output, gate_up, down;
  const float* norm1 = nullptr;
  const float* norm2 = nullptr;
};

// A flat array seen as the model's matrices. q, k, v lie one after the other, as do gate and up: each group
// is one matrix.
struct ModelViews {
  Matrix embedding, head;
  std::vector<LayerViews> layers;
  const float* norm = nullptr;
};

// Widths that follow from the shape.
struct Widths {
  int64_t head = 0, kv = 0, qkv = 0;
  explicit Widths(const ModelShape& s)
      : head(s.width / s.heads), kv(head * s.kv_heads), qkv(s.width + 2 * kv) {}
};

ModelViews MakeViews(const ModelShape& s, const Layout& layout, const float* data) {
  constexpr int kTensorsPerLayer = 9;
  const Widths w(s);
  ModelViews v;
  v.embedding = Matrix(data, s.vocabulary, s.width);
  for (int64_t l = 0; l < s.layers; ++l) {
    const int first = static_cast<int>(1 + l * kTensorsPerLayer);
    LayerViews layer;
    layer.qkv = Matrix(data + layout.offset(first), w.qkv, s.width);
    layer.output = Matrix(data + layout.offset(first + 3), s.width, s.width);
    layer.gate_up = Matrix(data + layout.offset(first + 4), 2 * s.feed_forward, s.width);
    layer.down = Matrix(data + layout.offset(first + 6), s.width, s.feed_forward);
    layer.norm1 = data + layout.offset(first + 7);
    layer.norm2 = data + layout.offset(first + 8);
    v.layers.push_back(std::move(layer));
  }
  const int last = static_cast<int>(1 + s.layers * kTensorsPerLayer);
  v.norm = data + layout.offset(last);
  v.head = s.is_head_tied ? v.embedding : Matrix(data + layout.offset(last + 1), s.vocabulary, s.width);
  return v;
}

// One head of one sequence; all are views. `turned` = transposed.
struct HeadViews {
  at::Tensor q, q_turned, k, k_turned, v, v_turned, out, dout, dq, dk, dv;
  at::Tensor p, p_turned;
  bool opens_group = true;  // first query head of its key/value head: writes dk and dv, the others add
};

struct LayerBuffers {
  at::Tensor x, h1, qkv, probabilities, attended, x_mid, h2, gate_up, activated;
  at::Tensor rms1, rms2;
  std::vector<HeadViews> heads;
};

// All that one pass over a batch of a given shape writes.
struct Workspace {
  int64_t sequences = 0, length = 0, tokens = 0;
  std::vector<LayerBuffers> layers;
  at::Tensor x_last, h_last, rms_last, logits;
  at::Tensor dz, dh, dattended, dqkv, dgate_up, dactivated, scores, scores_turned;
  std::vector<int32_t> inputs, targets;
};

}  // namespace

class TorchNetwork::Impl {
 public:
  Impl(const ModelShape& shape, TensorTable table, int threads)
      : shape_(shape), table_(std::move(table)), widths_(shape) {
    SetTorchThreads(threads);
    FillRotation();
  }

  const ModelShape& shape() const { return shape_; }
  const TensorTable& table() const { return table_; }

  double Loss(const float* parameters, const Batch& batch) {
    const c10::InferenceMode guard;
    const ModelViews views = MakeViews(shape_, table_.layout(), parameters);
    const int64_t piece = std::max<int64_t>(1, kPieceTokens / batch.length);
    double loss = 0;
    for (int64_t from = 0; from < batch.sequences; from += piece) {
      const int64_t rows = std::min(piece, batch.sequences - from);
      Workspace& w = WorkspaceFor(rows, batch.length);
      Load(batch, from, &w);
      Forward(views, w);
      loss += CrossEntropy(DataOf(w.logits), w.targets.data(), w.tokens, shape_.vocabulary, 0.0f);
    }
    return loss;
  }

  double LossAndGradient(const float* parameters, const Batch& batch, float* gradient) {
    const c10::InferenceMode guard;
    const ModelViews views = MakeViews(shape_, table_.layout(), parameters);
    const ModelViews out = MakeViews(shape_, table_.layout(), gradient);
    Workspace& w = WorkspaceFor(batch.sequences, batch.length);
    Load(batch, 0, &w);
    Forward(views, w);
    const double loss = CrossEntropy(DataOf(w.logits), w.targets.data(), w.tokens, shape_.vocabulary,
                                     1.0f / static_cast<float>(w.tokens));
    Backward(views, out, w);
    return loss;
  }

  std::vector<float> NextLogits(const float* parameters, absl::Span<const int32_t> tokens) {
    const c10::InferenceMode guard;
    const ModelViews views = MakeViews(shape_, table_.layout(), parameters);
    Workspace& w = WorkspaceFor(1, tokens.size());
    std::copy(tokens.begin(), tokens.end(), w.inputs.begin());
    Forward(views, w);
    const float* last = DataOf(w.logits) + (w.tokens - 1) * shape_.vocabulary;
    return {last, last + shape_.vocabulary};
  }

 private:
  void FillRotation() {
    const int64_t half = widths_.head / 2;
    for (int64_t t = 0; t < shape_.context; ++t) {
      for (int64_t i = 0; i < half; ++i) {
        const double angle = t / std::pow(shape_.rotary_base, static_cast<double>(i) / half);
        cosines_.push_back(static_cast<float>(std::cos(angle)));
        sines_.push_back(static_cast<float>(std::sin(angle)));
      }
    }
  }

  Workspace& WorkspaceFor(int64_t sequences, int64_t length) {
    const auto key = std::make_pair(sequences, length);
    const auto found = workspaces_.find(key);
    if (found != workspaces_.end()) return *found->second;
    if (workspaces_.size() >= kKeptWorkspaces) workspaces_.clear();
    auto w = std::make_unique<Workspace>();
    w->sequences = sequences;
    w->length = length;
    w->tokens = sequences * length;
    w->inputs.resize(w->tokens);
    w->targets.resize(w->tokens);
    const int64_t n = w->tokens, d = shape_.width;
    w->x_last = Buffer({n, d});
    w->h_last = Buffer({n, d});
    w->rms_last = Buffer({n});
    w->logits = Buffer({n, shape_.vocabulary});
    w->dz = Buffer({n, d});
    w->dh = Buffer({n, d});
    w->dattended = Buffer({n, d});
    w->dqkv = Buffer({n, widths_.qkv});
    w->dgate_up = Buffer({n, 2 * shape_.feed_forward});
    w->dactivated = Buffer({n, shape_.feed_forward});
    w->scores = Buffer({length, length});
    w->scores_turned = w->scores.t();
    for (int64_t l = 0; l < shape_.layers; ++l) w->layers.push_back(MakeLayer(*w));
    return *(workspaces_[key] = std::move(w));
  }

  LayerBuffers MakeLayer(const Workspace& w) const {
    const int64_t n = w.tokens, d = shape_.width;
    LayerBuffers b;
    b.x = Buffer({n, d});
    b.h1 = Buffer({n, d});
    b.qkv = Buffer({n, widths_.qkv});
    b.probabilities = Buffer({w.sequences * shape_.heads, w.length, w.length});
    b.attended = Buffer({n, d});
    b.x_mid = Buffer({n, d});
    b.h2 = Buffer({n, d});
    b.gate_up = Buffer({n, 2 * shape_.feed_forward});
    b.activated = Buffer({n, shape_.feed_forward});
    b.rms1 = Buffer({n});
    b.rms2 = Buffer({n});
    for (int64_t s = 0; s < w.sequences; ++s) {
      for (int64_t h = 0; h < shape_.heads; ++h) b.heads.push_back(MakeHead(w, b, s, h));
    }
    return b;
  }

  HeadViews MakeHead(const Workspace& w, const LayerBuffers& b, int64_t sequence, int64_t head) const {
    const int64_t length = w.length, d = shape_.width, hw = widths_.head, stride = widths_.qkv;
    const int64_t group = shape_.heads / shape_.kv_heads;
    const int64_t q_at = sequence * length * stride + head * hw;
    const int64_t k_at = sequence * length * stride + d + head / group * hw;
    const int64_t v_at = k_at + widths_.kv;
    const int64_t out_at = sequence * length * d + head * hw;
    HeadViews v;
    v.q = View(DataOf(b.qkv) + q_at, length, hw, stride);
    v.k = View(DataOf(b.qkv) + k_at, length, hw, stride);
    v.v = View(DataOf(b.qkv) + v_at, length, hw, stride);
    v.dq = View(DataOf(w.dqkv) + q_at, length, hw, stride);
    v.dk = View(DataOf(w.dqkv) + k_at, length, hw, stride);
    v.dv = View(DataOf(w.dqkv) + v_at, length, hw, stride);
    v.out = View(DataOf(b.attended) + out_at, length, hw, d);
    v.dout = View(DataOf(w.dattended) + out_at, length, hw, d);
    v.p = b.probabilities[sequence * shape_.heads + head];
    v.p_turned = v.p.t();
    v.k_turned = v.k.t();
    v.v_turned = v.v.t();
    v.opens_group = head % group == 0;
    return v;
  }

  static void Load(const Batch& batch, int64_t from, Workspace* w) {
    for (int64_t s = 0; s < w->sequences; ++s) {
      const int32_t* row = batch.tokens.data() + (from + s) * (w->length + 1);
      std::copy(row, row + w->length, w->inputs.begin() + s * w->length);
      std::copy(row + 1, row + 1 + w->length, w->targets.begin() + s * w->length);
    }
  }

  void Forward(const ModelViews& p, Workspace& w) const {
    const int64_t d = shape_.width;
    const float* embedding = DataOf(p.embedding.plain);
    float* x = DataOf(w.layers[0].x);
    for (int64_t n = 0; n < w.tokens; ++n) {
      std::memcpy(x + n * d, embedding + w.inputs[n] * d, d * sizeof(float));
    }
    for (int64_t l = 0; l < shape_.layers; ++l) {
      at::Tensor& next = l + 1 < shape_.layers ? w.layers[l + 1].x : w.x_last;
      ForwardLayer(p.layers[l], w, w.layers[l], next);
    }
    RmsNorm(DataOf(w.x_last), p.norm, w.tokens, d, DataOf(w.h_last), DataOf(w.rms_last));
    at::mm_out(w.logits, w.h_last, p.head.turned);
  }

  void ForwardLayer(const LayerViews& p, const Workspace& w, LayerBuffers& b, at::Tensor& next) const {
    const int64_t d = shape_.width, n = w.tokens;
    RmsNorm(DataOf(b.x), p.norm1, n, d, DataOf(b.h1), DataOf(b.rms1));
    at::mm_out(b.qkv, b.h1, p.qkv.turned);
    Rotate(DataOf(b.qkv), n, widths_.qkv, shape_.heads + shape_.kv_heads, widths_.head, w.length,
           cosines_.data(), sines_.data(), /*is_backward=*/false);
    const float scale = 1.0f / std::sqrt(static_cast<float>(widths_.head));
    for (HeadViews& h : b.heads) {
      at::mm_out(h.p, h.q, h.k_turned);
      CausalSoftmax(DataOf(h.p), w.length, scale);
      at::mm_out(h.out, h.p, h.v);
    }
    at::addmm_out(b.x_mid, b.x, b.attended, p.output.turned);
    RmsNorm(DataOf(b.x_mid), p.norm2, n, d, DataOf(b.h2), DataOf(b.rms2));
    at::mm_out(b.gate_up, b.h2, p.gate_up.turned);
    SwiGlu(DataOf(b.gate_up), n, shape_.feed_forward, DataOf(b.activated));
    at::addmm_out(next, b.x_mid, b.activated, p.down.turned);
  }

  // Expects the gradient of the logits in w.logits.
  void Backward(const ModelViews& p, const ModelViews& out, Workspace& w) const {
    const int64_t d = shape_.width;
    at::Tensor head = out.head.plain;
    at::mm_out(head, w.logits.t(), w.h_last);
    at::mm_out(w.dh, w.logits, p.head.plain);
    w.dz.zero_();
    RmsBack(w.dh, w.x_last, p.norm, w.rms_last, out.norm, w);
    for (int64_t l = shape_.layers - 1; l >= 0; --l)
      BackwardLayer(p.layers[l], out.layers[l], w, w.layers[l]);
    float* embedding = DataOf(out.embedding.plain);
    if (!shape_.is_head_tied) std::memset(embedding, 0, shape_.vocabulary * d * sizeof(float));
    const float* dz = DataOf(w.dz);
    for (int64_t n = 0; n < w.tokens; ++n) {
      float* row = embedding + w.inputs[n] * d;
      for (int64_t j = 0; j < d; ++j) row[j] += dz[n * d + j];
    }
  }

  // Adds to w.dz what flows back through a norm, and writes the norm's own gradient.
  void RmsBack(const at::Tensor& dout, const at::Tensor& x, const float* weight, const at::Tensor& rms,
               const float* dweight, Workspace& w) const {
    float* own = const_cast<float*>(dweight);
    std::memset(own, 0, shape_.width * sizeof(float));
    RmsNormBackward(DataOf(dout), DataOf(x), weight, DataOf(rms), w.tokens, shape_.width, DataOf(w.dz), own);
  }

  void BackwardLayer(const LayerViews& p, const LayerViews& out, Workspace& w, LayerBuffers& b) const {
    const int64_t n = w.tokens;
    at::Tensor down = out.down.plain, gate_up = out.gate_up.plain, output = out.output.plain;
    at::Tensor qkv = out.qkv.plain;
    const at::Tensor dz_turned = w.dz.t();
    at::mm_out(w.dactivated, w.dz, p.down.plain);
    at::mm_out(down, dz_turned, b.activated);
    SwiGluBackward(DataOf(b.gate_up), DataOf(w.dactivated), n, shape_.feed_forward, DataOf(w.dgate_up));
    at::mm_out(w.dh, w.dgate_up, p.gate_up.plain);
    at::mm_out(gate_up, w.dgate_up.t(), b.h2);
    RmsBack(w.dh, b.x_mid, p.norm2, b.rms2, out.norm2, w);

    at::mm_out(w.dattended, w.dz, p.output.plain);
    at::mm_out(output, dz_turned, b.attended);
    BackwardAttention(w, b);
    Rotate(DataOf(w.dqkv), n, widths_.qkv, shape_.heads + shape_.kv_heads, widths_.head, w.length,
           cosines_.data(), sines_.data(), /*is_backward=*/true);
    at::mm_out(w.dh, w.dqkv, p.qkv.plain);
    at::mm_out(qkv, w.dqkv.t(), b.h1);
    RmsBack(w.dh, b.x, p.norm1, b.rms1, out.norm1, w);
  }

  void BackwardAttention(Workspace& w, LayerBuffers& b) const {
    const float scale = 1.0f / std::sqrt(static_cast<float>(widths_.head));
    for (HeadViews& h : b.heads) {
      at::mm_out(w.scores, h.dout, h.v_turned);
      CausalSoftmaxBackward(DataOf(h.p), DataOf(w.scores), w.length, scale);
      at::mm_out(h.dq, w.scores, h.k);
      if (h.opens_group) {
        at::mm_out(h.dv, h.p_turned, h.dout);
        at::mm_out(h.dk, w.scores_turned, h.q);
      } else {
        h.dv.addmm_(h.p_turned, h.dout);
        h.dk.addmm_(w.scores_turned, h.q);
      }
    }
  }

  const ModelShape shape_;
  const TensorTable table_;
  const Widths widths_;
  std::vector<float> cosines_, sines_;
  std::map<std::pair<int64_t, int64_t>, std::unique_ptr<Workspace>> workspaces_;
};

namespace {

// The only place where the engine's exceptions are caught.
template <typename F>
auto Guarded(const char* what, F f) -> absl::StatusOr<decltype(f())> {
  try {
    return f();
  } catch (const std::exception& e) {
    return absl::InternalError(absl::StrCat(what, ": libtorch: ", e.what()));
  }
}

}  // namespace

TorchNetwork::TorchNetwork(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TorchNetwork::~TorchNetwork() = default;

absl::StatusOr<std::unique_ptr<TorchNetwork>> TorchNetwork::Create(const ModelShape& shape, int threads) {
  if (threads < 1)
    return absl::InvalidArgumentError(absl::StrCat("threads is ", threads, ", must be at least 1"));
  ISTHMUS_ASSIGN_OR_RETURN(TensorTable table, TensorTable::ForModel(shape));
  auto impl = Guarded("model", [&] { return std::make_unique<Impl>(shape, std::move(table), threads); });
  if (!impl.ok()) return impl.status();
  return std::unique_ptr<TorchNetwork>(new TorchNetwork(*std::move(impl)));
}

const ModelShape& TorchNetwork::shape() const { return impl_->shape(); }
const TensorTable& TorchNetwork::table() const { return impl_->table(); }

absl::StatusOr<double> TorchNetwork::Loss(const float* parameters, const Batch& batch) {
  if (batch.length > shape().context) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch: sequences of ", batch.length, " tokens, the context has ", shape().context));
  }
  return Guarded("evaluate", [&] { return impl_->Loss(parameters, batch); });
}

absl::StatusOr<double> TorchNetwork::LossAndGradient(const float* parameters, const Batch& batch,
                                                     float* gradient) {
  if (batch.length > shape().context) {
    return absl::InvalidArgumentError(
        absl::StrCat("batch: sequences of ", batch.length, " tokens, the context has ", shape().context));
  }
  return Guarded("step", [&] { return impl_->LossAndGradient(parameters, batch, gradient); });
}

absl::StatusOr<std::vector<float>> TorchNetwork::NextLogits(const float* parameters,
                                                            absl::Span<const int32_t> tokens) {
  return Guarded("sample", [&] { return impl_->NextLogits(parameters, tokens); });
}

}  // namespace isthmus
