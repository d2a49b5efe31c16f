#include "compression/sum_code.h"

namespace isthmus {
namespace {

constexpr size_t kMostNames = 255;

}  // namespace

void SumWriter::Sum(int64_t sum) {
  const uint64_t magnitude = static_cast<uint64_t>(sum < 0 ? -sum : sum);
  signs_.Put(sum < 0, 1);
  size_t at = magnitude * 0x9E3779B97F4A7C15ull >> (64 - kSlotBits);
  while (slots_[at].block == block_ && slots_[at].magnitude != magnitude) at = (at + 1) % slots_.size();
  Slot& slot = slots_[at];
  if (slot.block == block_) {
    out_->names.push_back(static_cast<char>(slot.name));
    return;
  }
  out_->names.push_back(static_cast<char>(known_));
  ByteWriter(&out_->literals).Varint(magnitude);
  if (known_ < kMostNames) slot = {magnitude, block_, static_cast<uint8_t>(known_++)};
}

bool SumReader::Sum(uint64_t limit, int64_t* sum) {
  const size_t name = static_cast<uint8_t>(names_[at_++]);
  uint64_t magnitude;
  if (name < dictionary_.size()) {
    magnitude = dictionary_[name];
  } else {
    if (name != dictionary_.size() || !literals_.Varint(&magnitude) || magnitude >= limit) return false;
    if (dictionary_.size() < kMostNames) dictionary_.push_back(magnitude);
  }
  const bool negative = signs_.Take(1) != 0;
  *sum = negative ? -static_cast<int64_t>(magnitude) : static_cast<int64_t>(magnitude);
  return true;
}

}  // namespace isthmus
