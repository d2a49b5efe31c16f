#include "daemon/training/batch.h"

#include <cmath>

#include "absl/strings/str_cat.h"

namespace isthmus {

absl::Status CheckBatchTokens(const Batch& batch, int64_t vocabulary) {
  const int64_t n = batch.tokens.size();
  const int64_t row = batch.length + 1;
  if (batch.sequences < 1 || batch.length < 1 || n % row != 0 || n / row != batch.sequences) {
    return absl::InvalidArgumentError(absl::StrCat("batch of ", batch.sequences, " sequences of length ",
                                                   batch.length, " has ", n, " tokens"));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (batch.tokens[i] < 0 || batch.tokens[i] >= vocabulary) {
      return absl::InvalidArgumentError(absl::StrCat("batch: token ", batch.tokens[i], " in row ", i / row,
                                                     " at ", i % row, " is beyond the vocabulary of ",
                                                     vocabulary));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckSampleRequest(absl::Span<const int32_t> prompt, int64_t count, double temperature,
                                int64_t vocabulary) {
  if (prompt.empty()) return absl::InvalidArgumentError("sample: the prompt is empty");
  for (int64_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] < 0 || prompt[i] >= vocabulary) {
      return absl::InvalidArgumentError(absl::StrCat(
          "sample: token ", prompt[i], " at ", i, " of the prompt is beyond the vocabulary of ", vocabulary));
    }
  }
  if (count < 0) return absl::InvalidArgumentError(absl::StrCat("sample: count is ", count));
  if (!std::isfinite(temperature) || temperature < 0) {
    return absl::InvalidArgumentError(absl::StrCat("sample: temperature is ", temperature));
  }
  return absl::OkStatus();
}

absl::Status CheckMoments(const InnerMoments& moments, int64_t values) {
  const bool is_empty = moments.first.empty() && moments.second.empty() && moments.steps == 0;
  const bool fits = moments.first.size() == values && moments.second.size() == values && moments.steps >= 0;
  if (!is_empty && !fits) {
    return absl::InvalidArgumentError(absl::StrCat("moments: ", moments.steps, " steps, sizes ",
                                                   moments.first.size(), " and ", moments.second.size(),
                                                   ", the table has ", values, " values"));
  }
  for (const std::vector<float>* part : {&moments.first, &moments.second}) {
    for (int64_t i = 0; i < part->size(); ++i) {
      if (!std::isfinite((*part)[i])) {
        return absl::InvalidArgumentError(absl::StrCat("moments: value ", i, " is not finite"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace isthmus
