#include "compression/tensor_sum.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compression/entry_sum.h"
#include "compression/level_table.h"

namespace isthmus {
namespace {

constexpr int kMostFrames = 1024;
constexpr int32_t kLeastWeight = 16, kMostWeight = 256;
constexpr int kAlignedBits = 34;  // mantissa and shift together: S = 34 − M

const DecodedFrame& FrameOf(const WeightedFrame& f) {
  return f.checked == nullptr ? *f.frame : f.checked->decoded;
}

absl::Status CheckTensor(const DecodedTensor& tensor, bool is_placed, int64_t size) {
  const size_t count = tensor.mantissas.size();
  if (tensor.form == TensorForm::kAbsent) return absl::OkStatus();
  if (tensor.mantissa_bits < 1 || tensor.mantissa_bits > 30)
    return absl::InvalidArgumentError("mantissa bits");
  const bool fits =
      is_placed || (tensor.form == TensorForm::kDense
                        ? count == static_cast<size_t>(size)
                        : count == tensor.positions.size() && (count == 0 || tensor.positions.back() < size));
  return fits ? absl::OkStatus() : absl::InvalidArgumentError("other size than the layout's");
}

// Worth of each level byte.
struct LevelValues {
  int32_t of[256];
  LevelValues() {
    for (int c = 0; c < 256; ++c) of[c] = LevelValue(static_cast<uint8_t>(c));
  }
};

const LevelValues& Levels() {
  static const LevelValues kLevels;
  return kLevels;
}

}  // namespace

absl::Status CheckSumInput(const Layout& layout, absl::Span<const WeightedFrame> frames) {
  if (frames.empty() || frames.size() > kMostFrames) {
    return absl::InvalidArgumentError(absl::StrCat("sum of ", frames.size(), " frames: 1 to ", kMostFrames));
  }
  for (size_t f = 0; f < frames.size(); ++f) {
    if (frames[f].weight < kLeastWeight || frames[f].weight > kMostWeight) {
      return absl::InvalidArgumentError(absl::StrCat("sum: frame ", f, " has weight ", frames[f].weight,
                                                     ", outside ", kLeastWeight, " to ", kMostWeight));
    }
    const std::vector<DecodedTensor>& tensors = FrameOf(frames[f]).tensors;
    if (tensors.size() != static_cast<size_t>(layout.tensors())) {
      return absl::InvalidArgumentError(absl::StrCat("sum: frame ", f, " has ", tensors.size(),
                                                     " tensors, the layout has ", layout.tensors()));
    }
    for (int t = 0; t < layout.tensors(); ++t) {
      const bool is_placed = frames[f].checked != nullptr && frames[f].checked->is_placed(t);
      if (absl::Status s = CheckTensor(tensors[t], is_placed, layout.size(t)); !s.ok()) {
        return absl::InvalidArgumentError(absl::StrCat("sum: frame ", f, ", tensor ", t, ": ", s.message()));
      }
    }
  }
  return absl::OkStatus();
}

TensorSum::TensorSum(int tensor, int64_t size, absl::Span<const WeightedFrame> frames) : size_(size) {
  const auto is_refused = [tensor](const WeightedFrame& f) {
    return std::binary_search(f.refused.begin(), f.refused.end(), static_cast<uint32_t>(tensor));
  };
  int most = INT32_MIN, least = INT32_MAX, bits = 0;
  for (const WeightedFrame& f : frames) {
    const DecodedTensor& t = FrameOf(f).tensors[tensor];
    if (t.form == TensorForm::kAbsent || is_refused(f)) continue;
    most = std::max(most, t.exponent);
    least = std::min(least, t.exponent);
    bits = std::max(bits, t.mantissa_bits);
  }
  const int exponent = bits == 0 ? 0 : std::max(most - (kAlignedBits - bits), least);
  for (size_t i = 0; i < frames.size(); ++i) {
    const DecodedTensor& t = FrameOf(frames[i]).tensors[tensor];
    if (t.form == TensorForm::kAbsent) continue;
    if (is_refused(frames[i]) || t.exponent < exponent) {
      left_out_.push_back(static_cast<uint16_t>(i));
      continue;
    }
    Addend addend;
    addend.decoded = &t;
    if (frames[i].checked != nullptr && frames[i].checked->is_placed(tensor)) {
      addend.checked = frames[i].checked;
      addend.placed = &frames[i].checked->placed[tensor];
    }
    addend.weight = frames[i].weight;
    // A product, not a shift, when it meets a mantissa: shifting a negative number is not defined.
    addend.factor = int64_t{frames[i].weight} << (t.exponent - exponent);
    addends_.push_back(addend);
    if (form_ != TensorForm::kDense) form_ = t.form;
  }
  if (!addends_.empty()) exponent_ = exponent;
}

size_t TensorSum::MostPositions() const {
  size_t most = 0;
  for (const Addend& addend : addends_) {
    if (addend.placed == nullptr) {
      most += addend.decoded->positions.size();
      continue;
    }
    const uint16_t* counts = addend.checked->counts.data() + addend.placed->first_block;
    for (int64_t b = 0; b * kBlockValues < size_; ++b) most += counts[b];
  }
  const bool dense = form_ == TensorForm::kDense;
  return dense || most > static_cast<size_t>(size_) ? static_cast<size_t>(size_) : most;
}

// Bytes of a cache line, and what has four bytes in it.
constexpr uintptr_t kLine = 64;
constexpr int kLineValues = 16;

struct SumScratch::Memory {
  // Pairs and narrow sums begin as far into a line as the values they are for, so that no vector of either
  // lies in two lines.
  alignas(64) int16_t pairs[2 * (kBlockValues + kLineValues)] = {};
  alignas(64) int32_t narrow[kBlockValues + kLineValues] = {};
  alignas(64) int64_t wide[kBlockValues] = {};
  alignas(64) int32_t weights[kBlockValues] = {};
  alignas(64) uint64_t marks[kSumMarkWords] = {};
};

SumScratch::SumScratch() : memory_(new Memory) {}
SumScratch::~SumScratch() = default;

// One pass over the tensor.
class TensorSum::Runner {
 public:
  Runner(const TensorSum& sum, const SumNeeds& needs, SumScratch::Memory* memory)
      : sum_(sum),
        needs_(needs),
        memory_(*memory),
        begin_(static_cast<int>(reinterpret_cast<uintptr_t>(needs.soon) % kLine / sizeof(float))) {
    for (const Addend& addend : sum.addends_) {
      if (addend.placed == nullptr) {
        others_.push_back({&addend, 0});
        continue;
      }
      const CheckedFrame& frame = *addend.checked;
      cursors_.push_back({&addend, frame.counts.data() + addend.placed->first_block,
                          reinterpret_cast<const uint8_t*>(frame.levels.data()) + addend.placed->first_level,
                          frame.entries.data() + addend.placed->first_entry, addend.placed->value_bits,
                          1 << (addend.placed->value_bits - 1)});
      has_signs_only_ = has_signs_only_ && addend.placed->value_bits == 1;
    }
  }

  void Run(absl::FunctionRef<void(const BlockSums&)> show) {
    for (int64_t from = 0; from < sum_.size_; from += kBlockValues) {
      BlockSums sums;
      sums.from = from;
      sums.values = static_cast<int>(std::min(kBlockValues, sum_.size_ - from));
      if (needs_.weights) sums.weights = memory_.weights;
      if (needs_.marks && sum_.form_ != TensorForm::kDense) sums.marks = memory_.marks;
      ChooseWidth(&sums);
      SoonWanted soon = Soon(from + kBlockValues);
      for (Cursor& cursor : cursors_) {
        if (sums.pairs != nullptr) {
          AddPairs(&cursor, &soon, sums);
        } else {
          AddBlock(&cursor, &soon, &sums);
        }
      }
      for (Other& other : others_) AddOther(&sums, &other);
      show(sums);
    }
  }

 private:
  // A placed tensor, at its next block.
  struct Cursor {
    const Addend* addend;
    const uint16_t* count;
    const uint8_t* level;
    const Entry* entries;
    int value_bits, levels;
  };
  // A tensor that is not placed.
  struct Other {
    const Addend* addend;
    size_t next;  // first position not yet added
  };

  // The narrowest sums that are exact, shifted right as far as all can be.
  void ChooseWidth(BlockSums* sums) const {
    sums->wide = memory_.wide;
    if (!others_.empty()) return;
    int64_t bound = 0, bits = 0;
    bool has_zero = false;  // a level that leaves no trace
    for (const Cursor& cursor : cursors_) {
      int32_t largest = 0;
      for (int c = 0; c < cursor.levels; ++c) {
        const int32_t level = levels_[cursor.level[c]];
        largest = std::max(largest, level);
        has_zero |= level == 0 && *cursor.count > 0;
        bits |= level * cursor.addend->factor;
      }
      bound += largest * cursor.addend->factor;
    }
    const int shift = bits == 0 ? 0 : __builtin_ctzll(static_cast<uint64_t>(bits));
    if (bound >> shift > INT32_MAX) return;
    sums->wide = nullptr;
    sums->shift = shift;
    const bool pairs = needs_.takes_pairs && !needs_.weights && !(needs_.marks && has_zero);
    if (pairs && has_signs_only_ && bound >> shift <= INT16_MAX) {
      sums->marks = nullptr;
      sums->pairs = memory_.pairs + 2 * begin_;
    } else {
      sums->narrow = memory_.narrow + begin_;
    }
  }

  // The values of the block that begins there, which its user will want when this block's sums are made.
  SoonWanted Soon(int64_t from) const {
    if (needs_.soon == nullptr || from >= sum_.size_) return SoonWanted();
    size_t entries = 0;
    for (const Cursor& cursor : cursors_) entries += *cursor.count;
    const size_t values = static_cast<size_t>(std::min(kBlockValues, sum_.size_ - from));
    return SoonWanted(needs_.soon + from, sizeof(float) * values, entries / kEntriesAPart);
  }

  // Takes the next block of a cursor, here with nothing to decide.
  void AddPairs(Cursor* cursor, SoonWanted* soon, const BlockSums& sums) const {
    const int count = *cursor->count++;
    const int64_t level = levels_[*cursor->level++] * cursor->addend->factor;
    AddToPairs(cursor->entries, count, static_cast<int16_t>(level >> sums.shift), soon, sums.pairs);
    cursor->entries += count;
  }

  // The same in general.
  void AddBlock(Cursor* cursor, SoonWanted* soon, BlockSums* sums) {
    const int count = *cursor->count++;
    const int64_t factor = cursor->addend->factor;
    int32_t mantissas[kMostCodes];
    for (int c = 0; c < cursor->levels; ++c) {
      const int32_t level = levels_[cursor->level[c]];
      mantissas[2 * c] =
          sums->wide == nullptr ? static_cast<int32_t>((level * factor) >> sums->shift) : level;
      mantissas[2 * c + 1] = -mantissas[2 * c];
    }
    const Entry* entries = cursor->entries;
    if (sums->narrow != nullptr) {
      AddToSums(entries, count, cursor->value_bits, mantissas, soon, sums->narrow);
    } else {
      const uint32_t code = (1u << cursor->value_bits) - 1;
      for (int i = 0; i < count; ++i)
        sums->wide[uint32_t{entries[i]} >> cursor->value_bits] += factor * mantissas[entries[i] & code];
    }
    AddMarks(*cursor, count, sums);
    cursor->level += cursor->levels;
    cursor->entries += count;
  }

  static void AddMarks(const Cursor& cursor, int count, BlockSums* sums) {
    for (int i = 0; sums->weights != nullptr && i < count; ++i)
      sums->weights[uint32_t{cursor.entries[i]} >> cursor.value_bits] += cursor.addend->weight;
    for (int i = 0; sums->marks != nullptr && i < count; ++i) {
      const uint32_t position = uint32_t{cursor.entries[i]} >> cursor.value_bits;
      sums->marks[position / 64] |= uint64_t{1} << (position % 64);
    }
  }

  void AddOther(BlockSums* sums, Other* other) {
    const DecodedTensor& tensor = *other->addend->decoded;
    const int64_t factor = other->addend->factor, from = sums->from;
    const int32_t weight = other->addend->weight;
    if (tensor.form == TensorForm::kDense) {
      for (int i = 0; i < sums->values; ++i) sums->wide[i] += factor * tensor.mantissas[from + i];
      for (int i = 0; sums->weights != nullptr && i < sums->values; ++i) sums->weights[i] += weight;
      return;
    }
    const uint32_t* positions = tensor.positions.data();
    const size_t count = tensor.positions.size();
    size_t at = other->next;
    for (; at < count && positions[at] < from + sums->values; ++at) {
      const size_t i = positions[at] - static_cast<uint32_t>(from);
      sums->wide[i] += factor * tensor.mantissas[at];
      if (sums->marks != nullptr) sums->marks[i / 64] |= uint64_t{1} << (i % 64);
    }
    for (size_t j = other->next; sums->weights != nullptr && j < at; ++j)
      sums->weights[positions[j] - static_cast<uint32_t>(from)] += weight;
    other->next = at;
  }

  const TensorSum& sum_;
  const SumNeeds needs_;
  SumScratch::Memory& memory_;
  const int begin_;  // of pairs and narrow sums in their memory
  const int32_t* const levels_ = Levels().of;
  bool has_signs_only_ = true;  // all values have one bit
  std::vector<Cursor> cursors_;
  std::vector<Other> others_;
};

void TensorSum::Run(const SumNeeds& needs, SumScratch* scratch,
                    absl::FunctionRef<void(const BlockSums&)> show) const {
  if (form_ == TensorForm::kAbsent) return;
  Runner(*this, needs, scratch->memory_.get()).Run(show);
}

}  // namespace isthmus
