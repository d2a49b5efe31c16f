#include "daemon/app/human_units.h"

#include <cmath>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace isthmus {
namespace {

// Three significant digits, `steps` thousands removed.
std::string Scaled(double value, int* steps) {
  *steps = 0;
  // 999.5 would print as "1000".
  while (std::abs(value) >= 999.5 && *steps < 5) {
    value /= 1000;
    ++*steps;
  }
  const double size = std::abs(value);
  if (*steps == 0 && value == std::floor(value)) return absl::StrFormat("%.0f", value);
  return absl::StrFormat("%.*f", size < 9.995 ? 2 : size < 99.95 ? 1 : 0, value);
}

}  // namespace

std::string HumanBytes(int64_t bytes) {
  static constexpr absl::string_view kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB"};
  int steps = 0;
  std::string digits = Scaled(static_cast<double>(bytes), &steps);
  return absl::StrCat(digits, " ", kUnits[steps]);
}

std::string HumanCount(double count) {
  if (!std::isfinite(count)) return "-";
  static constexpr absl::string_view kUnits[] = {"", "k", "M", "G", "T", "P"};
  int steps = 0;
  std::string digits = Scaled(count, &steps);
  return absl::StrCat(digits, kUnits[steps]);
}

std::string HumanSeconds(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  if (seconds < 9.995) return absl::StrFormat("%.2f s", seconds);
  if (seconds < 99.95) return absl::StrFormat("%.1f s", seconds);
  const int64_t whole = std::llround(seconds);
  if (whole < 3600) return absl::StrFormat("%dm %02ds", whole / 60, whole % 60);
  if (whole < 24 * 3600) return absl::StrFormat("%dh %02dm", whole / 3600, whole % 3600 / 60);
  return absl::StrFormat("%dd %02dh", whole / (24 * 3600), whole % (24 * 3600) / 3600);
}

std::string HumanLoss(double loss) {
  if (!std::isfinite(loss) || loss == 0) return "-";
  return absl::StrFormat("%.4f", loss);
}

std::string HumanShare(double part, double whole) {
  if (whole == 0 || !std::isfinite(part / whole)) return "-";
  return absl::StrFormat("%.1f %%", 100 * part / whole);
}

std::string ShortDigest(absl::string_view bytes) {
  return bytes.empty() ? "-" : absl::BytesToHexString(bytes.substr(0, 4));
}

std::string FullDigest(absl::string_view bytes) {
  return bytes.empty() ? "-" : absl::BytesToHexString(bytes);
}

}  // namespace isthmus
