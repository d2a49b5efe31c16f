#include "daemon/training/difference_dump.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kIndexName[] = "index.json";
constexpr int64_t kMostValues = int64_t{1} << 40;

std::string PathIn(const std::string& folder, const std::string& file) {
  return absl::StrCat(folder, "/", file);
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (!out) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return absl::OkStatus();
}

// False when something in the index is missing or of the wrong kind.
bool ReadTensor(const Json& json, DumpedTensor* tensor) {
  if (!json.is_object() || !json.contains("name") || !json["name"].is_string()) return false;
  if (!json.contains("shape") || !json["shape"].is_array() || json["shape"].empty()) return false;
  tensor->name = json["name"].get<std::string>();
  int64_t values = 1;
  for (const Json& side : json["shape"]) {
    if (!side.is_number_integer()) return false;
    const int64_t size = side.get<int64_t>();
    if (size < 1 || size > kMostValues / values) return false;
    values *= size;
    tensor->shape.push_back(size);
  }
  return true;
}

bool ReadDifference(const Json& json, DumpedDifference* one) {
  for (const char* field : {"round", "site"}) {
    if (!json.is_object() || !json.contains(field) || !json[field].is_number_integer()) return false;
  }
  if (!json.contains("file") || !json["file"].is_string()) return false;
  one->round = json["round"].get<int64_t>();
  one->site = json["site"].get<int64_t>();
  one->file = json["file"].get<std::string>();
  return one->file.find('/') == std::string::npos;
}

bool ReadIndex(const Json& json, DifferenceSet* set) {
  for (const char* field : {"tensors", "differences"}) {
    if (!json.is_object() || !json.contains(field) || !json[field].is_array()) return false;
  }
  for (const Json& entry : json["tensors"]) {
    set->tensors.emplace_back();
    if (!ReadTensor(entry, &set->tensors.back())) return false;
  }
  for (const Json& entry : json["differences"]) {
    set->differences.emplace_back();
    if (!ReadDifference(entry, &set->differences.back())) return false;
  }
  return !set->tensors.empty();
}

Layout LayoutOf(const std::vector<DumpedTensor>& tensors) {
  std::vector<int64_t> sizes;
  for (const DumpedTensor& tensor : tensors) {
    int64_t values = 1;
    for (int64_t side : tensor.shape) values *= side;
    sizes.push_back(values);
  }
  return Layout(sizes, 0);
}

}  // namespace

absl::StatusOr<DifferenceDump> DifferenceDump::Create(const std::string& folder, const TensorTable& table) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  DifferenceDump dump;
  dump.set_.folder = folder;
  for (const TensorInfo& tensor : table.tensors()) dump.set_.tensors.push_back({tensor.name, tensor.shape});
  return dump;
}

absl::Status DifferenceDump::Add(int64_t round, int64_t site, absl::Span<const float> difference) {
  const std::string file = absl::StrCat("round-", round, "-site-", site, ".f32");
  const absl::string_view bytes(reinterpret_cast<const char*>(difference.data()),
                                difference.size() * sizeof(float));
  ISTHMUS_RETURN_IF_ERROR(WriteFile(PathIn(set_.folder, file), bytes));
  set_.differences.push_back({round, site, file});
  return absl::OkStatus();
}

absl::Status DifferenceDump::Finish() const {
  Json json;
  json["tensors"] = Json::array();
  for (const DumpedTensor& t : set_.tensors)
    json["tensors"].push_back({{"name", t.name}, {"shape", t.shape}});
  json["differences"] = Json::array();
  for (const DumpedDifference& d : set_.differences) {
    json["differences"].push_back({{"round", d.round}, {"site", d.site}, {"file", d.file}});
  }
  return WriteFile(PathIn(set_.folder, kIndexName), absl::StrCat(json.dump(1), "\n"));
}

absl::StatusOr<DifferenceSet> OpenDifferences(const std::string& folder) {
  DifferenceSet set;
  set.folder = folder;
  const std::string path = PathIn(folder, kIndexName);
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": not there"));
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!ReadIndex(json, &set))
    return absl::InvalidArgumentError(absl::StrCat(path, ": not an index of differences"));
  set.layout = LayoutOf(set.tensors);
  return set;
}

absl::StatusOr<std::vector<float>> LoadDifference(const DifferenceSet& set, const DumpedDifference& one) {
  const std::string path = PathIn(set.folder, one.file);
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  const uintmax_t expected = static_cast<uintmax_t>(set.layout.total()) * sizeof(float);
  if (error || size != expected) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": ", error ? error.message() : absl::StrCat(size, " bytes, not ", expected)));
  }
  std::vector<float> values(set.layout.total());
  std::ifstream in(path, std::ios::binary);
  in.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(expected));
  if (!in) return absl::InvalidArgumentError(absl::StrCat(path, ": cannot be read"));
  return values;
}

}  // namespace isthmus
