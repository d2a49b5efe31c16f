#include "compression/exponent_history.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

int TopBit(const DecodedTensor& tensor) { return tensor.exponent + tensor.mantissa_bits; }

}  // namespace

std::vector<ImplausibleTensor> ExponentHistory::Check(absl::Span<const DecodedFrame* const> frames) const {
  std::vector<ImplausibleTensor> implausible;
  const size_t tensors = frames.empty() ? 0 : frames[0]->tensors.size();
  std::vector<int> round;
  for (size_t t = 0; t < tensors; ++t) {
    const bool known = t < largest_.size() && !largest_[t].empty();
    round.clear();
    for (const DecodedFrame* frame : frames) {
      if (frame->tensors[t].form != TensorForm::kAbsent) round.push_back(TopBit(frame->tensors[t]));
    }
    if (round.empty()) continue;
    std::sort(round.begin(), round.end());
    const int base =
        known ? *std::max_element(largest_[t].begin(), largest_[t].end()) : round[(round.size() - 1) / 2];
    for (size_t f = 0; f < frames.size(); ++f) {
      const DecodedTensor& tensor = frames[f]->tensors[t];
      if (tensor.form == TensorForm::kAbsent || TopBit(tensor) <= base + kSlackBits) continue;
      implausible.push_back(
          {static_cast<uint32_t>(f), static_cast<uint32_t>(t),
           absl::StrCat("tensor ", t, ": exponent ", tensor.exponent, " (values to 2^", TopBit(tensor),
                        ") is implausible: over 2^", base + kSlackBits, ", ", kSlackBits, " bits above ",
                        known ? "the largest of the last rounds" : "the median of this round")});
    }
  }
  std::stable_sort(implausible.begin(), implausible.end(),
                   [](const ImplausibleTensor& a, const ImplausibleTensor& b) { return a.frame < b.frame; });
  return implausible;
}

void ExponentHistory::Committed(absl::Span<const DecodedFrame* const> frames,
                                absl::Span<const ImplausibleTensor> refused) {
  const size_t tensors = frames.empty() ? 0 : frames[0]->tensors.size();
  if (largest_.size() < tensors) largest_.resize(tensors);
  for (size_t t = 0; t < tensors; ++t) {
    int largest = INT32_MIN;
    for (size_t f = 0; f < frames.size(); ++f) {
      const bool is_refused = std::any_of(refused.begin(), refused.end(), [&](const ImplausibleTensor& r) {
        return r.frame == f && r.tensor == t;
      });
      const DecodedTensor& tensor = frames[f]->tensors[t];
      if (tensor.form != TensorForm::kAbsent && !is_refused) largest = std::max(largest, TopBit(tensor));
    }
    if (largest == INT32_MIN) continue;
    largest_[t].push_back(largest);
    if (static_cast<int>(largest_[t].size()) > rounds_) largest_[t].pop_front();
  }
}

}  // namespace isthmus
