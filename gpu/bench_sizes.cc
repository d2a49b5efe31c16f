#include "gpu/bench_sizes.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "compression/codec.h"
#include "compression/layout.h"
#include "compression/stream_sizes.h"
#include "gpu/bench_data.h"

namespace isthmus {
namespace {

constexpr double kUpdateTarget = 1.04, kUpdateSlack = 1.05;
constexpr int kMostSites = 16;

std::unique_ptr<Codec> MakeCodec(int k, int bits) {
  const std::string spec = absl::StrCat("topk(k=", k, ")|levels(bits=", bits, ")");
  return std::move(ParseCodecSpec(spec)).value();
}

absl::Status MeasureFrames(const SizeBenchOptions& options, SizeReport* report) {
  const Layout layout = BenchLayout(options.frame_parameters);
  const std::vector<float> zero(options.frame_parameters);
  const std::vector<float> differences = BenchDifferences(options.frame_parameters, options.seed);
  for (FrameSizeSum& sum : AllFrameSizeSums(options.is_short)) {
    if (absl::Status s = sum.Add(layout, zero, differences); !s.ok()) return s;
    const absl::StatusOr<FrameSizeRow> row = sum.Row();
    if (!row.ok()) return row.status();
    report->frames.push_back(*row);
  }
  return absl::OkStatus();
}

// Updates of the first sites' frames at one k.
class UpdateBench {
 public:
  UpdateBench(const SizeBenchOptions& options, int k)
      : options_(options), k_(k), layout_(BenchLayout(options.update_parameters)) {}

  absl::Status MakeFrames() {
    const std::unique_ptr<Codec> codec = MakeCodec(k_, 1);
    const std::vector<float> zero(layout_.total());
    for (int site = 0; site < kMostSites; ++site) {
      const auto frame =
          codec->Encode(layout_, zero, BenchDifferences(layout_.total(), options_.seed + 1 + site));
      if (!frame.ok()) return frame.status();
      absl::StatusOr<DecodedFrame> decoded = codec->Decode(layout_, *frame);
      if (!decoded.ok()) return decoded.status();
      frames_.push_back(*std::move(decoded));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<UpdateSizeRow> Measure(int sites, bool is_equal, Averaging averaging) const {
    std::vector<WeightedFrame> weighted;
    for (int s = 0; s < sites; ++s) weighted.push_back({&frames_[s], is_equal || s % 3 != 1 ? 64 : 21});
    const absl::StatusOr<Update> update = SumFrames(layout_, weighted, averaging);
    if (!update.ok()) return update.status();
    const absl::StatusOr<UpdateSizes> sizes = SizesOfUpdate(EncodeUpdate(layout_, *update));
    if (!sizes.ok()) return sizes.status();
    const absl::StatusOr<UpdateBound> of_frames = BoundOfFrames(layout_, weighted);
    if (!of_frames.ok()) return of_frames.status();

    const auto values = static_cast<double>(layout_.total());
    const auto each = [&](int64_t bytes) { return static_cast<double>(bytes) / values; };
    const UpdateBound bits = BoundOf(layout_, *update);
    const double share = 1 / (8 * values);
    UpdateSizeRow row;
    row.k = k_;
    row.sites = sites;
    row.is_equal = is_equal;
    row.averaging = averaging;
    row.positions = each(sizes->positions);
    row.names = each(sizes->names);
    row.literals = each(sizes->literals);
    row.signs = each(sizes->signs);
    row.rest = each(sizes->dense + sizes->head);
    row.bound = {bits.positions * share, bits.names * share, bits.literals * share, bits.signs * share};
    row.frames_bound = of_frames->total() * share;
    row.target = kUpdateTarget;
    return row;
  }

 private:
  const SizeBenchOptions& options_;
  const int k_;
  const Layout layout_;
  std::vector<DecodedFrame> frames_;
};

absl::Status MeasureUpdates(const SizeBenchOptions& options, SizeReport* report) {
  for (int k : {64, 512}) {
    UpdateBench updates(options, k);
    if (absl::Status s = updates.MakeFrames(); !s.ok()) return s;
    for (int sites : {3, 8, 16}) {
      for (bool is_equal : {true, false}) {
        for (Averaging averaging : {Averaging::kPeers, Averaging::kContributors}) {
          absl::StatusOr<UpdateSizeRow> row = updates.Measure(sites, is_equal, averaging);
          if (!row.ok()) return row.status();
          report->updates.push_back(*row);
          if (options.is_short) break;
        }
      }
      if (options.is_short) break;
    }
  }
  return absl::OkStatus();
}

const char* Weights(const UpdateSizeRow& row) { return row.is_equal ? "equal" : "64,21,64"; }
const char* Convention(const UpdateSizeRow& row) {
  return row.averaging == Averaging::kPeers ? "PEERS" : "CONTRIBUTORS";
}
const char* Missed(double ratio, double limit) { return ratio > limit ? "  missed" : ""; }

std::string NotJudged() {
  return absl::StrCat("; shown, not judged: the\nlimits are those of at least ", kFullFrame, " parameters");
}

void AppendFrames(const std::vector<FrameSizeRow>& rows, bool is_judged, std::string* text) {
  absl::StrAppendFormat(text, "%5s %5s %10s %8s %8s %8s %8s %8s %8s %7s %9s %7s %6s %9s\n", "k", "bits",
                        "positions", "bound", "entropy", "values", "levels", "rest", "whole", "ratio",
                        "less rest", "largest", "limit", "B/p");
  for (const FrameSizeRow& r : rows) {
    absl::StrAppendFormat(
        text, "%5d %5d %10.4f %8.4f %8.4f %8.4f %8.4f %8.4f %8.4f %7.4f %9.4f %7.4f %6.2f %9.5f%s\n", r.k,
        r.value_bits, r.positions, r.positions_bound, r.gap_entropy, r.values, r.levels, r.rest, r.total(),
        r.ratio(), r.ratio_without_rest(), r.worst_ratio, r.limit, r.bytes,
        is_judged ? Missed(r.worst_ratio, r.limit) : "");
  }
}

std::string FramesJson(const std::vector<FrameSizeRow>& rows) {
  std::string text = "[";
  const char* separator = "\n";
  for (const FrameSizeRow& r : rows) {
    absl::StrAppendFormat(
        &text,
        "%s  {\"k\": %d, \"bits\": %d, \"positions\": %.6g, \"positions_bound\": %.6g, "
        "\"gap_entropy\": %.6g, \"values\": %.6g, \"levels\": %.6g, \"rest\": %.6g, \"ratio\": %.6g, "
        "\"ratio_without_rest\": %.6g, \"worst_ratio\": %.6g, \"limit\": %.6g, \"bytes\": %.6g}",
        separator, r.k, r.value_bits, r.positions, r.positions_bound, r.gap_entropy, r.values, r.levels,
        r.rest, r.ratio(), r.ratio_without_rest(), r.worst_ratio, r.limit, r.bytes);
    separator = ",\n";
  }
  return text + "\n]";
}

// Those above their limit.
std::string FramesMissed(const char* what, const std::vector<FrameSizeRow>& rows) {
  std::string missed;
  for (const FrameSizeRow& r : rows) {
    if (r.worst_ratio <= r.limit) continue;
    absl::StrAppendFormat(&missed, "; %s of k=%d, %d bits: %.4f of the bound, at most %.2f wanted", what, r.k,
                          r.value_bits, r.worst_ratio, r.limit);
  }
  return missed;
}

}  // namespace

absl::StatusOr<SizeReport> RunSizeBench(const SizeBenchOptions& options) {
  if (std::min(options.frame_parameters, options.update_parameters) < kBlockValues) {
    return absl::InvalidArgumentError(
        absl::StrCat("bench codec: sizes of fewer than ", kBlockValues, " parameters"));
  }
  SizeReport report;
  report.frame_parameters = options.frame_parameters;
  report.update_parameters = options.update_parameters;
  if (absl::Status s = MeasureFrames(options, &report); !s.ok()) return s;
  if (absl::Status s = MeasureUpdates(options, &report); !s.ok()) return s;
  return report;
}

std::string SizeTable(const SizeReport& report) {
  std::string text = absl::StrFormat(
      "frames of %d parameters; bits per kept value, and the whole against (position bound + value bits); "
      "entropy: of the gap\nbytes, each by itself; rest: table, spec, envelope%s\n",
      report.frame_parameters, report.is_judged() ? "" : NotJudged());
  AppendFrames(report.frames, report.is_judged(), &text);
  if (!report.real.rows.empty()) {
    absl::StrAppendFormat(
        &text,
        "\nframes of real differences, %d of %d parameters; as above, and the largest ratio of a frame%s\n",
        report.real.frames, report.real.parameters,
        report.real.is_judged() ? ", which is judged" : NotJudged());
    AppendFrames(report.real.rows, report.real.is_judged(), &text);
  }
  absl::StrAppendFormat(&text,
                        "\nupdates of %d parameters, 1 bit; bytes per parameter against the update's own "
                        "bound (in brackets), and "
                        "what the frames themselves would take\n"
                        "%4s %5s %-8s %-12s %19s %19s %19s %19s %9s %9s %7s %6s %8s\n",
                        report.update_parameters, "k", "sites", "weights", "averaging", "positions", "names",
                        "literals", "signs", "update", "bound", "ratio", "target", "frames");
  for (const UpdateSizeRow& r : report.updates) {
    const auto part = [](double bytes, double bound) { return absl::StrFormat("%.5f (%.5f)", bytes, bound); };
    absl::StrAppendFormat(&text, "%4d %5d %-8s %-12s %19s %19s %19s %19s %9.5f %9.5f %7.4f %6.2f %8.5f%s\n",
                          r.k, r.sites, Weights(r), Convention(r), part(r.positions, r.bound.positions),
                          part(r.names, r.bound.names), part(r.literals, r.bound.literals),
                          part(r.signs, r.bound.signs), r.total(), r.bound.total(), r.ratio(), r.target,
                          r.frames_bound, Missed(r.ratio(), r.target));
  }
  return text;
}

std::string SizeJson(const SizeReport& report) {
  std::string text = absl::StrFormat("{\"frame_parameters\": %d, \"frames\": %s", report.frame_parameters,
                                     FramesJson(report.frames));
  if (!report.real.rows.empty()) {
    absl::StrAppendFormat(
        &text,
        ", \"real_parameters\": %d, \"real_differences\": %d, \"real_judged\": %s, \"real_frames\": %s",
        report.real.parameters, report.real.frames, report.real.is_judged() ? "true" : "false",
        FramesJson(report.real.rows));
  }
  absl::StrAppendFormat(&text, ", \"update_parameters\": %d, \"updates\": [", report.update_parameters);
  const char* separator = "\n";
  for (const UpdateSizeRow& r : report.updates) {
    absl::StrAppendFormat(
        &text,
        "%s  {\"k\": %d, \"sites\": %d, \"weights\": \"%s\", \"averaging\": \"%s\", \"positions\": %.6g, "
        "\"names\": %.6g, \"literals\": %.6g, \"signs\": %.6g, \"rest\": %.6g, \"bytes\": %.6g, "
        "\"bound\": %.6g, \"ratio\": %.6g, \"target\": %.6g, \"frames_bound\": %.6g}",
        separator, r.k, r.sites, Weights(r), Convention(r), r.positions, r.names, r.literals, r.signs, r.rest,
        r.total(), r.bound.total(), r.ratio(), r.target, r.frames_bound);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

absl::Status CheckSizes(const SizeReport& report) {
  std::string missed;
  if (report.is_judged()) missed = FramesMissed("frame", report.frames);
  if (report.real.is_judged()) missed += FramesMissed("frame of real differences", report.real.rows);
  for (const UpdateSizeRow& r : report.updates) {
    if (r.ratio() <= r.target * kUpdateSlack) continue;
    absl::StrAppendFormat(&missed,
                          "; update of k=%d, %d sites, weights %s, %s: %.4f of the bound, %.2f wanted", r.k,
                          r.sites, Weights(r), Convention(r), r.ratio(), r.target);
  }
  if (missed.empty()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("bench codec: too large", missed));
}

}  // namespace isthmus
