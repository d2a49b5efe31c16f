#include "compression/tensor_sum.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "compression/level_table.h"

namespace isthmus {
namespace {

constexpr int kMostFrames = 1024;
constexpr int32_t kLeastWeight = 16, kMostWeight = 256;
constexpr int kAlignedBits = 34;  // mantissa and shift together: S = 34 − M

const DecodedFrame& FrameOf(const WeightedFrame& f) {
  return f.checked == nullptr ? *f.frame : f.checked->decoded;
}

absl::Status CheckTensor(const DecodedTensor& tensor, bool is_packed, int64_t size) {
  const size_t count = tensor.mantissas.size();
  if (tensor.form == TensorForm::kAbsent) return absl::OkStatus();
  if (tensor.mantissa_bits < 1 || tensor.mantissa_bits > 30)
    return absl::InvalidArgumentError("mantissa bits");
  const bool fits =
      is_packed || (tensor.form == TensorForm::kDense
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
      const bool is_packed = frames[f].checked != nullptr && frames[f].checked->is_packed(t);
      if (absl::Status s = CheckTensor(tensors[t], is_packed, layout.size(t)); !s.ok()) {
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
    if (frames[i].checked != nullptr && frames[i].checked->is_packed(tensor)) {
      addend.checked = frames[i].checked;
      addend.packed = &frames[i].checked->packed[tensor];
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
    if (addend.packed == nullptr) {
      most += addend.decoded->positions.size();
      continue;
    }
    const GapExtent* blocks = addend.checked->blocks.data() + addend.packed->first_block;
    for (int64_t b = 0; b * kBlockValues < size_; ++b) most += blocks[b].entries;
  }
  const bool dense = form_ == TensorForm::kDense;
  return dense || most > static_cast<size_t>(size_) ? static_cast<size_t>(size_) : most;
}

struct SumScratch::Memory {
  alignas(64) int32_t narrow[kBlockValues + 64] = {};
  alignas(64) int64_t wide[kBlockValues] = {};
  alignas(64) int32_t weights[kBlockValues] = {};
  alignas(64) uint64_t marks[kSumMarkWords] = {};
  UnpackedEntries unpacked;
  std::vector<PackedEntries> blocks;  // of the packed addends
  std::vector<int32_t> mantissas;     // kMostCodes for each
};

SumScratch::SumScratch() : memory_(new Memory) {}
SumScratch::~SumScratch() = default;

// One pass over the tensor.
class TensorSum::Runner {
 public:
  Runner(const TensorSum& sum, const SumNeeds& needs, SumScratch::Memory* memory)
      : sum_(sum), needs_(needs), scan_(EntryScanOf(needs.path)), memory_(*memory) {
    for (const Addend& addend : sum.addends_) {
      if (addend.packed == nullptr) {
        others_.push_back({&addend, 0});
        continue;
      }
      const CheckedFrame& frame = *addend.checked;
      cursors_.push_back({&addend, frame.blocks.data() + addend.packed->first_block,
                          reinterpret_cast<const uint8_t*>(frame.levels.data()) + addend.packed->first_level,
                          reinterpret_cast<const uint8_t*>(frame.gaps.data()) + addend.packed->first_gap,
                          reinterpret_cast<const uint8_t*>(frame.values.data()), addend.packed->first_bit,
                          addend.packed->value_bits, 1 << (addend.packed->value_bits - 1)});
    }
    memory_.blocks.resize(cursors_.size());
    memory_.mantissas.resize(kMostCodes * cursors_.size());
  }

  void Run(absl::FunctionRef<void(const BlockSums&)> show) {
    for (int64_t from = 0; from < sum_.size_; from += kBlockValues) {
      BlockSums sums;
      sums.from = from;
      sums.values = static_cast<int>(std::min(kBlockValues, sum_.size_ - from));
      if (needs_.weights) sums.weights = memory_.weights;
      if (needs_.marks && sum_.form_ != TensorForm::kDense) sums.marks = memory_.marks;
      sums.narrow_shift = NarrowShift();
      if (sums.narrow_shift >= 0) {
        sums.narrow = memory_.narrow;
      } else {
        sums.narrow_shift = 0;
        sums.wide = memory_.wide;
      }
      AddPacked(&sums);
      for (Other& other : others_) AddOther(&sums, &other);
      show(sums);
    }
  }

 private:
  struct Cursor {
    const Addend* addend;
    const GapExtent* extent;
    const uint8_t* level;
    const uint8_t* gaps;
    const uint8_t* values;
    size_t bit;
    int value_bits, levels;
  };
  // A tensor that is not packed.
  struct Other {
    const Addend* addend;
    size_t next;  // first position not yet added
  };

  // How far the block's sums can be shifted right for all to be exact in 31 bits; −1 when they cannot.
  int NarrowShift() const {
    if (!others_.empty()) return -1;
    int64_t bound = 0, bits = 0;
    for (const Cursor& cursor : cursors_) {
      int32_t largest = 0;
      for (int c = 0; c < cursor.levels; ++c) {
        const int32_t level = Levels().of[cursor.level[c]];
        largest = std::max(largest, level);
        bits |= level * cursor.addend->factor;
      }
      bound += largest * cursor.addend->factor;
    }
    if (bits == 0) return 0;
    const int shift = __builtin_ctzll(static_cast<uint64_t>(bits));
    return bound >> shift <= INT32_MAX ? shift : -1;
  }

  // Takes the next block of every cursor.
  void AddPacked(BlockSums* sums) {
    const bool narrow = sums->narrow != nullptr;
    int count = 0;
    for (Cursor& cursor : cursors_) {
      const GapExtent extent = *cursor.extent++;
      const int levels = cursor.levels;
      if (extent.entries > 0) {
        int32_t* mantissas = memory_.mantissas.data() + kMostCodes * count;
        for (int c = 0; c < levels; ++c) {
          const int32_t level = Levels().of[cursor.level[c]];
          mantissas[2 * c] =
              narrow ? static_cast<int32_t>((level * cursor.addend->factor) >> sums->narrow_shift) : level;
          mantissas[2 * c + 1] = -mantissas[2 * c];
        }
        memory_.blocks[count++] = {cursor.gaps, extent.bytes,      extent.entries, cursor.values,
                                   cursor.bit,  cursor.value_bits, mantissas};
        if (!narrow || sums->weights != nullptr || sums->marks != nullptr)
          AddUnpacked(memory_.blocks[count - 1], *cursor.addend, sums);
      }
      cursor.level += levels;
      cursor.gaps += extent.bytes;
      cursor.bit += static_cast<size_t>(extent.entries * cursor.value_bits);
    }
    if (!narrow || sums->weights != nullptr || sums->marks != nullptr) return;
    SoonWanted soon;
    const int64_t next = sums->from + kBlockValues;
    if (needs_.soon != nullptr && next < sum_.size_) {
      soon.begin = reinterpret_cast<const char*>(needs_.soon + next);
      soon.bytes = sizeof(float) * static_cast<size_t>(std::min(kBlockValues, sum_.size_ - next));
    }
    if (count > 0) scan_.add(memory_.blocks.data(), count, soon, sums->narrow);
  }

  void AddUnpacked(const PackedEntries& block, const Addend& addend, BlockSums* sums) {
    scan_.unpack(block, &memory_.unpacked);
    const uint32_t* positions = memory_.unpacked.positions;
    const int32_t* mantissas = memory_.unpacked.mantissas;
    const int count = block.entries;
    if (sums->narrow != nullptr) {
      for (int i = 0; i < count; ++i) sums->narrow[positions[i]] += mantissas[i];
    } else {
      for (int i = 0; i < count; ++i) sums->wide[positions[i]] += addend.factor * mantissas[i];
    }
    for (int i = 0; sums->weights != nullptr && i < count; ++i) sums->weights[positions[i]] += addend.weight;
    for (int i = 0; sums->marks != nullptr && i < count; ++i)
      sums->marks[positions[i] / 64] |= uint64_t{1} << (positions[i] % 64);
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
  const EntryScan& scan_;
  SumScratch::Memory& memory_;
  std::vector<Cursor> cursors_;
  std::vector<Other> others_;
};

void TensorSum::Run(const SumNeeds& needs, SumScratch* scratch,
                    absl::FunctionRef<void(const BlockSums&)> show) const {
  if (form_ == TensorForm::kAbsent) return;
  Runner(*this, needs, scratch->memory_.get()).Run(show);
}

}  // namespace isthmus
