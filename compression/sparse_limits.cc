#include "compression/sparse_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compression/bit_pack.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/sparse_blocks.h"

namespace isthmus {
namespace {

// "16", or "1 to 64".
std::string Range(int least, int most) {
  return least == most ? absl::StrCat(least) : absl::StrCat(least, " to ", most);
}

}  // namespace

SparseLimits::SparseLimits(const CodecSpec& spec) {
  const bool by_energy = spec.share == CodecSpec::Share::kEnergy;
  const bool is_auto = spec.value_bits == kAutoValueBits;
  if (!is_auto) least_bits = most_bits = spec.value_bits;
  if (!is_auto && !by_energy) least_k = spec.k;
  most_k = by_energy ? std::min<int>(kBlockValues, 4 * spec.k) : spec.k;
}

int64_t MostKept(int64_t tensor_values, int k) {
  const int64_t rest = tensor_values % kBlockValues;
  return tensor_values / kBlockValues * k + (rest > 0 ? KeptValues(k, rest) : 0);
}

int64_t CodedValues(const Layout& layout, const TensorHeader& header, int tensor) {
  return header.form == TensorForm::kRows ? header.rows * layout.row_length(tensor) : layout.size(tensor);
}

FrameLimits SparseFrameLimits(const SparseLimits& limits, const Layout& layout) {
  FrameLimits most;
  int64_t kept_values = 0;
  for (int t = 0; t < layout.tensors(); ++t) {
    const int64_t whole = layout.size(t) / kBlockValues, rest = layout.size(t) % kBlockValues;
    most.level_bytes += BlocksOf(layout.size(t)) * LevelsOf(limits.most_bits);
    most.gap_bytes += whole * GapBound(limits.most_k, kBlockValues);
    if (rest > 0) most.gap_bytes += GapBound(KeptValues(limits.most_k, rest), rest);
    most.gap_bytes += GapBound(layout.rows(t), layout.rows(t));
    kept_values += MostKept(layout.size(t), limits.most_k);
  }
  most.value_bytes = PackedBytes(kept_values, limits.most_bits);
  return most;
}

absl::Status CheckSparseHeader(const SparseLimits& limits, const Layout& layout, const TensorHeader& header,
                               int tensor) {
  const auto error = [tensor](auto... what) {
    return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", tensor, ": ", what...));
  };
  if (header.form == TensorForm::kAbsent) return absl::OkStatus();
  const bool by_rows = header.form == TensorForm::kRows;
  if (!by_rows && header.form != TensorForm::kSparse) return error("not of the sparse form");
  if (by_rows && (header.rows == 0 || header.rows > layout.rows(tensor))) {
    return error(header.rows, " rows are sent, the layout has ", layout.rows(tensor));
  }
  if (header.k > kBlockValues) return error("k ", header.k, " is beyond a block of ", kBlockValues);
  const int64_t most_kept = MostKept(layout.size(tensor), limits.most_k);
  if (by_rows && (header.k == 0 || MostKept(CodedValues(layout, header, tensor), header.k) > most_kept)) {
    return error("k ", header.k, " of ", header.rows, " rows, the codec spec lets all rows keep ", most_kept);
  }
  if (!by_rows && (header.k < limits.least_k || header.k > limits.most_k)) {
    return error("k ", header.k, ", the codec spec says ", Range(limits.least_k, limits.most_k));
  }
  if (header.value_bits < limits.least_bits || header.value_bits > limits.most_bits) {
    return error(header.value_bits, " value bits, the codec spec says ",
                 Range(limits.least_bits, limits.most_bits));
  }
  if (header.exponent < kLeastExponent || header.exponent > kMostLevelExponent) {
    return error("exponent ", header.exponent, " is outside ", kLeastExponent, " to ", kMostLevelExponent,
                 ", where values are finite");
  }
  return absl::OkStatus();
}

}  // namespace isthmus
