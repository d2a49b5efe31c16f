#include "compression/frame_format.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"

namespace isthmus {
namespace {

constexpr SealKind kFrameSeal{"frame", "ISFR"};
constexpr size_t kTableColumns = 6;
constexpr uint8_t kNoMorePieces = 0, kPieceFollows = 1;
constexpr size_t kRowBytes = 4;  // of a number of rows, after the columns

size_t BitmapBytes(size_t tensors) { return (tensors + 7) / 8; }

// A bit for each tensor, then the settings of those present column by column, so that zstd sees runs, then
// the numbers of rows.
std::string TableBytes(const std::vector<TensorHeader>& tensors) {
  std::string table(BitmapBytes(tensors.size()), '\0');
  std::string columns[kTableColumns], rows;
  ByteWriter row_writer(&rows);
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorHeader& t = tensors[i];
    if (t.form == TensorForm::kAbsent) continue;
    table[i / 8] = static_cast<char>(table[i / 8] | 1 << (i % 8));
    const uint16_t exponent = static_cast<uint16_t>(t.exponent);
    const int bytes[kTableColumns] = {static_cast<int>(t.form), t.value_bits, t.k & 0xFF, t.k >> 8,
                                      exponent & 0xFF,          exponent >> 8};
    for (size_t c = 0; c < kTableColumns; ++c) columns[c].push_back(static_cast<char>(bytes[c]));
    if (t.form == TensorForm::kRows) row_writer.U32(t.rows);
  }
  for (const std::string& column : columns) table += column;
  return table + rows;
}

absl::Status ParseTable(absl::string_view table, std::vector<TensorHeader>* tensors) {
  const size_t n = tensors->size(), bitmap = BitmapBytes(n);
  const auto size_error = [&](size_t wanted) {
    return absl::InvalidArgumentError(
        absl::StrCat("frame: table stream of ", table.size(), " bytes, not ", wanted));
  };
  if (table.size() < bitmap) return size_error(bitmap);
  const auto is_present = [&](size_t i) { return (table[i / 8] >> (i % 8) & 1) != 0; };
  size_t present = 0;
  for (size_t i = 0; i < 8 * bitmap; ++i) present += is_present(i);
  for (size_t i = n; i < 8 * bitmap; ++i) {
    if (is_present(i)) return absl::InvalidArgumentError("frame: table has tensors beyond the layout's");
  }
  const size_t columns = bitmap + kTableColumns * present;
  if (table.size() < columns) return size_error(columns);
  const auto by_rows = static_cast<size_t>(std::count(
      table.begin() + bitmap, table.begin() + bitmap + present, static_cast<char>(TensorForm::kRows)));
  if (table.size() != columns + kRowBytes * by_rows) return size_error(columns + kRowBytes * by_rows);
  ByteReader rows(table.substr(columns));
  size_t row = bitmap;
  for (size_t i = 0; i < n; ++i) {
    if (!is_present(i)) continue;
    const auto byte = [&](int column) { return static_cast<uint8_t>(table[row + column * present]); };
    TensorHeader& t = (*tensors)[i];
    if (byte(0) == 0 || byte(0) > static_cast<uint8_t>(TensorForm::kRows)) {
      return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", i, " has unknown form ", byte(0)));
    }
    t.form = static_cast<TensorForm>(byte(0));
    t.value_bits = byte(1);
    t.k = static_cast<uint16_t>(byte(2) | byte(3) << 8);
    t.exponent = static_cast<int16_t>(byte(4) | byte(5) << 8);
    if (t.form == TensorForm::kRows) rows.U32(&t.rows);
    ++row;
  }
  return absl::OkStatus();
}

// Gaps or values, which come in pieces.
struct PiecedStream {
  const char* name;
  uint64_t most_bytes;
  char* raw = nullptr;   // where pieces are unpacked one after another; null: they are not
  size_t raw_bytes = 0;  // of the pieces so far

  absl::Status TakePiece(ByteReader* reader) {
    PackedStream piece;
    absl::Status s = FindPackedStream(name, most_bytes - raw_bytes, reader, &piece);
    if (s.ok() && raw != nullptr) s = UnpackStream(name, piece, raw + raw_bytes);
    if (s.ok()) raw_bytes += piece.raw_bytes;
    return s;
  }
};

absl::Status TakePieces(ByteReader* reader, PiecedStream* gaps, PiecedStream* values) {
  for (uint8_t mark = kPieceFollows;;) {
    if (!reader->U8(&mark) || mark > kPieceFollows) {
      return absl::InvalidArgumentError("frame: neither another piece nor the last");
    }
    if (mark == kNoMorePieces) return absl::OkStatus();
    const size_t before = gaps->raw_bytes + values->raw_bytes;
    if (absl::Status s = gaps->TakePiece(reader); !s.ok()) return s;
    if (absl::Status s = values->TakePiece(reader); !s.ok()) return s;
    if (gaps->raw_bytes + values->raw_bytes == before) {
      return absl::InvalidArgumentError("frame: an empty piece");
    }
  }
}

// Twice over the pieces, which are not remembered, for there may be one for every few bytes: first for how
// long the streams are, so that each one's memory is made once. What is wrong there is found again.
absl::Status ReadPieces(const FrameLimits& limits, ByteReader* reader, FrameBody* body) {
  PiecedStream gaps{"frame: gap", static_cast<uint64_t>(limits.gap_bytes)};
  PiecedStream values{"frame: value", static_cast<uint64_t>(limits.value_bytes)};
  ByteReader ahead = *reader;
  TakePieces(&ahead, &gaps, &values).IgnoreError();
  body->gaps.resize(gaps.raw_bytes);
  body->values.resize(values.raw_bytes);
  gaps.raw = &body->gaps[0];
  values.raw = &body->values[0];
  gaps.raw_bytes = values.raw_bytes = 0;
  return TakePieces(reader, &gaps, &values);
}

int64_t MostTableBytes(const Layout& layout) {
  const size_t n = static_cast<size_t>(layout.tensors());
  size_t matrices = 0;
  for (int t = 0; t < layout.tensors(); ++t) matrices += layout.row_length(t) > 0;
  return static_cast<int64_t>(BitmapBytes(n) + kTableColumns * n + kRowBytes * matrices);
}

void EndFrame(int zstd_level, absl::string_view levels, const std::vector<TensorHeader>& tensors,
              std::string* out) {
  ByteWriter writer(out);
  writer.U8(kNoMorePieces);
  WritePackedStream(levels, zstd_level, &writer);
  WritePackedStream(TableBytes(tensors), zstd_level, &writer);
  EndSealed(out);
}

}  // namespace

void BeginFrame(const Layout& layout, absl::string_view spec, std::string* out) {
  BeginSealed(kFrameSeal, layout, out);
  ByteWriter writer(out);
  writer.U16(static_cast<uint16_t>(spec.size()));
  writer.Bytes(spec);
}

void BeginPiece(std::string* out) { ByteWriter(out).U8(kPieceFollows); }

void EndFrame(int zstd_level, const FrameBody& body, std::string* out) {
  EndFrame(zstd_level, body.levels, body.tensors, out);
}

FrameWriter::FrameWriter(const Layout& layout, absl::string_view spec, int zstd_level, int64_t reserved)
    : zstd_level_(zstd_level) {
  out_.reserve(static_cast<size_t>(reserved));
  BeginFrame(layout, spec, &out_);
}

void FrameWriter::Piece(absl::string_view gaps, absl::string_view values) {
  BeginPiece(&out_);
  ByteWriter writer(&out_);
  WritePackedStream(gaps, zstd_level_, &writer);
  WritePackedStream(values, zstd_level_, &writer);
}

std::string FrameWriter::Finish(absl::string_view levels, const std::vector<TensorHeader>& tensors) {
  EndFrame(zstd_level_, levels, tensors, &out_);
  return std::move(out_);
}

std::string SealFrame(const Layout& layout, absl::string_view spec, int zstd_level, const FrameBody& body) {
  FrameWriter writer(layout, spec, zstd_level, 0);
  if (!body.gaps.empty() || !body.values.empty()) writer.Piece(body.gaps, body.values);
  return writer.Finish(body.levels, body.tensors);
}

absl::Status OpenFrame(const Layout& layout, absl::string_view spec, const FrameLimits& limits,
                       absl::string_view frame, FrameBody* body) {
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
  body->tensors.assign(layout.tensors(), TensorHeader());
  std::string table;
  const auto read = [&reader](absl::string_view name, int64_t most, std::string* raw) {
    return ReadPackedStream(absl::StrCat("frame: ", name), static_cast<uint64_t>(most), &reader, raw);
  };
  if (absl::Status s = ReadPieces(limits, &reader, body); !s.ok()) return s;
  if (absl::Status s = read("level", limits.level_bytes, &body->levels); !s.ok()) return s;
  if (absl::Status s = read("table", MostTableBytes(layout), &table); !s.ok()) return s;
  if (absl::Status s = ParseTable(table, &body->tensors); !s.ok()) return s;
  if (reader.left() != 0) {
    return absl::InvalidArgumentError(absl::StrCat("frame: ", reader.left(), " bytes left over"));
  }
  return absl::OkStatus();
}

absl::StatusOr<FrameBody> OpenFrame(const Layout& layout, absl::string_view spec, const FrameLimits& limits,
                                    absl::string_view frame) {
  FrameBody body;
  if (absl::Status s = OpenFrame(layout, spec, limits, frame, &body); !s.ok()) return s;
  return body;
}

int64_t FrameBound(const Layout& layout, absl::string_view spec, const FrameLimits& limits) {
  const int64_t pieces = 1 + (limits.gap_bytes + limits.value_bytes) / kLeastPieceBytes;
  return kSealBytes + 2 + static_cast<int64_t>(spec.size()) + limits.gap_bytes + limits.value_bytes +
         pieces * (1 + 2 * PackedStreamBound(0)) + 1 + PackedStreamBound(limits.level_bytes) +
         PackedStreamBound(MostTableBytes(layout));
}

}  // namespace isthmus
