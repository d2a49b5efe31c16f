#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compression/update.h"

namespace isthmus {
namespace {

constexpr int kMostFrames = 1024;
constexpr int32_t kLeastWeight = 16, kMostWeight = 256, kMedianWeight = 64;
constexpr int kAlignedBits = 34;  // mantissa and shift together: S = 34 − M

absl::Status CheckTensor(const DecodedTensor& tensor, int64_t size) {
  const size_t count = tensor.mantissas.size();
  if (tensor.form == TensorForm::kAbsent) return absl::OkStatus();
  if (tensor.mantissa_bits < 1 || tensor.mantissa_bits > 30)
    return absl::InvalidArgumentError("mantissa bits");
  const bool fits = tensor.form == TensorForm::kDense
                        ? count == static_cast<size_t>(size)
                        : count == tensor.positions.size() && (count == 0 || tensor.positions.back() < size);
  return fits ? absl::OkStatus() : absl::InvalidArgumentError("other size than the layout's");
}

absl::Status CheckFrames(const Layout& layout, absl::Span<const WeightedFrame> frames) {
  if (frames.empty() || frames.size() > kMostFrames) {
    return absl::InvalidArgumentError(absl::StrCat("sum of ", frames.size(), " frames: 1 to ", kMostFrames));
  }
  for (size_t f = 0; f < frames.size(); ++f) {
    if (frames[f].weight < kLeastWeight || frames[f].weight > kMostWeight) {
      return absl::InvalidArgumentError(absl::StrCat("sum: frame ", f, " has weight ", frames[f].weight,
                                                     ", outside ", kLeastWeight, " to ", kMostWeight));
    }
    const std::vector<DecodedTensor>& tensors = frames[f].frame->tensors;
    if (tensors.size() != static_cast<size_t>(layout.tensors())) {
      return absl::InvalidArgumentError(absl::StrCat("sum: frame ", f, " has ", tensors.size(),
                                                     " tensors, the layout has ", layout.tensors()));
    }
    for (int t = 0; t < layout.tensors(); ++t) {
      if (absl::Status s = CheckTensor(tensors[t], layout.size(t)); !s.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("sum: frame ", f, ", tensor ", t, ": ", s.message()));
      }
    }
  }
  return absl::OkStatus();
}

// One site's tensor on its way into the sum.
struct Addend {
  const DecodedTensor* tensor;
  int32_t weight;
  int shift;    // left, to the common exponent
  size_t next;  // first position not yet added
};

// Sums one tensor block by block, so that the scratch stays in cache whatever the tensor's size.
class TensorSum {
 public:
  TensorSum(int64_t size, Averaging averaging, UpdateTensor* out)
      : size_(size), contributors_(averaging == Averaging::kContributors), out_(out) {}

  void Add(std::vector<Addend> addends) {
    const bool dense = std::any_of(addends.begin(), addends.end(),
                                   [](const Addend& a) { return a.tensor->form == TensorForm::kDense; });
    out_->form = dense ? TensorForm::kDense : TensorForm::kSparse;
    Reserve(addends, dense);
    for (int64_t from = 0; from < size_; from += kBlockValues) {
      const int64_t values = std::min(kBlockValues, size_ - from);
      for (Addend& addend : addends) AddBlock(from, values, &addend);
      if (dense) {
        EmitDense(values);
      } else {
        EmitSparse(from);
      }
    }
  }

 private:
  static constexpr int kMarkWords = kBlockValues / 64;

  // Room for as many positions as the sum can have.
  void Reserve(const std::vector<Addend>& addends, bool dense) {
    size_t most = 0;
    for (const Addend& addend : addends) most += addend.tensor->positions.size();
    if (dense || most > static_cast<size_t>(size_)) most = static_cast<size_t>(size_);
    out_->sums.reserve(most);
    if (!dense) out_->positions.reserve(most);
    if (contributors_) out_->weights.reserve(most);
  }

  void AddBlock(int64_t from, int64_t values, Addend* addend) {
    const DecodedTensor& tensor = *addend->tensor;
    // The shift is a product: shifting a negative number is not defined.
    const int64_t factor = int64_t{addend->weight} << addend->shift;
    if (tensor.form == TensorForm::kDense) {
      for (int64_t i = 0; i < values; ++i) sums_[i] += factor * tensor.mantissas[from + i];
      for (int64_t i = 0; contributors_ && i < values; ++i) weights_[i] += addend->weight;
      return;
    }
    const size_t begin = addend->next;
    const uint32_t* positions = tensor.positions.data();
    const int32_t* mantissas = tensor.mantissas.data();
    const size_t count = tensor.positions.size();
    size_t at = begin;
    for (; at < count && positions[at] < from + values; ++at) {
      const size_t i = positions[at] - static_cast<uint32_t>(from);
      sums_[i] += factor * mantissas[at];
      marks_[i / 64] |= uint64_t{1} << (i % 64);
    }
    addend->next = at;
    for (size_t j = begin; contributors_ && j < at; ++j) {
      weights_[positions[j] - static_cast<uint32_t>(from)] += addend->weight;
    }
  }

  // Appends what is marked and leaves the scratch zero.
  void EmitSparse(int64_t from) {
    size_t marked = 0;
    for (uint64_t mark : marks_) marked += static_cast<size_t>(__builtin_popcountll(mark));
    const size_t first = out_->sums.size();
    out_->positions.resize(first + marked);
    out_->sums.resize(first + marked);
    if (contributors_) out_->weights.resize(first + marked);
    uint32_t* positions = out_->positions.data() + first;
    int64_t* sums = out_->sums.data() + first;
    int32_t* weights = contributors_ ? out_->weights.data() + first : nullptr;
    for (int word = 0; word < kMarkWords; ++word) {
      for (uint64_t mark = marks_[word]; mark != 0; mark &= mark - 1) {
        const int i = 64 * word + __builtin_ctzll(mark);
        *positions++ = static_cast<uint32_t>(from + i);
        *sums++ = sums_[i];
        sums_[i] = 0;
        if (weights == nullptr) continue;
        *weights++ = weights_[i];
        weights_[i] = 0;
      }
      marks_[word] = 0;
    }
  }

  void EmitDense(int64_t values) {
    out_->sums.insert(out_->sums.end(), sums_, sums_ + values);
    if (contributors_) out_->weights.insert(out_->weights.end(), weights_, weights_ + values);
    std::fill(sums_, sums_ + values, 0);
    std::fill(weights_, weights_ + values, 0);
    std::fill(marks_, marks_ + kMarkWords, 0);
  }

  const int64_t size_;
  const bool contributors_;
  UpdateTensor* out_;
  int64_t sums_[kBlockValues] = {};
  int32_t weights_[kBlockValues] = {};  // contributors only
  uint64_t marks_[kMarkWords] = {};     // which positions a sparse tensor sent
};

void SumTensor(int tensor, int64_t size, absl::Span<const WeightedFrame> frames, Averaging averaging,
               UpdateTensor* out) {
  const auto is_refused = [&](const WeightedFrame& f) {
    return std::binary_search(f.refused.begin(), f.refused.end(), static_cast<uint32_t>(tensor));
  };
  int most = INT32_MIN, least = INT32_MAX, bits = 0;
  for (const WeightedFrame& f : frames) {
    const DecodedTensor& t = f.frame->tensors[tensor];
    if (t.form == TensorForm::kAbsent || is_refused(f)) continue;
    most = std::max(most, t.exponent);
    least = std::min(least, t.exponent);
    bits = std::max(bits, t.mantissa_bits);
  }
  const int exponent = bits == 0 ? 0 : std::max(most - (kAlignedBits - bits), least);
  std::vector<Addend> addends;
  for (size_t i = 0; i < frames.size(); ++i) {
    const DecodedTensor& t = frames[i].frame->tensors[tensor];
    if (t.form == TensorForm::kAbsent) continue;
    if (is_refused(frames[i]) || t.exponent < exponent) {
      out->left_out.push_back(static_cast<uint16_t>(i));
    } else {
      addends.push_back({&t, frames[i].weight, t.exponent - exponent, 0});
    }
  }
  if (addends.empty()) return;
  out->exponent = exponent;
  TensorSum(size, averaging, out).Add(std::move(addends));
}

}  // namespace

absl::StatusOr<Update> SumFrames(const Layout& layout, absl::Span<const WeightedFrame> frames,
                                 Averaging averaging) {
  if (absl::Status s = CheckFrames(layout, frames); !s.ok()) return s;
  Update update;
  update.averaging = averaging;
  for (const WeightedFrame& f : frames) update.total_weight += f.weight;
  update.tensors.resize(layout.tensors());
  for (int t = 0; t < layout.tensors(); ++t) {
    SumTensor(t, layout.size(t), frames, averaging, &update.tensors[t]);
  }
  return update;
}

std::vector<int32_t> ContributionWeights(absl::Span<const int64_t> measures) {
  std::vector<int32_t> weights;
  if (measures.empty()) return weights;
  std::vector<int64_t> sorted(measures.begin(), measures.end());
  std::sort(sorted.begin(), sorted.end());
  const __int128 median = sorted[(sorted.size() - 1) / 2];
  for (int64_t v : measures) {
    // round(64·v / median), halves up, without leaving the integers.
    const __int128 rounded = (2 * __int128{kMedianWeight} * v + median) / (2 * median);
    weights.push_back(static_cast<int32_t>(std::clamp<__int128>(rounded, kLeastWeight, kMostWeight)));
  }
  return weights;
}

}  // namespace isthmus
