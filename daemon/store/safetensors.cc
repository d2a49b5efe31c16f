#include "daemon/store/safetensors.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status.h"

namespace isthmus {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLengthBytes = 8;
constexpr size_t kMaxDimensions = 16;

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("safetensors file: ", what));
}

std::string Quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Bytes of one value; 0 for a type we do not know.
int64_t TypeBytes(absl::string_view type) {
  if (type == "F32" || type == "I32" || type == "U32") return 4;
  if (type == "F16" || type == "BF16" || type == "I16" || type == "U16") return 2;
  if (type == "F64" || type == "I64" || type == "U64") return 8;
  if (type == "I8" || type == "U8" || type == "BOOL" || type == "F8_E4M3" || type == "F8_E5M2") return 1;
  return 0;
}

// A whole number that fits int64, or nothing.
bool ReadCount(const Json& value, int64_t* out) {
  if (!value.is_number_unsigned()) return false;
  const uint64_t number = value.get<uint64_t>();
  if (number > static_cast<uint64_t>(INT64_MAX)) return false;
  *out = static_cast<int64_t>(number);
  return true;
}

absl::Status CheckSize(const SafetensorsTensor& tensor) {
  int64_t bytes = TypeBytes(tensor.type);
  if (bytes == 0) return Malformed(absl::StrCat("tensor ", tensor.name, " has unknown type ", tensor.type));
  for (int64_t n : tensor.shape) {
    if (__builtin_mul_overflow(bytes, n, &bytes)) {
      return Malformed(absl::StrCat("tensor ", tensor.name, " has an impossible shape"));
    }
  }
  if (tensor.end - tensor.begin != bytes) {
    return Malformed(absl::StrCat("tensor ", tensor.name, " of shape [", absl::StrJoin(tensor.shape, ","),
                                  "] needs ", bytes, " bytes and has ", tensor.end - tensor.begin));
  }
  return absl::OkStatus();
}

absl::StatusOr<SafetensorsTensor> ReadTensor(const std::string& name, const Json& entry) {
  SafetensorsTensor tensor;
  tensor.name = name;
  const auto bad = [&](absl::string_view what) {
    return Malformed(absl::StrCat("tensor ", name, " has no usable ", what));
  };
  if (!entry.is_object()) return bad("description");
  const auto type = entry.find("dtype");
  if (type == entry.end() || !type->is_string()) return bad("dtype");
  tensor.type = type->get<std::string>();
  const auto shape = entry.find("shape");
  if (shape == entry.end() || !shape->is_array() || shape->size() > kMaxDimensions) return bad("shape");
  for (const Json& item : *shape) {
    int64_t n = 0;
    if (!ReadCount(item, &n)) return bad("shape");
    tensor.shape.push_back(n);
  }
  const auto place = entry.find("data_offsets");
  if (place == entry.end() || !place->is_array() || place->size() != 2 ||
      !ReadCount((*place)[0], &tensor.begin) || !ReadCount((*place)[1], &tensor.end) ||
      tensor.end < tensor.begin) {
    return bad("data_offsets");
  }
  ISTHMUS_RETURN_IF_ERROR(CheckSize(tensor));
  return tensor;
}

absl::Status ReadMetadata(const Json& entry, std::map<std::string, std::string>* out) {
  if (!entry.is_object()) return Malformed("__metadata__ is not an object");
  for (auto it = entry.begin(); it != entry.end(); ++it) {
    if (!it->is_string()) return Malformed(absl::StrCat("metadata ", it.key(), " is not a text"));
    (*out)[it.key()] = it->get<std::string>();
  }
  return absl::OkStatus();
}

// Every byte of the data belongs to exactly one tensor.
absl::Status CheckCover(SafetensorsHeader* header, int64_t data_bytes) {
  std::sort(header->tensors.begin(), header->tensors.end(),
            [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
              return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
            });
  int64_t at = 0;
  for (const SafetensorsTensor& tensor : header->tensors) {
    if (tensor.begin != at) {
      return Malformed(absl::StrCat("tensor ", tensor.name, " starts at ", tensor.begin, ", expected ", at));
    }
    at = tensor.end;
  }
  if (at != data_bytes) return Malformed(absl::StrCat("tensors fill ", at, " of ", data_bytes, " bytes"));
  return absl::OkStatus();
}

}  // namespace

std::string EncodeSafetensorsHeader(const std::map<std::string, std::string>& metadata,
                                    const std::vector<SafetensorsTensor>& tensors) {
  std::string json = "{\"__metadata__\":{";
  absl::StrAppend(&json,
                  absl::StrJoin(metadata, ",",
                                [](std::string* out, const std::pair<const std::string, std::string>& item) {
                                  absl::StrAppend(out, Quoted(item.first), ":", Quoted(item.second));
                                }),
                  "}");
  for (const SafetensorsTensor& t : tensors) {
    absl::StrAppend(&json, ",", Quoted(t.name), ":{\"dtype\":", Quoted(t.type), ",\"shape\":[",
                    absl::StrJoin(t.shape, ","), "],\"data_offsets\":[", t.begin, ",", t.end, "]}");
  }
  json += "}";
  // Spaces up to a multiple of eight, so that the data lies aligned when the file is mapped.
  json.append((kLengthBytes - json.size() % kLengthBytes) % kLengthBytes, ' ');
  std::string out;
  for (int i = 0; i < kLengthBytes; ++i) out.push_back(static_cast<char>(json.size() >> (8 * i)));
  return out + json;
}

absl::StatusOr<SafetensorsHeader> ReadSafetensorsHeader(const BlobSource& file, int64_t limit_bytes) {
  if (file.size() < kLengthBytes) return Malformed(absl::StrCat("only ", file.size(), " bytes"));
  ISTHMUS_ASSIGN_OR_RETURN(const std::string length_bytes, file.Read(0, kLengthBytes));
  if (length_bytes.size() != kLengthBytes) return Malformed("truncated");
  uint64_t length = 0;
  for (int i = kLengthBytes - 1; i >= 0; --i) {
    length = length << 8 | static_cast<unsigned char>(length_bytes[i]);
  }
  const int64_t most = std::min(limit_bytes, file.size() - kLengthBytes);
  if (length > static_cast<uint64_t>(most)) {
    return Malformed(absl::StrCat("header of ", length, " bytes, at most ", most, " possible"));
  }
  ISTHMUS_ASSIGN_OR_RETURN(const std::string text, file.Read(kLengthBytes, static_cast<int64_t>(length)));
  if (text.size() != length) return Malformed("truncated header");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return Malformed("header is not a JSON object");

  SafetensorsHeader header;
  header.data_offset = kLengthBytes + static_cast<int64_t>(length);
  for (auto it = json.begin(); it != json.end(); ++it) {
    if (it.key() == "__metadata__") {
      ISTHMUS_RETURN_IF_ERROR(ReadMetadata(*it, &header.metadata));
      continue;
    }
    ISTHMUS_ASSIGN_OR_RETURN(SafetensorsTensor tensor, ReadTensor(it.key(), *it));
    header.tensors.push_back(std::move(tensor));
  }
  ISTHMUS_RETURN_IF_ERROR(CheckCover(&header, file.size() - header.data_offset));
  return header;
}

}  // namespace isthmus
