#include "compression/frame_format.h"

#include "absl/strings/str_cat.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"

namespace isthmus {
namespace {

constexpr SealKind kFrameSeal{"frame", "ISFR", kFrameVersion};
constexpr int kTableColumns = 6;

// The table column by column, so that zstd sees runs.
std::string TableBytes(const std::vector<TensorHeader>& tensors) {
  const size_t n = tensors.size();
  std::string table(kTableColumns * n, '\0');
  for (size_t i = 0; i < n; ++i) {
    const TensorHeader& t = tensors[i];
    const uint16_t exponent = static_cast<uint16_t>(t.exponent);
    table[i] = static_cast<char>(t.form);
    table[n + i] = static_cast<char>(t.value_bits);
    table[2 * n + i] = static_cast<char>(t.k & 0xFF);
    table[3 * n + i] = static_cast<char>(t.k >> 8);
    table[4 * n + i] = static_cast<char>(exponent & 0xFF);
    table[5 * n + i] = static_cast<char>(exponent >> 8);
  }
  return table;
}

absl::Status ParseTable(absl::string_view table, std::vector<TensorHeader>* tensors) {
  const size_t n = tensors->size();
  if (table.size() != kTableColumns * n) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame: table stream of ", table.size(), " bytes, not ", kTableColumns * n));
  }
  for (size_t i = 0; i < n; ++i) {
    const auto byte = [&](int column) { return static_cast<uint8_t>(table[column * n + i]); };
    TensorHeader& t = (*tensors)[i];
    if (byte(0) > static_cast<uint8_t>(TensorForm::kDense)) {
      return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", i, " has unknown form ", byte(0)));
    }
    t.form = static_cast<TensorForm>(byte(0));
    t.value_bits = byte(1);
    t.k = static_cast<uint16_t>(byte(2) | byte(3) << 8);
    t.exponent = static_cast<int16_t>(byte(4) | byte(5) << 8);
    if (t.form == TensorForm::kAbsent && (t.value_bits | t.k | t.exponent) != 0) {
      return absl::InvalidArgumentError(absl::StrCat("frame: absent tensor ", i, " has settings"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::string SealFrame(const Layout& layout, absl::string_view spec, int zstd_level, const FrameBody& body) {
  std::string out;
  BeginSealed(kFrameSeal, layout, &out);
  ByteWriter writer(&out);
  writer.U16(static_cast<uint16_t>(spec.size()));
  writer.Bytes(spec);
  WritePackedStream(TableBytes(body.tensors), zstd_level, &writer);
  WritePackedStream(body.levels, zstd_level, &writer);
  WritePackedStream(body.gaps, zstd_level, &writer);
  WritePackedStream(body.values, zstd_level, &writer);
  EndSealed(&out);
  return out;
}

absl::StatusOr<FrameBody> OpenFrame(const Layout& layout, absl::string_view spec, const FrameLimits& limits,
                                    absl::string_view frame) {
  const int64_t bound = FrameBound(layout, spec, limits);
  if (static_cast<int64_t>(frame.size()) > bound) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame of ", frame.size(), " bytes, at most ", bound, " fit this layout"));
  }
  absl::StatusOr<ByteReader> opened = OpenSealed(kFrameSeal, layout, frame);
  if (!opened.ok()) return opened.status();
  ByteReader reader = *opened;

  uint16_t spec_bytes = 0;
  absl::string_view sent_spec;
  if (!reader.U16(&spec_bytes) || !reader.Bytes(spec_bytes, &sent_spec)) {
    return absl::InvalidArgumentError("frame: codec spec cut short");
  }
  if (sent_spec != spec) {
    // Not quoted: the bytes are a stranger's.
    return absl::InvalidArgumentError(absl::StrCat("frame: another codec spec than ", spec));
  }
  FrameBody body;
  body.tensors.resize(layout.tensors());
  std::string table;
  const auto read = [&reader](absl::string_view name, int64_t most, std::string* raw) {
    return ReadPackedStream(absl::StrCat("frame: ", name), static_cast<uint64_t>(most), &reader, raw);
  };
  if (absl::Status s = read("table", kTableColumns * layout.tensors(), &table); !s.ok()) return s;
  if (absl::Status s = ParseTable(table, &body.tensors); !s.ok()) return s;
  if (absl::Status s = read("level", limits.level_bytes, &body.levels); !s.ok()) return s;
  if (absl::Status s = read("gap", limits.gap_bytes, &body.gaps); !s.ok()) return s;
  if (absl::Status s = read("value", limits.value_bytes, &body.values); !s.ok()) return s;
  if (reader.left() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("frame: ", reader.left(), " bytes left over"));
  }
  return body;
}

int64_t FrameBound(const Layout& layout, absl::string_view spec, const FrameLimits& limits) {
  return kSealBytes + 2 + static_cast<int64_t>(spec.size()) +
         PackedStreamBound(kTableColumns * static_cast<int64_t>(layout.tensors())) +
         PackedStreamBound(limits.level_bytes) + PackedStreamBound(limits.gap_bytes) +
         PackedStreamBound(limits.value_bytes);
}

}  // namespace isthmus
