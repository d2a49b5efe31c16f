#include "daemon/store/snapshot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status.h"
#include "daemon/store/blobs.h"
#include "daemon/store/safetensors.h"

namespace isthmus {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file's values are little-endian");

constexpr char kMomentumPrefix[] = "momentum.";
constexpr char kSnapshotVersion[] = "1";
constexpr int64_t kPieceBytes = 4 << 20;
using Metadata = std::map<std::string, std::string>;

std::string LayoutText(const TensorTable& table) { return absl::StrFormat("%016x", table.layout().digest()); }

Metadata SnapshotMetadata(const TensorTable& table, const SnapshotInfo& info) {
  return {{"format", "pt"},
          {"isthmus_snapshot", kSnapshotVersion},
          {"layout_digest", LayoutText(table)},
          {"round", absl::StrCat(info.round())},
          {"schedule_step", absl::StrCat(info.schedule_step())},
          {"outer_rate_bits", absl::StrCat(info.outer_rate_bits())},
          {"outer_momentum_bits", absl::StrCat(info.outer_momentum_bits())},
          {"state_digest", absl::BytesToHexString(info.state_digest())}};
}

std::string Header(const TensorTable& table, const Metadata& metadata, bool has_momentum) {
  std::vector<SafetensorsTensor> tensors;
  int64_t at = 0;
  for (const std::string& prefix : {std::string(), std::string(kMomentumPrefix)}) {
    if (!prefix.empty() && !has_momentum) break;
    for (const TensorInfo& info : table.tensors()) {
      const int64_t bytes = info.values() * static_cast<int64_t>(sizeof(float));
      tensors.push_back({prefix + info.name, "F32", info.shape, at, at + bytes});
      at += bytes;
    }
  }
  return EncodeSafetensorsHeader(metadata, tensors);
}

absl::Status CheckFit(const TensorTable& table, const SnapshotValues& values) {
  const int64_t total = table.layout().total();
  if (static_cast<int64_t>(values.anchor.size()) != total) {
    return absl::InvalidArgumentError(
        absl::StrCat("anchor of ", values.anchor.size(), " values for a model of ", total));
  }
  if (!values.momentum.empty() && static_cast<int64_t>(values.momentum.size()) != total) {
    return absl::InvalidArgumentError(
        absl::StrCat("outer momentum of ", values.momentum.size(), " values for a model of ", total));
  }
  return absl::OkStatus();
}

absl::Status WriteValues(absl::Span<const float> values, const ByteSink& sink) {
  absl::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  while (!bytes.empty()) {
    ISTHMUS_RETURN_IF_ERROR(sink(bytes.substr(0, kPieceBytes)));
    bytes.remove_prefix(std::min<size_t>(bytes.size(), kPieceBytes));
  }
  return absl::OkStatus();
}

// Headers we write for this table are far below this; anything longer is not ours.
int64_t HeaderLimit(const TensorTable& table) {
  int64_t bytes = 1 << 16;
  for (const TensorInfo& info : table.tensors()) {
    bytes += 2 * (static_cast<int64_t>(info.name.size()) * 6 + 128 + 24 * info.shape.size());
  }
  return std::min(bytes, kSafetensorsHeaderLimitBytes);
}

template <typename Number>
absl::Status ReadNumber(const Metadata& metadata, const std::string& key, Number* out) {
  const auto it = metadata.find(key);
  if (it == metadata.end() || !absl::SimpleAtoi(it->second, out)) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot has no usable \"", key, "\" in its metadata"));
  }
  return absl::OkStatus();
}

// The hexadecimal digits of a digest as bytes; absl's own conversion trusts its input.
absl::StatusOr<std::string> DigestBytes(const std::string& hex) {
  const bool is_hex = std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit);
  if (!is_hex || (hex.size() != 32 && !hex.empty())) {
    return absl::InvalidArgumentError("snapshot has no usable \"state_digest\" in its metadata");
  }
  return absl::HexStringToBytes(hex);
}

absl::StatusOr<SnapshotInfo> ReadInfo(const TensorTable& table, const Metadata& metadata) {
  const auto text = [&](const char* key) {
    const auto it = metadata.find(key);
    return it == metadata.end() ? std::string() : it->second;
  };
  if (text("isthmus_snapshot") != kSnapshotVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a snapshot of version ", kSnapshotVersion, ": \"", text("isthmus_snapshot"), "\""));
  }
  if (text("layout_digest") != LayoutText(table)) {
    return absl::InvalidArgumentError(absl::StrCat("snapshot of another model: layout_digest ",
                                                   text("layout_digest"), ", ours is ", LayoutText(table)));
  }
  int64_t round = 0, step = 0;
  uint32_t rate = 0, momentum = 0;
  ISTHMUS_RETURN_IF_ERROR(ReadNumber(metadata, "round", &round));
  ISTHMUS_RETURN_IF_ERROR(ReadNumber(metadata, "schedule_step", &step));
  ISTHMUS_RETURN_IF_ERROR(ReadNumber(metadata, "outer_rate_bits", &rate));
  ISTHMUS_RETURN_IF_ERROR(ReadNumber(metadata, "outer_momentum_bits", &momentum));
  ISTHMUS_ASSIGN_OR_RETURN(const std::string digest, DigestBytes(text("state_digest")));
  SnapshotInfo info;
  info.set_round(round);
  info.set_schedule_step(step);
  info.set_outer_rate_bits(rate);
  info.set_outer_momentum_bits(momentum);
  info.set_state_digest(digest);
  return info;
}

using ByName = std::map<absl::string_view, const SafetensorsTensor*>;

ByName IndexOf(const SafetensorsHeader& header) {
  ByName index;
  for (const SafetensorsTensor& tensor : header.tensors) index[tensor.name] = &tensor;
  return index;
}

// The tensor called `name`, once it has the shape and one of the types wanted.
absl::StatusOr<const SafetensorsTensor*> FindTensor(const ByName& index, const std::string& name,
                                                    const std::vector<int64_t>& shape, bool may_be_bf16) {
  const auto it = index.find(name);
  if (it == index.end()) return absl::InvalidArgumentError(absl::StrCat("tensor ", name, " is missing"));
  const SafetensorsTensor& tensor = *it->second;
  if (tensor.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat("tensor ", name, " has shape [",
                                                   absl::StrJoin(tensor.shape, ","), "], the model wants [",
                                                   absl::StrJoin(shape, ","), "]"));
  }
  if (tensor.type != "F32" && !(may_be_bf16 && tensor.type == "BF16")) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor ", name, " has type ", tensor.type,
                     may_be_bf16 ? ", only F32 and BF16 are read" : ", not F32"));
  }
  return &tensor;
}

absl::Status ReadTensorValues(const BlobSource& file, int64_t data_offset, const SafetensorsTensor& tensor,
                              float* out) {
  for (int64_t at = tensor.begin; at < tensor.end;) {
    const int64_t want = std::min(kPieceBytes, tensor.end - at);
    ISTHMUS_ASSIGN_OR_RETURN(const std::string piece, file.Read(data_offset + at, want));
    if (static_cast<int64_t>(piece.size()) != want) {
      return absl::DataLossError(absl::StrCat("tensor ", tensor.name, ": file ends too early"));
    }
    if (tensor.type == "F32") {
      std::memcpy(out, piece.data(), piece.size());
      out += piece.size() / sizeof(float);
    } else {
      for (size_t i = 0; i < piece.size(); i += 2) {
        const uint32_t bits = static_cast<uint32_t>(static_cast<unsigned char>(piece[i])) << 16 |
                              static_cast<uint32_t>(static_cast<unsigned char>(piece[i + 1])) << 24;
        std::memcpy(out++, &bits, sizeof(bits));
      }
    }
    at += want;
  }
  return absl::OkStatus();
}

// All the table's tensors, each under `prefix` + its name.
absl::StatusOr<std::vector<float>> ReadAll(const TensorTable& table, const BlobSource& file,
                                           const SafetensorsHeader& header, const std::string& prefix,
                                           bool may_be_bf16) {
  const ByName index = IndexOf(header);
  std::vector<const SafetensorsTensor*> found;
  for (const TensorInfo& info : table.tensors()) {
    ISTHMUS_ASSIGN_OR_RETURN(const SafetensorsTensor* tensor,
                             FindTensor(index, prefix + info.name, info.shape, may_be_bf16));
    found.push_back(tensor);
  }
  std::vector<float> values(static_cast<size_t>(table.layout().total()));
  for (int i = 0; i < table.layout().tensors(); ++i) {
    ISTHMUS_RETURN_IF_ERROR(
        ReadTensorValues(file, header.data_offset, *found[i], values.data() + table.layout().offset(i)));
  }
  return values;
}

absl::Status CheckStateDigest(const TensorTable& table, const Snapshot& snapshot) {
  const SnapshotInfo& info = snapshot.info;
  if (info.state_digest().empty()) return absl::OkStatus();
  const StateStamp stamp{info.round(), info.schedule_step(), info.outer_rate_bits(),
                         info.outer_momentum_bits()};
  const Digest digest = table.StateDigestOf(stamp, snapshot.values.anchor, snapshot.values.momentum);
  if (digest.ToBytes() == info.state_digest()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat("snapshot of round ", info.round(), " is damaged: state digest ",
                                          digest.ToHex(), ", stated ",
                                          absl::BytesToHexString(info.state_digest())));
}

}  // namespace

int64_t SnapshotBytes(const TensorTable& table, const SnapshotInfo& info, const SnapshotValues& values) {
  const int64_t count = static_cast<int64_t>(values.anchor.size() + values.momentum.size());
  return static_cast<int64_t>(Header(table, SnapshotMetadata(table, info), !values.momentum.empty()).size()) +
         count * static_cast<int64_t>(sizeof(float));
}

absl::Status WriteSnapshot(const TensorTable& table, const SnapshotInfo& info, const SnapshotValues& values,
                           const ByteSink& sink) {
  ISTHMUS_RETURN_IF_ERROR(CheckFit(table, values));
  ISTHMUS_RETURN_IF_ERROR(sink(Header(table, SnapshotMetadata(table, info), !values.momentum.empty())));
  ISTHMUS_RETURN_IF_ERROR(WriteValues(values.anchor, sink));
  return WriteValues(values.momentum, sink);
}

absl::StatusOr<std::string> EncodeSnapshot(const TensorTable& table, const SnapshotInfo& info,
                                           const SnapshotValues& values) {
  std::string out;
  ISTHMUS_RETURN_IF_ERROR(WriteSnapshot(table, info, values, [&out](absl::string_view piece) {
    out.append(piece.data(), piece.size());
    return absl::OkStatus();
  }));
  return out;
}

absl::StatusOr<Snapshot> ReadSnapshot(const TensorTable& table, const BlobSource& file) {
  ISTHMUS_ASSIGN_OR_RETURN(const SafetensorsHeader header, ReadSafetensorsHeader(file, HeaderLimit(table)));
  Snapshot snapshot;
  ISTHMUS_ASSIGN_OR_RETURN(snapshot.info, ReadInfo(table, header.metadata));
  const size_t tensors = table.tensors().size();
  const bool has_momentum = header.tensors.size() == 2 * tensors;
  if (header.tensors.size() != tensors && !has_momentum) {
    return absl::InvalidArgumentError(
        absl::StrCat("snapshot has ", header.tensors.size(), " tensors, the model ", tensors));
  }
  ISTHMUS_ASSIGN_OR_RETURN(snapshot.values.anchor, ReadAll(table, file, header, "", false));
  if (has_momentum) {
    ISTHMUS_ASSIGN_OR_RETURN(snapshot.values.momentum, ReadAll(table, file, header, kMomentumPrefix, false));
  }
  snapshot.info.set_bytes(file.size());
  snapshot.info.set_has_momentum(has_momentum);
  ISTHMUS_RETURN_IF_ERROR(CheckStateDigest(table, snapshot));
  return snapshot;
}

absl::StatusOr<Snapshot> DecodeSnapshot(const TensorTable& table, absl::string_view bytes) {
  return ReadSnapshot(table, BorrowedBlob(bytes));
}

absl::Status WriteCheckpoint(const TensorTable& table, absl::Span<const float> values,
                             const std::map<std::string, std::string>& notes, const ByteSink& sink) {
  if (static_cast<int64_t>(values.size()) != table.layout().total()) {
    return absl::InvalidArgumentError(
        absl::StrCat("weights of ", values.size(), " values for a model of ", table.layout().total()));
  }
  Metadata metadata = notes;
  metadata["format"] = "pt";
  ISTHMUS_RETURN_IF_ERROR(sink(Header(table, metadata, /*has_momentum=*/false)));
  return WriteValues(values, sink);
}

absl::StatusOr<std::vector<float>> ReadWeights(const TensorTable& table, const BlobSource& file) {
  ISTHMUS_ASSIGN_OR_RETURN(const SafetensorsHeader header,
                           ReadSafetensorsHeader(file, kSafetensorsHeaderLimitBytes));
  return ReadAll(table, file, header, "", /*may_be_bf16=*/true);
}

}  // namespace isthmus
