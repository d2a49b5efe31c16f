// Text drawn from a trained byte-level model, fit to be shown to people.
#ifndef ISTHMUS_DAEMON_TRAINING_SAMPLE_TEXT_H_
#define ISTHMUS_DAEMON_TRAINING_SAMPLE_TEXT_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "daemon/training/trainer.h"

namespace isthmus {

struct SampleTextOptions {
  std::string prompt = "\n";  // bytes, not empty; not part of the result
  int64_t characters = 300;   // bytes drawn
  double temperature = 0.8;
  uint64_t seed = 1;
};

// What Trainer::Sample draws after the prompt, through PrintableText. Its errors; INVALID_ARGUMENT also for a
// token that is no byte (the model's vocabulary is not bytes).
absl::StatusOr<std::string> SampleText(Trainer* trainer, absl::Span<const float> parameters,
                                       const SampleTextOptions& options);

// The same text with '?' for control characters other than newline and tab, and for bytes that are no UTF-8.
std::string PrintableText(absl::string_view bytes);

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_TRAINING_SAMPLE_TEXT_H_
