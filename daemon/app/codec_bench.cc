#include "daemon/app/codec_bench.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "daemon/app/human_units.h"
#include "daemon/app/text_table.h"
#include "daemon/base/random.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

constexpr int kFewestRepeats = 3;

// Sums of uniform numbers have light tails; a tenth of the values, eight times larger, gives them heavy ones.
std::vector<float> MakeParameters(const Layout& layout, uint64_t seed) {
  std::vector<float> values(layout.total());
  Random random(seed);
  for (int64_t i = 0; i < layout.total(); ++i) {
    const double block_scale = 1e-4 * (1 + static_cast<double>(RandomAt(seed, 1, i / kBlockValues) % 16));
    const double size = random.Uniform() + random.Uniform() + random.Uniform() - 1.5;
    values[i] = static_cast<float>(block_scale * size * (random.Chance(0.1) ? 8 : 1));
  }
  return values;
}

// The median time of one call, of at least kFewestRepeats and as many as fit into `length`.
absl::StatusOr<double> MedianSeconds(const Clock& clock, absl::Duration length,
                                     const std::function<absl::Status()>& call) {
  std::vector<absl::Duration> times;
  const absl::Time start = clock.SteadyNow();
  while (static_cast<int>(times.size()) < kFewestRepeats || clock.SteadyNow() - start < length) {
    const absl::Time before = clock.SteadyNow();
    ISTHMUS_RETURN_IF_ERROR(call());
    times.push_back(clock.SteadyNow() - before);
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return absl::ToDoubleSeconds(times[times.size() / 2]);
}

double Rate(int64_t values, double seconds) {
  return seconds > 0 ? static_cast<double>(values) / seconds : 0;
}

absl::StatusOr<CodecBenchResult> MeasureCodec(const std::string& text, const Layout& layout,
                                              const std::vector<float>& anchor,
                                              const std::vector<float>& parameters, const Clock& clock,
                                              absl::Duration length) {
  ISTHMUS_ASSIGN_OR_RETURN(const auto codec, ParseCodecSpec(text));
  ISTHMUS_ASSIGN_OR_RETURN(const CodecSpec spec, ParseSpecText(codec->spec()));
  CodecBenchResult result;
  result.spec = codec->spec();
  std::string frame;
  ISTHMUS_ASSIGN_OR_RETURN(const double encode_seconds, MedianSeconds(clock, length, [&]() -> absl::Status {
                             ISTHMUS_ASSIGN_OR_RETURN(frame, codec->Encode(layout, anchor, parameters));
                             return absl::OkStatus();
                           }));
  ISTHMUS_ASSIGN_OR_RETURN(const double decode_seconds, MedianSeconds(clock, length, [&]() -> absl::Status {
                             return codec->Decode(layout, frame).status();
                           }));
  result.frame_bytes = static_cast<int64_t>(frame.size());
  result.bytes_per_parameter = static_cast<double>(frame.size()) / static_cast<double>(layout.total());
  if (spec.kind == CodecSpec::Kind::kTopK)
    result.published_bytes_per_parameter = spec.k * 14.0 / 8 / kBlockValues;
  result.encode_values_per_second = Rate(layout.total(), encode_seconds);
  result.decode_values_per_second = Rate(layout.total(), decode_seconds);
  return result;
}

}  // namespace

absl::StatusOr<std::vector<CodecBenchResult>> MeasureCodecs(const std::vector<std::string>& specs,
                                                            const Layout& layout, uint64_t seed,
                                                            const Clock& clock, absl::Duration length) {
  const std::vector<float> anchor(layout.total(), 0.0f), parameters = MakeParameters(layout, seed);
  std::vector<CodecBenchResult> results;
  for (const std::string& spec : specs) {
    ISTHMUS_ASSIGN_OR_RETURN(CodecBenchResult result,
                             MeasureCodec(spec, layout, anchor, parameters, clock, length));
    results.push_back(std::move(result));
  }
  return results;
}

std::string CodecBenchTable(const std::vector<CodecBenchResult>& results) {
  TextTable table(
      {"<codec", "frame", "bytes/parameter", "published", "of it", "encode values/s", "decode values/s"});
  for (const CodecBenchResult& result : results) {
    const bool has_published = result.published_bytes_per_parameter > 0;
    table.AddRow(
        {result.spec, HumanBytes(result.frame_bytes), absl::StrFormat("%.4f", result.bytes_per_parameter),
         has_published ? absl::StrFormat("%.4f", result.published_bytes_per_parameter) : "-",
         has_published ? HumanShare(result.bytes_per_parameter, result.published_bytes_per_parameter) : "-",
         HumanCount(result.encode_values_per_second), HumanCount(result.decode_values_per_second)});
  }
  return table.ToString();
}

std::string CodecBenchJson(const std::vector<CodecBenchResult>& results) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const CodecBenchResult& result : results) {
    nlohmann::ordered_json json;
    json["spec"] = result.spec;
    json["frame_bytes"] = result.frame_bytes;
    json["bytes_per_parameter"] = result.bytes_per_parameter;
    json["published_bytes_per_parameter"] = result.published_bytes_per_parameter;
    json["encode_values_per_second"] = result.encode_values_per_second;
    json["decode_values_per_second"] = result.decode_values_per_second;
    all.push_back(std::move(json));
  }
  return all.dump();
}

}  // namespace isthmus
