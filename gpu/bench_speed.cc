#include "gpu/bench_speed.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/types/span.h"
#include "compression/checked_frame.h"
#include "compression/codec.h"
#include "compression/simd_path.h"
#include "compression/update.h"
#include "gpu/bench_data.h"
#include "gpu/bench_dense.h"
#include "gpu/bench_update.h"
#include "gpu/device_ops.h"
#include "gpu/memory_speed.h"

namespace isthmus {
namespace {

constexpr int kKept = 64;
constexpr const char* kSpec = "topk(k=64)";
constexpr const char* kStoredSpec = "topk(k=64)|zstd(0)";  // 8 % longer, and nothing to unpack
constexpr int kSites = 16;

// How much may be missing from a target: noise of a busy machine.
constexpr double kSlack = 0.9;

class SpeedBench {
 public:
  SpeedBench(const CodecBenchOptions& options, int threads)
      : options_(options),
        threads_(threads),
        layout_(BenchLayout(options.parameters)),
        anchor_(options.parameters),
        parameters_(BenchDifferences(options.parameters, options.seed)),
        copy_(options.parameters),
        ops_(MakeCpuDeviceOps()) {}

  absl::StatusOr<SpeedReport> Run() {
    SpeedReport report;
    report.parameters = options_.parameters;
    report.threads = threads_;
    const double one_thread[] = {0, 0.30, 0.45};  // by path
    const double all_threads[] = {0, 0, 0.75};
    for (SimdPath path : kAllSimdPaths) {
      for (int threads : threads_ == 1 ? std::vector<int>{1} : std::vector<int>{1, threads_}) {
        const size_t p = static_cast<size_t>(path);
        report.rows.push_back(Encode(path, threads, threads == 1 ? one_thread[p] : all_threads[p]));
      }
    }
    report.rows.push_back(EncodeBesideCopy());
    absl::StatusOr<std::vector<SpeedRow>> dense =
        DenseSpeedRows(options_, layout_, anchor_, parameters_, absl::MakeSpan(copy_));
    if (!dense.ok()) return dense.status();
    for (SpeedRow& row : *dense) report.rows.push_back(std::move(row));
    for (SimdPath path : kAllSimdPaths) report.rows.push_back(EncodeResidual(path));
    if (options_.framework_top_k) report.rows.push_back(EncodeBesideFramework());
    if (absl::Status s = MakeFrames(kStoredSpec); !s.ok()) return s;
    report.rows.push_back(DecodeSumApply(kStoredSpec, ", zstd(0)", BestSimdPath(), false, 0));
    if (absl::Status s = MakeFrames(kSpec); !s.ok()) return s;
    for (SimdPath path : kAllSimdPaths)
      report.rows.push_back(DecodeSumApply(kSpec, "", path, false, path == SimdPath::kAvx512 ? 0.5 : 0));
    report.rows.push_back(DecodeSumApply(kSpec, ", update", BestSimdPath(), true, 0));
    if (!status_.ok()) return status_;
    absl::StatusOr<std::vector<SpeedRow>> updates =
        UpdateSpeedRows(options_, layout_, checked_, absl::MakeSpan(copy_));
    if (!updates.ok()) return updates.status();
    for (SpeedRow& row : *updates) report.rows.push_back(std::move(row));
    return report;
  }

 private:
  // Both in turn, the best of each.
  template <typename Work, typename Against>
  void Measure(Work work, Against against, SpeedRow* row) {
    MeasureSpeed(options_, static_cast<double>(sizeof(float) * parameters_.size()), work, against, row);
  }

  static std::unique_ptr<Codec> MakeCodec(SimdPath path, int threads, const char* spec = kSpec) {
    return std::move(ParseCodecSpec(spec, {threads, path})).value();
  }

  void EncodeOnce(const Codec& codec) {
    status_.Update(ops_->Encode(codec, layout_, anchor_, parameters_).status());
  }

  SpeedRow Encode(SimdPath path, int threads, double target) {
    SpeedRow row{"encode", SimdPathName(path), threads, "read and add two arrays"};
    row.target = target;
    if (!HasSimdPath(path)) return row;
    const std::unique_ptr<Codec> codec = MakeCodec(path, threads);
    volatile float kept_alive;
    Measure([&] { EncodeOnce(*codec); }, [&] { kept_alive = ReadAndAdd(anchor_, parameters_, threads); },
            &row);
    (void)kept_alive;
    return row;
  }

  SpeedRow EncodeBesideCopy() {
    SpeedRow row{"encode", SimdPathName(BestSimdPath()), 1, "memcpy"};
    const std::unique_ptr<Codec> codec = MakeCodec(BestSimdPath(), 1);
    Measure([&] { EncodeOnce(*codec); },
            [&] { std::memcpy(copy_.data(), parameters_.data(), sizeof(float) * copy_.size()); }, &row);
    return row;
  }

  SpeedRow EncodeResidual(SimdPath path) {
    SpeedRow row{"encode, separate residual", SimdPathName(path), 1, "memcpy"};
    row.target = path == BestSimdPath() && path != SimdPath::kPortable ? 0.40 : 0;
    if (!HasSimdPath(path)) return row;
    const std::unique_ptr<Codec> codec = MakeCodec(path, 1);
    // About what many rounds leave: somewhat larger than one round's differences.
    std::vector<float> before = BenchDifferences(options_.parameters, options_.seed + 100);
    std::vector<float> left(before.size());
    Measure(
        [&] {
          status_.Update(
              codec->EncodeResidualTo(layout_, anchor_, parameters_, 0.95f, before, absl::MakeSpan(left))
                  .status());
          before.swap(left);
        },
        [&] { std::memcpy(copy_.data(), parameters_.data(), sizeof(float) * copy_.size()); }, &row);
    return row;
  }

  SpeedRow EncodeBesideFramework() {
    SpeedRow row{"encode", SimdPathName(BestSimdPath()), 1, "libtorch topk"};
    row.target = 10;
    const size_t whole = parameters_.size() / kBlockValues * kBlockValues;
    const std::unique_ptr<Codec> codec = MakeCodec(BestSimdPath(), 1);
    Measure([&] { EncodeOnce(*codec); },
            [&] {
              status_.Update(options_.framework_top_k(absl::MakeConstSpan(anchor_).first(whole),
                                                      absl::MakeConstSpan(parameters_).first(whole), kKept));
            },
            &row);
    return row;
  }

  absl::Status MakeFrames(const char* spec) {
    const std::unique_ptr<Codec> codec = MakeCodec(BestSimdPath(), threads_, spec);
    frames_.clear();
    for (int site = 0; site < kSites; ++site) {
      const std::vector<float> theirs = BenchDifferences(options_.parameters, options_.seed + 1 + site);
      absl::StatusOr<std::string> frame = codec->Encode(layout_, anchor_, theirs);
      if (!frame.ok()) return frame.status();
      frames_.push_back(*std::move(frame));
    }
    return absl::OkStatus();
  }

  // All a hub does with a round's frames: opens and checks them, sums, moves the anchor. The frames' memory
  // is that of the round before.
  absl::Status DecodeSumApplyOnce(const Codec& codec, Update* update) {
    std::vector<WeightedFrame> weighted;
    for (size_t i = 0; i < frames_.size(); ++i) {
      if (absl::Status s = codec.Check(layout_, frames_[i], &checked_[i]); !s.ok()) return s;
      weighted.push_back({nullptr, 64, {}, &checked_[i]});
    }
    return ops_->SumAndApply(layout_, weighted, Averaging::kPeers, OuterStep(), absl::MakeSpan(copy_),
                             absl::Span<float>(), update);
  }

  SpeedRow DecodeSumApply(const char* spec, const char* how, SimdPath path, bool makes_update,
                          double target) {
    SpeedRow row{absl::StrCat("decode, sum of ", kSites, ", apply", how), SimdPathName(path), 1,
                 "read and write in place"};
    row.target = target;
    if (!HasSimdPath(path)) return row;
    const std::unique_ptr<Codec> codec = MakeCodec(path, 1, spec);
    ops_ = MakeCpuDeviceOpsWith({1, path});
    Update update;
    Measure([&] { status_.Update(DecodeSumApplyOnce(*codec, makes_update ? &update : nullptr)); },
            [&] { ReadAndWriteInPlace(absl::MakeSpan(copy_)); }, &row);
    return row;
  }

  const CodecBenchOptions& options_;
  const int threads_;
  const Layout layout_;
  const std::vector<float> anchor_, parameters_;
  std::vector<float> copy_;
  std::vector<std::string> frames_;
  CheckedFrame checked_[kSites];
  std::unique_ptr<DeviceOps> ops_;
  absl::Status status_;
};

std::string Reading(const SpeedRow& row) {
  if (!row.is_measured()) return "this processor lacks it";
  const std::string target = row.target > 0 ? absl::StrFormat("%.2f", row.target) : "-";
  const char* missed = row.ratio() < row.target ? "  missed" : "";
  return absl::StrFormat("%7.2f %8.2f %7.2f %7s%s", row.gb_per_second, row.against_gb_per_second, row.ratio(),
                         target, missed);
}

}  // namespace

absl::StatusOr<SpeedReport> RunSpeedBench(const CodecBenchOptions& options, int threads) {
  if (!options.now) return absl::InvalidArgumentError("bench codec: no clock");
  if (options.parameters < kBlockValues) {
    return absl::InvalidArgumentError(absl::StrCat("bench codec: ", options.parameters,
                                                   " parameters, at least ", kBlockValues, " are needed"));
  }
  return std::make_unique<SpeedBench>(options, std::max(1, threads))->Run();
}

std::string SpeedTable(const SpeedReport& report) {
  std::string text = absl::StrFormat(
      "speed of topk(k=64)|levels(bits=1), where nothing else is said, over %d parameters; GB of one fp32 "
      "array per second, and the "
      "ratio\n"
      "%-34s %-9s %7s  %-24s %7s %8s %7s %7s\n",
      report.parameters, "work", "path", "threads", "against", "GB/s", "against", "ratio", "target");
  for (const SpeedRow& r : report.rows) {
    absl::StrAppendFormat(&text, "%-34s %-9s %7d  %-24s %s\n", r.work, r.path, r.threads, r.against,
                          Reading(r));
  }
  return text;
}

std::string SpeedJson(const SpeedReport& report) {
  std::string text = absl::StrFormat("{\"parameters\": %d, \"threads\": %d, \"speed\": [", report.parameters,
                                     report.threads);
  const char* separator = "\n";
  for (const SpeedRow& r : report.rows) {
    // The names hold no character JSON would have to escape.
    absl::StrAppendFormat(&text,
                          "%s  {\"work\": \"%s\", \"path\": \"%s\", \"threads\": %d, \"against\": \"%s\", "
                          "\"gb_per_second\": %.6g, \"against_gb_per_second\": %.6g, \"ratio\": %.6g, "
                          "\"target\": %.6g}",
                          separator, r.work, r.path, r.threads, r.against, r.gb_per_second,
                          r.against_gb_per_second, r.ratio(), r.target);
    separator = ",\n";
  }
  return text + "\n]}\n";
}

absl::Status CheckSpeed(const SpeedReport& report) {
  std::string missed;
  for (const SpeedRow& r : report.rows) {
    if (!r.is_measured() || r.ratio() >= kSlack * r.target) continue;
    absl::StrAppendFormat(&missed, "; %s (%s, %d threads): %.2f of %s, %.2f wanted", r.work, r.path,
                          r.threads, r.ratio(), r.against, r.target);
  }
  if (missed.empty()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat("bench codec: too slow", missed));
}

}  // namespace isthmus
