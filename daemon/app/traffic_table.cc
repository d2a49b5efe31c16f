#include "daemon/app/traffic_table.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/app/human_units.h"
#include "daemon/app/text_table.h"

namespace isthmus {
namespace {

std::string NameOf(TrafficBytes::Kind kind) {
  switch (kind) {
    case TrafficBytes::CONTROL:
      return "control";
    case TrafficBytes::CONTRIBUTION:
      return "contribution";
    case TrafficBytes::UPDATE:
      return "update";
    case TrafficBytes::SNAPSHOT:
      return "snapshot";
    case TrafficBytes::ACTIVATION:
      return "activation";
    case TrafficBytes::ACTIVATION_GRADIENT:
      return "activation gradient";
    default:
      return "unknown";
  }
}

std::string PerParameter(int64_t bytes, double parameters) {
  return bytes > 0 && parameters > 0 ? absl::StrFormat("%.4f", static_cast<double>(bytes) / parameters) : "-";
}

}  // namespace

std::string TrafficLine(const RunStatus& status) {
  std::vector<std::string> parts;
  for (const TrafficBytes& row : status.traffic()) {
    const std::string up = row.bytes_up() > 0 ? absl::StrCat(" ", HumanBytes(row.bytes_up()), " up") : "";
    const std::string down =
        row.bytes_down() > 0 ? absl::StrCat(" ", HumanBytes(row.bytes_down()), " down") : "";
    if (up.empty() && down.empty()) continue;
    parts.push_back(absl::StrCat(NameOf(row.kind()), up, up.empty() || down.empty() ? "" : ",", down));
  }
  return parts.empty() ? "nothing yet" : absl::StrJoin(parts, "; ");
}

std::string ResidualLine(const RunStatus& status) {
  if (!status.is_update_recompressed()) return "";
  std::string codec;
  for (const TrafficBytes& row : status.traffic()) {
    if (row.kind() == TrafficBytes::UPDATE) codec = row.codec();
  }
  std::string text = absl::StrFormat("norm %.4g, updates encoded anew by %s", status.residual_norm(), codec);
  if (status.residual_forfeited_square_sum() > 0) {
    absl::StrAppendFormat(&text, "; sum of squares %.4g forfeited at restarts",
                          status.residual_forfeited_square_sum());
  }
  return text;
}

std::string TrafficTable(const RunStatus& status) {
  TextTable table({"<traffic", "<codec", "up", "down", "B/param up", "B/param down"});
  double contributions = 0, expected = 0;
  for (const CommitSummary& commit : status.commits()) {
    contributions += static_cast<double>(commit.included());
    expected += static_cast<double>(commit.expected());
  }
  const double parameters = static_cast<double>(status.parameters());
  int64_t up = 0, down = 0;
  const auto add = [&](const std::string& name, const std::string& codec, int64_t row_up, int64_t row_down) {
    table.AddRow({name, codec, HumanBytes(row_up), HumanBytes(row_down),
                  PerParameter(row_up, parameters * contributions),
                  PerParameter(row_down, parameters * expected)});
  };
  for (const TrafficBytes& row : status.traffic()) {
    up += row.bytes_up();
    down += row.bytes_down();
    add(NameOf(row.kind()), row.codec().empty() ? "-" : row.codec(), row.bytes_up(), row.bytes_down());
  }
  if (status.bytes_in() >= up && status.bytes_out() >= down) {
    add("added by the transport", "-", status.bytes_in() - up, status.bytes_out() - down);
  }
  const std::string residual = ResidualLine(status);
  return absl::StrCat(table.ToString(),
                      residual.empty() ? "" : absl::StrCat("the hub carries: ", residual, "\n"));
}

}  // namespace isthmus
