#include "gpu/bench_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/codec_spec.h"
#include "compression/layout.h"
#include "compression/update.h"
#include "gpu/bench_data.h"
#include "gpu/device_ops.h"

namespace isthmus {
namespace {

constexpr int kManySites = 16;

// Least time of `repeats` runs, in seconds, never 0.
template <typename Run>
double BestSeconds(const CodecBenchOptions& options, Run run) {
  double best = 1e300;
  for (int i = 0; i < std::max(1, options.repeats); ++i) {
    const absl::Time begin = options.now();
    run();
    best = std::min(best, absl::ToDoubleSeconds(options.now() - begin));
  }
  return std::max(best, 1e-9);
}

double BoundBytes(const CodecSpec& spec) {
  if (spec.kind == CodecSpec::Kind::kDense) return spec.value_bits / 8.0;
  const double n = kBlockValues, k = spec.k;
  const double choices = (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
  return (choices + k * spec.value_bits) / n / 8;
}

// Measures one codec after another on the same differences.
class CodecBench {
 public:
  explicit CodecBench(const CodecBenchOptions& options)
      : options_(options),
        layout_(BenchLayout(options.parameters)),
        anchor_(options.parameters),
        parameters_(BenchDifferences(options.parameters, options.seed)),
        copy_(options.parameters),
        ops_(MakeCpuDeviceOps()) {}

  absl::StatusOr<CodecBenchRow> Measure(const CodecSpec& spec) {
    absl::StatusOr<std::unique_ptr<Codec>> codec = ParseCodecSpec(SpecText(spec));
    if (!codec.ok()) return codec.status();
    CodecBenchRow row;
    row.spec = (*codec)->spec();
    row.bound_bytes = BoundBytes(spec);
    if (spec.kind == CodecSpec::Kind::kTopK) row.published_bytes = 14.0 * spec.k / kBlockValues / 8;
    row.memcpy_gb_per_second = Rate([&] { std::memcpy(copy_.data(), parameters_.data(), Bytes()); });

    std::string frame;
    absl::Status status;
    row.encode_gb_per_second = Rate([&] {
      auto encoded = ops_->Encode(**codec, layout_, anchor_, parameters_);
      status.Update(encoded.status());
      if (encoded.ok()) frame = *std::move(encoded);
    });
    row.frame_bytes = PerParameter(frame.size());
    row.apply_gb_per_second = Rate([&] { status.Update(Apply(**codec, frame, &row)); });
    if (!status.ok()) return status;
    if (absl::Status s = MeasureUpdates(**codec, &row); !s.ok()) return s;
    return row;
  }

 private:
  size_t Bytes() const { return sizeof(float) * parameters_.size(); }
  double PerParameter(size_t bytes) const { return static_cast<double>(bytes) / options_.parameters; }

  template <typename Run>
  double Rate(Run run) {
    return static_cast<double>(Bytes()) / BestSeconds(options_, run) / 1e9;
  }

  absl::Status Apply(const Codec& codec, const std::string& frame, CodecBenchRow* row) {
    const absl::StatusOr<DecodedFrame> decoded = codec.Decode(layout_, frame);
    if (!decoded.ok()) return decoded.status();
    const absl::StatusOr<Update> update = ops_->Sum(layout_, {{&*decoded, 64}}, Averaging::kPeers);
    if (!update.ok()) return update.status();
    size_t sent = 0;
    for (const DecodedTensor& tensor : decoded->tensors) sent += tensor.mantissas.size();
    row->density = PerParameter(sent);
    return ops_->ApplyToAnchor(layout_, *update, OuterStep(), absl::MakeSpan(copy_), absl::Span<float>());
  }

  // Independent sites; their masks in a real run overlap more, so these are the larger updates.
  absl::Status MeasureUpdates(const Codec& codec, CodecBenchRow* row) {
    std::vector<DecodedFrame> decoded;
    for (int site = 0; site < kManySites; ++site) {
      const std::vector<float> theirs = BenchDifferences(options_.parameters, options_.seed + 1 + site);
      const absl::StatusOr<std::string> frame = codec.Encode(layout_, anchor_, theirs);
      if (!frame.ok()) return frame.status();
      absl::StatusOr<DecodedFrame> read = codec.Decode(layout_, *frame);
      if (!read.ok()) return read.status();
      decoded.push_back(*std::move(read));
    }
    std::vector<WeightedFrame> frames;
    for (const DecodedFrame& frame : decoded) frames.push_back({&frame, 64});
    for (int sites : {3, kManySites}) {
      const absl::StatusOr<Update> update =
          SumFrames(layout_, absl::MakeConstSpan(frames).first(sites), Averaging::kPeers);
      if (!update.ok()) return update.status();
      (sites == 3 ? row->update_bytes_3_sites : row->update_bytes_16_sites) =
          PerParameter(EncodeUpdate(layout_, *update).size());
    }
    return absl::OkStatus();
  }

  const CodecBenchOptions& options_;
  const Layout layout_;
  const std::vector<float> anchor_, parameters_;
  std::vector<float> copy_;
  const std::unique_ptr<DeviceOps> ops_;
};

std::vector<std::string> DefaultSpecs() {
  std::vector<std::string> specs;
  for (int k : {16, 64, 512}) {
    for (int bits : {1, 2}) specs.push_back(absl::StrCat("topk(k=", k, ")|levels(bits=", bits, ")"));
  }
  specs.push_back("dense");
  return specs;
}

}  // namespace

absl::StatusOr<CodecBenchReport> RunCodecBench(const CodecBenchOptions& options) {
  if (!options.now) return absl::InvalidArgumentError("bench codec: no clock");
  if (options.parameters < kBlockValues) {
    return absl::InvalidArgumentError(absl::StrCat("bench codec: ", options.parameters,
                                                   " parameters, at least ", kBlockValues, " are needed"));
  }
  std::vector<CodecSpec> specs;
  for (const std::string& text : options.specs.empty() ? DefaultSpecs() : options.specs) {
    const absl::StatusOr<CodecSpec> spec = ParseSpecText(text);
    if (!spec.ok()) return spec.status();
    specs.push_back(*spec);
  }
  CodecBench bench(options);
  CodecBenchReport report;
  report.parameters = options.parameters;
  for (const CodecSpec& spec : specs) {
    absl::StatusOr<CodecBenchRow> row = bench.Measure(spec);
    if (!row.ok()) return row.status();
    report.rows.push_back(*std::move(row));
  }
  return report;
}

std::string CodecBenchTable(const CodecBenchReport& report) {
  std::string text = absl::StrFormat(
      "%d parameters, one thread; bytes per parameter, and GB of fp32 parameters per second (x: of memcpy)\n"
      "%-50s %8s %8s %8s %9s %9s %9s %14s %14s %7s\n",
      report.parameters, "codec", "density", "frame", "bound", "published", "update/3", "update/16", "encode",
      "decode..apply", "memcpy");
  for (const CodecBenchRow& r : report.rows) {
    const std::string published = r.published_bytes > 0 ? absl::StrFormat("%.4f", r.published_bytes) : "-";
    absl::StrAppendFormat(
        &text, "%-50s %8.4f %8.5f %8.5f %9s %9.5f %9.5f %6.2f (%.2fx) %6.2f (%.2fx) %7.2f\n", r.spec,
        r.density, r.frame_bytes, r.bound_bytes, published, r.update_bytes_3_sites, r.update_bytes_16_sites,
        r.encode_gb_per_second, r.encode_gb_per_second / r.memcpy_gb_per_second, r.apply_gb_per_second,
        r.apply_gb_per_second / r.memcpy_gb_per_second, r.memcpy_gb_per_second);
  }
  return text;
}

std::string CodecBenchJson(const CodecBenchReport& report) {
  std::string text = absl::StrFormat("{\"parameters\": %d, \"codecs\": [", report.parameters);
  const char* separator = "\n";
  for (const CodecBenchRow& r : report.rows) {
    // A spec holds no character JSON would have to escape.
    absl::StrAppendFormat(
        &text,
        "%s  {\"spec\": \"%s\", \"density\": %.6g, \"frame_bytes_per_parameter\": %.6g, "
        "\"bound_bytes_per_parameter\": %.6g, \"published_bytes_per_parameter\": %.6g, "
        "\"update_bytes_per_parameter_3_sites\": %.6g, "
        "\"update_bytes_per_parameter_16_sites\": %.6g, \"encode_gb_per_second\": %.6g, "
        "\"decode_sum_apply_gb_per_second\": %.6g, \"memcpy_gb_per_second\": %.6g, "
        "\"encode_to_memcpy\": %.6g, \"decode_sum_apply_to_memcpy\": %.6g}",
        separator, r.spec, r.density, r.frame_bytes, r.bound_bytes, r.published_bytes, r.update_bytes_3_sites,
        r.update_bytes_16_sites, r.encode_gb_per_second, r.apply_gb_per_second, r.memcpy_gb_per_second,
        r.encode_gb_per_second / r.memcpy_gb_per_second, r.apply_gb_per_second / r.memcpy_gb_per_second);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

}  // namespace isthmus
