#include "daemon/app/loss_curve_svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "daemon/app/human_units.h"

namespace isthmus {
namespace {

constexpr double kWidth = 800, kHeight = 440;
constexpr double kLeft = 64, kRight = 24, kTop = 48, kBottom = 56;

struct Point {
  double tokens = 0, loss = 0;
};

struct Curves {
  std::vector<Point> training, held_out;
};

Curves Collect(const RunStatus& status) {
  Curves curves;
  if (status.held_out_loss_start() > 0) curves.held_out.push_back({0, status.held_out_loss_start()});
  double tokens = 0;
  for (const CommitSummary& commit : status.commits()) {
    tokens += static_cast<double>(commit.tokens());
    if (std::isfinite(commit.training_loss()) && commit.training_loss() > 0) {
      curves.training.push_back({tokens, commit.training_loss()});
    }
    if (commit.held_out_tokens() > 0 && std::isfinite(commit.held_out_loss())) {
      curves.held_out.push_back({tokens, commit.held_out_loss()});
    }
  }
  return curves;
}

// 1, 2 or 5 times a power of ten, so that about `count` steps span `range`.
double NiceStep(double range, int count) {
  const double rough = range / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10 * power;
}

// Maps losses and tokens to the drawing.
struct Frame {
  double tokens_end, low, high;

  double X(double tokens) const { return kLeft + (kWidth - kLeft - kRight) * tokens / tokens_end; }
  double Y(double loss) const { return kTop + (kHeight - kTop - kBottom) * (high - loss) / (high - low); }
};

std::string Escape(absl::string_view text) {
  return absl::StrReplaceAll(text, {{"&", "&amp;"}, {"<", "&lt;"}, {">", "&gt;"}, {"\"", "&quot;"}});
}

std::string Text(double x, double y, absl::string_view anchor, absl::string_view text) {
  return absl::StrFormat("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x, y, anchor,
                         Escape(text));
}

std::string Line(const Frame& frame, const std::vector<Point>& points, absl::string_view style) {
  if (points.empty()) return "";
  std::string text = absl::StrCat("<polyline fill=\"none\" ", style, " points=\"");
  for (size_t i = 0; i < points.size(); ++i) {
    absl::StrAppendFormat(&text, "%s%.1f,%.1f", i == 0 ? "" : " ", frame.X(points[i].tokens),
                          frame.Y(points[i].loss));
  }
  return absl::StrCat(text, "\"/>\n");
}

std::string Axes(const Frame& frame) {
  std::string text;
  const double loss_step = NiceStep(frame.high - frame.low, 6);
  for (double loss = std::ceil(frame.low / loss_step) * loss_step; loss <= frame.high + 1e-9;
       loss += loss_step) {
    const double y = frame.Y(loss);
    absl::StrAppendFormat(&text, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                          kLeft, y, kWidth - kRight, y);
    absl::StrAppend(&text, Text(kLeft - 8, y + 4, "end", absl::StrFormat("%.4g", loss)));
  }
  const double token_step = NiceStep(frame.tokens_end, 8);
  for (double tokens = 0; tokens <= frame.tokens_end * (1 + 1e-9); tokens += token_step) {
    const double x = frame.X(tokens);
    absl::StrAppendFormat(&text, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#eee\"/>\n",
                          x, kTop, x, kHeight - kBottom);
    absl::StrAppend(&text, Text(x, kHeight - kBottom + 18, "middle", HumanCount(tokens)));
  }
  absl::StrAppend(&text, Text((kLeft + kWidth - kRight) / 2, kHeight - 14, "middle",
                              "tokens in committed contributions"));
  absl::StrAppendFormat(
      &text, "<text transform=\"translate(18,%.1f) rotate(-90)\" text-anchor=\"middle\">%s</text>\n",
      (kTop + kHeight - kBottom) / 2, "loss, nats per token");
  return text;
}

}  // namespace

std::string LossCurveSvg(const RunStatus& status) {
  std::string text = absl::StrFormat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
      "fill=\"white\"/>\n",
      kWidth, kHeight, kWidth, kHeight);
  absl::StrAppend(&text, Text(kLeft, 20, "start",
                              absl::StrCat(status.run_name(), ": ", status.commits_size(), " rounds")));
  const Curves curves = Collect(status);
  Frame frame{0, std::numeric_limits<double>::infinity(), 0};
  for (const auto* points : {&curves.training, &curves.held_out}) {
    for (const Point& point : *points) {
      frame.tokens_end = std::max(frame.tokens_end, point.tokens);
      frame.low = std::min(frame.low, point.loss);
      frame.high = std::max(frame.high, point.loss);
    }
  }
  if (status.commits_size() < 2 || frame.tokens_end <= 0 || frame.high <= frame.low) {
    return absl::StrCat(text, Text(kWidth / 2, kHeight / 2, "middle", "too few rounds for a curve"),
                        "</svg>\n");
  }
  const double margin = 0.05 * (frame.high - frame.low);
  frame.low -= margin;
  frame.high += margin;
  absl::StrAppend(&text, Axes(frame));
  static constexpr absl::string_view kTraining = "stroke=\"#8aa4c8\" stroke-width=\"1.5\"";
  static constexpr absl::string_view kHeldOut = "stroke=\"#c0392b\" stroke-width=\"2\"";
  absl::StrAppend(&text, Line(frame, curves.training, kTraining), Line(frame, curves.held_out, kHeldOut));
  absl::StrAppend(&text, "<line x1=\"520\" y1=\"32\" x2=\"544\" y2=\"32\" ", kTraining, "/>\n",
                  Text(550, 36, "start", "training"));
  absl::StrAppend(&text, "<line x1=\"640\" y1=\"32\" x2=\"664\" y2=\"32\" ", kHeldOut, "/>\n",
                  Text(670, 36, "start", "held-out"));
  return absl::StrCat(text, "</svg>\n");
}

}  // namespace isthmus
