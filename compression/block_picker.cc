#include "compression/block_picker.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace isthmus {
namespace {

constexpr uint32_t kMagnitudeBits = 0x7FFFFFFFu, kNotFinite = 0x7F800000u;
constexpr uint32_t kOctave = 1u << 23;  // one step of a magnitude's exponent

// How many values the guess should mark: so many more that a block rarely has fewer than `kept`.
int Wanted(int kept) { return kept + kept / 8 + static_cast<int>(3 * std::sqrt(kept)) + 4; }

}  // namespace

bool BlockPicker::Pick(absl::Span<const float> anchor, absl::Span<const float> parameters,
                       const DecayedResidual& residual, int kept, PickedBlock* out) {
  if (scan_ == nullptr) return PickPortably(anchor, parameters, residual, kept, out);
  const int values = static_cast<int>(anchor.size());
  ScanResult scanned;
  if (residual.values.empty()) {
    scanned = scan_->difference(anchor.data(), parameters.data(), values, threshold_, differences_, marks_);
  } else {
    differences_ = buffers_[differences_ == buffers_[0]];
    scanned = scan_->sum(anchor.data(), parameters.data(), residual.values.data(), residual.beta, values,
                         threshold_, std::exchange(outgoing_, {}), differences_, marks_);
  }
  if (scanned.largest >= kNotFinite) return false;
  if (scanned.largest == 0) {
    out->kept = 0;
    return true;
  }
  const uint32_t guess = threshold_;
  const int marked = Narrow(values, kept, scanned);
  out->kept = std::min(kept, marked);
  scan_->gather(differences_, marks_, marked, &candidates_);
  KeepLargest(scanned.largest, out);
  if (marked < kept) {
    threshold_ = guess;  // a block where hardly anything happened tells little about the next
  } else {
    Follow(marked, Wanted(kept));
  }
  return true;
}

int BlockPicker::Narrow(int values, int kept, const ScanResult& scanned) {
  const int most = 2 * Wanted(kept) + 32;
  // At `enough` at least `kept` values are marked, or all that are not 0; at `few` fewer.
  uint32_t enough = 1, few = scanned.largest + 1, step = kOctave / 8;
  int marked = scanned.marked;
  while ((marked < kept && threshold_ > 1) || (marked > most && few - enough > 1)) {
    if (marked < kept) {
      few = std::min(few, threshold_);
    } else {
      enough = threshold_;
    }
    if (few - enough > step) {
      threshold_ = few - step;  // down in growing strides until there is a near bound below
      step *= 2;
    } else {
      threshold_ = enough + (few - enough) / 2;
    }
    marked = scan_->mark(differences_, values, threshold_, marks_);
    if (threshold_ == enough) break;
  }
  return marked;
}

void BlockPicker::Follow(int marked, int wanted) {
  // A tenth more values than wanted raise the threshold by about half a hundredth. Speed alone hangs on it.
  const int64_t step = static_cast<int64_t>(kOctave / 24) * (marked - wanted) / wanted;
  const int64_t limit = kOctave / 8;
  const int64_t next = int64_t{threshold_} + std::clamp(step, -limit, limit);
  threshold_ = static_cast<uint32_t>(std::clamp<int64_t>(next, 1, kNotFinite - 1));
}

void BlockPicker::KeepLargest(uint32_t largest, PickedBlock* out) {
  const int kept = out->kept;
  // Bisects the bits: at `enough` at least `kept` candidates reach it, at `few` fewer, namely `reach_few`.
  uint32_t enough = threshold_, few = largest + 1;
  int reach = candidates_.count, reach_few = 0;
  while (reach != kept && few - enough > 1) {
    const uint32_t middle = enough + (few - enough) / 2;
    const int count = scan_->count(candidates_, middle);
    if (count >= kept) {
      enough = middle;
      reach = count;
    } else {
      few = middle;
      reach_few = count;
    }
  }
  if (reach == kept) {
    scan_->keep(candidates_, enough, out->positions, out->differences, out->magnitudes);
  } else {
    KeepTied(enough, kept - reach_few, out);
  }
}

void BlockPicker::KeepTied(uint32_t threshold, int equals, PickedBlock* out) const {
  int kept = 0;
  for (int i = 0; i < candidates_.count && kept < out->kept; ++i) {
    const uint32_t magnitude = candidates_.bits[i] & kMagnitudeBits;
    const bool is_equal = magnitude == threshold && equals > 0;
    if (magnitude <= threshold && !is_equal) continue;
    equals -= is_equal;
    out->positions[kept] = static_cast<uint16_t>(candidates_.positions[i]);
    std::memcpy(&out->differences[kept], &candidates_.bits[i], sizeof(float));
    std::memcpy(&out->magnitudes[kept], &magnitude, sizeof(float));
    ++kept;
  }
}

void BlockPicker::WriteLeft(const PickedBlock& picked, const uint8_t* classes, const float* taken, int values,
                            float* out) {
  for (int i = 0; i < picked.kept; ++i) {
    float* value = &differences_[picked.positions[i]];
    *value = *value - std::copysign(taken[classes == nullptr ? 0 : classes[i]], *value);
  }
  outgoing_ = {differences_, out, values};
  if (scan_ == nullptr) Flush();
}

void BlockPicker::Flush() {
  const Outgoing block = std::exchange(outgoing_, {});
  if (block.values == 0) return;
  if (scan_ != nullptr) return scan_->send(block);
  std::copy(block.from, block.from + block.values, block.to);
}

bool BlockPicker::PickPortably(absl::Span<const float> anchor, absl::Span<const float> parameters,
                               const DecayedResidual& residual, int kept, PickedBlock* out) {
  const size_t values = anchor.size();
  const absl::Span<float> differences = absl::MakeSpan(differences_, values);
  if (!(residual.values.empty() ? TakeDifference(anchor, parameters, differences)
                                : TakeSum(anchor, parameters, residual, differences))) {
    return false;
  }
  int others = 0;  // than zeros
  for (size_t i = 0; i < values; ++i) {
    uint32_t bits;
    std::memcpy(&bits, &differences_[i], sizeof bits);
    magnitudes_[i] = bits & kMagnitudeBits;
    others += magnitudes_[i] != 0;
  }
  out->kept = kept = std::min(kept, others);
  if (kept == 0) return true;
  selector_.Select(absl::MakeConstSpan(magnitudes_, values), absl::MakeSpan(out->positions, kept));
  for (int i = 0; i < kept; ++i) {
    out->differences[i] = differences_[out->positions[i]];
    out->magnitudes[i] = std::fabs(out->differences[i]);
  }
  return true;
}

void BlockPicker::Signs(const PickedBlock& picked, uint64_t* out) const {
  if (scan_ != nullptr) return scan_->signs(picked.differences, picked.kept, out);
  std::fill(out, out + (picked.kept + 63) / 64, 0);
  for (int i = 0; i < picked.kept; ++i) {
    const uint64_t is_negative = picked.differences[i] < 0;
    out[i / 64] |= is_negative << (i % 64);
  }
}

}  // namespace isthmus
