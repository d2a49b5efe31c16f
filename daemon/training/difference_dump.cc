#include "daemon/training/difference_dump.h"

#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

constexpr char kIndexName[] = "index.txt";
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

// The words after "tensor". False when they say something else.
bool ReadTensor(absl::Span<const absl::string_view> words, DumpedTensor* tensor) {
  if (words.size() < 2) return false;
  tensor->name = std::string(words[0]);
  int64_t values = 1;
  for (absl::string_view word : words.subspan(1)) {
    int64_t side = 0;
    if (!absl::SimpleAtoi(word, &side) || side < 1 || side > kMostValues / values) return false;
    values *= side;
    tensor->shape.push_back(side);
  }
  return true;
}

// The words after "difference".
bool ReadDifference(absl::Span<const absl::string_view> words, DumpedDifference* one) {
  if (words.size() != 3) return false;
  one->file = std::string(words[2]);
  return absl::SimpleAtoi(words[0], &one->round) && absl::SimpleAtoi(words[1], &one->site) &&
         one->file.find('/') == std::string::npos;
}

bool ReadLine(const std::string& line, DifferenceSet* set) {
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
  const auto rest = absl::MakeSpan(words).subspan(1);
  if (words[0] == "tensor") return ReadTensor(rest, &set->tensors.emplace_back());
  return words[0] == "difference" && ReadDifference(rest, &set->differences.emplace_back());
}

Layout LayoutOf(const std::vector<DumpedTensor>& tensors) {
  std::vector<int64_t> sizes, row_lengths;
  for (const DumpedTensor& tensor : tensors) {
    int64_t values = 1;
    for (int64_t side : tensor.shape) values *= side;
    sizes.push_back(values);
    row_lengths.push_back(tensor.shape.size() < 2 ? 0 : values / tensor.shape[0]);
  }
  return Layout(sizes, 0, row_lengths);
}

}  // namespace

absl::StatusOr<DifferenceDump> DifferenceDump::Create(const std::string& folder, const TensorTable& table) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return absl::FailedPreconditionError(absl::StrCat("differences folder ", folder, ": ", error.message()));
  // Tried now, not after hours of training; and an earlier set's index does not speak for the files to come.
  const std::string index = PathIn(folder, kIndexName);
  if (const absl::Status s = WriteFile(index, ""); !s.ok()) return absl::FailedPreconditionError(s.message());
  std::filesystem::remove(index, error);
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
  std::string text;
  for (const DumpedTensor& t : set_.tensors) {
    absl::StrAppend(&text, "tensor ", t.name, " ", absl::StrJoin(t.shape, " "), "\n");
  }
  for (const DumpedDifference& d : set_.differences) {
    absl::StrAppend(&text, "difference ", d.round, " ", d.site, " ", d.file, "\n");
  }
  return WriteFile(PathIn(set_.folder, kIndexName), text);
}

absl::StatusOr<DifferenceSet> OpenDifferences(const std::string& folder) {
  DifferenceSet set;
  set.folder = folder;
  const std::string path = PathIn(folder, kIndexName);
  std::ifstream in(path);
  if (!in) return absl::NotFoundError(absl::StrCat(path, ": not there"));
  for (std::string line; std::getline(in, line);) {
    if (!ReadLine(line, &set)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": line \"", line, "\" means nothing"));
    }
  }
  if (set.tensors.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": no tensors"));
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
