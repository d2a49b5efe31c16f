#include "daemon/app/round_bench_setup.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/base/random.h"

namespace isthmus {

RunFile MakeBenchRun(const BenchShape& shape, const std::string& name, int64_t k, int64_t rounds) {
  RunFile run;
  run.set_name(name);
  run.set_seed(static_cast<uint64_t>(shape.seed));
  ModelConfig* model = run.mutable_model();
  model->set_width(shape.width);
  model->set_layers(shape.layers);
  model->set_heads(shape.heads);
  model->set_feed_forward(shape.feed_forward);
  model->set_context(shape.context);
  run.mutable_data()->set_mode(DataConfig::SHARED);
  run.mutable_data()->set_format(DataConfig::BYTES);
  run.mutable_data()->set_sequences_per_step(shape.sequences_per_step);
  RoundConfig* config = run.mutable_rounds();
  config->set_inner_steps_per_round(shape.inner_steps);
  config->set_total_rounds(rounds);
  config->mutable_longest_round()->set_seconds(60);
  config->set_start_sites(shape.sites);
  run.mutable_exchange()->set_contribution_codec(absl::StrCat("topk(k=", k, ")|levels(bits=1)"));
  run.mutable_evaluation()->set_every_rounds(0);
  return run;
}

std::string MakeSeededText(int64_t bytes, uint64_t seed) {
  constexpr int kWords = 2000, kWordsPerLine = 12;
  Random random(seed);
  std::vector<std::string> words(kWords);
  for (std::string& word : words) {
    for (uint64_t left = 2 + random.Below(8); left > 0; --left)
      word += static_cast<char>('a' + random.Below(26));
  }
  std::string text;
  for (int count = 1; static_cast<int64_t>(text.size()) < bytes; ++count) {
    // The density of 1/rank, as words have it.
    const double rank = std::pow(kWords, random.Uniform()) - 1;
    text += words[std::min(static_cast<int>(rank), kWords - 1)];
    text += count % kWordsPerLine == 0 ? '\n' : ' ';
  }
  return text;
}

int64_t QuarterRoundUplink(double frame_bytes, double round_seconds) {
  if (round_seconds <= 0) return 1;
  return std::max<int64_t>(1, std::llround(frame_bytes / (round_seconds / 4)));
}

}  // namespace isthmus
