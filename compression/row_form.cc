#include "compression/row_form.h"

#include <algorithm>

#include "compression/sparse_blocks.h"
#include "compression/sparse_limits.h"

namespace isthmus {
namespace {

constexpr int64_t kProbedRows = 64;

bool IsTouched(const float* anchor, const float* parameters, int64_t row_length) {
  constexpr int64_t kAtOnce = 16;
  int64_t i = 0;
  for (; i + kAtOnce <= row_length; i += kAtOnce) {
    int any = 0;
    for (int64_t v = i; v < i + kAtOnce; ++v) any |= anchor[v] - parameters[v] != 0;
    if (any != 0) return true;
  }
  for (; i < row_length; ++i) {
    if (anchor[i] - parameters[i] != 0) return true;
  }
  return false;
}

// Whether is_touched(first value) is false for one of the rows looked at.
template <typename IsTouchedAt>
bool HasUntouched(int64_t values, int64_t row_length, IsTouchedAt is_touched) {
  const int64_t rows = values / row_length;
  const int64_t probed = std::min(rows, kProbedRows);
  for (int64_t i = 0; i < probed; ++i) {
    // Multiples of the golden ratio, modulo 1: spread evenly, and in step with no pattern of rows.
    const uint64_t fraction = static_cast<uint64_t>(i) * 0x9E3779B97F4A7C15u >> 32;  // of 2^32
    const int64_t at = static_cast<int64_t>(fraction * static_cast<uint64_t>(rows) >> 32) * row_length;
    if (!is_touched(at)) return true;
  }
  return false;
}

bool HasUntouchedRow(absl::Span<const float> anchor, absl::Span<const float> parameters, int64_t row_length) {
  return HasUntouched(static_cast<int64_t>(anchor.size()), row_length, [&](int64_t at) {
    return IsTouched(anchor.data() + at, parameters.data() + at, row_length);
  });
}

// Values that the tensor as it is keeps: in each block no more than its touched rows have.
int64_t KeptWithoutRows(int64_t tensor_values, int k, int64_t row_length, absl::Span<const uint32_t> rows) {
  int64_t total = 0;
  size_t row = 0;  // first that is not wholly before the block
  ForEachBlock(tensor_values, k, [&](int64_t at, int64_t values, int kept) {
    int64_t touched = 0;
    while (row < rows.size() && rows[row] * row_length < at + values) {
      const int64_t begin = rows[row] * row_length, end = begin + row_length;
      touched += std::min(end, at + values) - std::max(begin, at);
      if (end > at + values) break;  // goes on in the next block
      ++row;
    }
    total += std::min<int64_t>(kept, touched);
  });
  return total;
}

}  // namespace

std::vector<uint32_t> TouchedRows(absl::Span<const float> anchor, absl::Span<const float> parameters,
                                  int64_t row_length) {
  std::vector<uint32_t> touched;
  const int64_t rows = static_cast<int64_t>(anchor.size()) / row_length;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t at = r * row_length;
    if (IsTouched(anchor.data() + at, parameters.data() + at, row_length)) {
      touched.push_back(static_cast<uint32_t>(r));
    }
  }
  return touched;
}

bool HasUntouchedRow(int64_t row_length, absl::Span<const float> anchor, absl::Span<const float> parameters,
                     const DecayedResidual& residual) {
  if (row_length == 0) return false;
  return HasUntouched(static_cast<int64_t>(anchor.size()), row_length, [&](int64_t at) {
    constexpr int64_t kAtOnce = 64;
    float sums[kAtOnce];
    for (int64_t end = at + row_length; at < end; at += kAtOnce) {
      const int64_t count = std::min(kAtOnce, end - at);
      TakeSum(anchor.subspan(at, count), parameters.subspan(at, count),
              {residual.values.subspan(at, count), residual.beta}, absl::MakeSpan(sums, count));
      if (std::any_of(sums, sums + count, [](float sum) { return sum != 0; })) return true;
    }
    return false;
  });
}

RowForm FindRowForm(int k, int64_t row_length, absl::Span<const float> anchor,
                    absl::Span<const float> parameters) {
  const int64_t values = static_cast<int64_t>(anchor.size());
  if (row_length == 0 || !HasUntouchedRow(anchor, parameters, row_length)) return {};
  RowForm form;
  form.rows = TouchedRows(anchor, parameters, row_length);
  if (form.rows.empty() || 4 * form.rows.size() > 3 * anchor.size() / row_length) return {};
  const int64_t row_values = static_cast<int64_t>(form.rows.size()) * row_length;
  const int64_t kept = KeptWithoutRows(values, k, row_length, form.rows);
  // The last block's rounding, and the one value that it keeps at least, can make it one too many.
  form.k = static_cast<int>(std::clamp<int64_t>(kept * kBlockValues / row_values, 1, kBlockValues));
  if (form.k > 1 && MostKept(row_values, form.k) > kept) --form.k;
  return 2 * form.k > kBlockValues ? RowForm() : form;
}

}  // namespace isthmus
