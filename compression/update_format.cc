#include <algorithm>

#include "absl/strings/str_cat.h"
#include "compression/gap_code.h"
#include "compression/level_table.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"
#include "compression/sum_code.h"
#include "compression/update.h"

namespace isthmus {
namespace {

constexpr SealKind kUpdateSeal{"update", "ISUP", 0};
constexpr int kZstdLevel = 1;
constexpr int64_t kMostSites = 1024;
constexpr int64_t kMostWeight = kMostSites * 256;
constexpr int kPlanes = 7;  // bytes of a dense sum, two's complement, low ones first

absl::Status Error(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("update: ", what));
}

// The streams of an update, raw.
struct UpdateStreams {
  std::string table, gaps, planes;
  SumStreams sums, weights;
};

// Zero bits below the lowest one of all sums; they are not sent.
int CommonZeros(const std::vector<int64_t>& sums) {
  uint64_t any = 0;
  for (int64_t s : sums) any |= static_cast<uint64_t>(s);
  return any == 0 ? 0 : __builtin_ctzll(any);
}

class UpdateWriter {
 public:
  UpdateWriter(const Update& update, UpdateStreams* out)
      : update_(update), out_(out), gaps_(&out->gaps), sums_(&out->sums), weights_(&out->weights) {}

  void Write() {
    for (const UpdateTensor& tensor : update_.tensors) Tensor(tensor);
    sums_.Finish();
    weights_.Finish();
  }

 private:
  void Tensor(const UpdateTensor& tensor) {
    const int zeros = CommonZeros(tensor.sums);
    ByteWriter table(&out_->table);
    table.U8(static_cast<uint8_t>(tensor.form));
    table.U16(static_cast<uint16_t>(tensor.exponent));
    table.U8(static_cast<uint8_t>(zeros));
    table.Varint(tensor.positions.size());
    table.Varint(tensor.left_out.size());
    for (uint16_t site : tensor.left_out) table.U16(site);
    if (tensor.form == TensorForm::kSparse) Sparse(tensor, zeros);
    if (tensor.form == TensorForm::kDense) Planes(tensor, zeros);
    Weights(tensor);
  }

  void Sparse(const UpdateTensor& tensor, int zeros) {
    gaps_.BeginRange();
    int64_t block = -1;
    for (size_t i = 0; i < tensor.positions.size(); ++i) {
      gaps_.Position(tensor.positions[i]);
      if (tensor.positions[i] / kBlockValues != block) {
        block = tensor.positions[i] / kBlockValues;
        sums_.BeginBlock();
      }
      sums_.Sum(tensor.sums[i] / (int64_t{1} << zeros));
    }
  }

  void Planes(const UpdateTensor& tensor, int zeros) {
    const size_t first = out_->planes.size(), n = tensor.sums.size();
    out_->planes.resize(first + kPlanes * n);
    char* planes = &out_->planes[first];
    for (size_t i = 0; i < n; ++i) {
      const uint64_t bits = static_cast<uint64_t>(tensor.sums[i] / (int64_t{1} << zeros));
      for (int p = 0; p < kPlanes; ++p) planes[p * n + i] = static_cast<char>(bits >> (8 * p));
    }
  }

  void Weights(const UpdateTensor& tensor) {
    for (size_t i = 0; i < tensor.weights.size(); ++i) {
      if (i % kBlockValues == 0) weights_.BeginBlock();
      weights_.Sum(tensor.weights[i]);
    }
  }

  const Update& update_;
  UpdateStreams* out_;
  GapWriter gaps_;
  SumWriter sums_, weights_;
};

// What the table says, beside what goes straight into the update.
struct TableRow {
  uint8_t zeros = 0;
  uint64_t count = 0;  // positions or, dense, values
};

struct Counts {
  uint64_t sparse = 0, dense = 0;
};

absl::Status ReadRow(int64_t size, ByteReader* table, UpdateTensor* tensor, TableRow* row) {
  uint8_t form;
  uint16_t exponent, site;
  uint64_t positions, left_out;
  if (!table->U8(&form) || !table->U16(&exponent) || !table->U8(&row->zeros) || !table->Varint(&positions) ||
      !table->Varint(&left_out) || left_out > table->left() / 2) {
    return Error("table cut short");
  }
  if (form > static_cast<uint8_t>(TensorForm::kDense)) return Error(absl::StrCat("unknown form ", form));
  tensor->form = static_cast<TensorForm>(form);
  tensor->exponent = static_cast<int16_t>(exponent);
  if (tensor->exponent < kLeastExponent || tensor->exponent > kMostLevelExponent) {
    return Error(absl::StrCat("exponent ", tensor->exponent, " is outside ", kLeastExponent, " to ",
                              kMostLevelExponent));
  }
  if (row->zeros >= 52) return Error(absl::StrCat(row->zeros, " common zero bits"));
  const bool sparse = tensor->form == TensorForm::kSparse;
  if (positions > static_cast<uint64_t>(sparse ? size : 0)) {
    return Error(absl::StrCat("claims ", positions, " positions of ", size, " values"));
  }
  row->count = tensor->form == TensorForm::kDense ? static_cast<uint64_t>(size) : positions;
  for (uint64_t i = 0; i < left_out; ++i) {
    table->U16(&site);
    if (site >= kMostSites || (i > 0 && site <= tensor->left_out.back()))
      return Error("sites left out not ascending");
    tensor->left_out.push_back(site);
  }
  return absl::OkStatus();
}

class UpdateReader {
 public:
  UpdateReader(const UpdateStreams& in, Update* update)
      : planes_(in.planes), gaps_(in.gaps), sums_(in.sums), weights_(in.weights), update_(update) {}

  absl::Status Tensor(int64_t size, const TableRow& row, UpdateTensor* tensor) {
    if (tensor->form == TensorForm::kSparse) {
      if (absl::Status s = Sparse(size, row, tensor); !s.ok()) return s;
    }
    if (tensor->form == TensorForm::kDense) {
      if (absl::Status s = Planes(row, tensor); !s.ok()) return s;
    }
    return update_->averaging == Averaging::kContributors ? Weights(row, tensor) : absl::OkStatus();
  }

  absl::Status Finish() const {
    return gaps_.is_spent() && sums_.is_spent() && weights_.is_spent()
               ? absl::OkStatus()
               : Error("streams have bytes left over");
  }

 private:
  absl::Status Sparse(int64_t size, const TableRow& row, UpdateTensor* tensor) {
    gaps_.BeginRange(static_cast<uint64_t>(size));
    tensor->positions.reserve(row.count);
    tensor->sums.reserve(row.count);
    int64_t block = -1;
    for (uint64_t i = 0; i < row.count; ++i) {
      uint32_t position;
      int64_t sum;
      if (!gaps_.Position(&position)) return Error("gaps end, or pass the tensor's end");
      if (position / kBlockValues != block) {
        block = position / kBlockValues;
        sums_.BeginBlock();
      }
      if (!sums_.Sum(static_cast<uint64_t>(kSumLimit) >> row.zeros, &sum)) return Error("malformed sum");
      tensor->positions.push_back(position);
      tensor->sums.push_back(sum * (int64_t{1} << row.zeros));
    }
    return absl::OkStatus();
  }

  absl::Status Planes(const TableRow& row, UpdateTensor* tensor) {
    const size_t n = row.count;
    const absl::string_view planes = planes_.substr(0, kPlanes * n);
    planes_.remove_prefix(kPlanes * n);
    tensor->sums.resize(n);
    const int64_t limit = kSumLimit >> row.zeros;
    bool fits = true;
    for (size_t i = 0; i < n; ++i) {
      uint64_t bits = 0;
      for (int p = 0; p < kPlanes; ++p)
        bits |= static_cast<uint64_t>(static_cast<uint8_t>(planes[p * n + i])) << (8 * p);
      const int64_t sum = static_cast<int64_t>(bits << 8) / 256;
      fits &= sum < limit && sum > -limit;
      tensor->sums[i] = fits ? sum * (int64_t{1} << row.zeros) : 0;
    }
    return fits ? absl::OkStatus() : Error("malformed sum");
  }

  absl::Status Weights(const TableRow& row, UpdateTensor* tensor) {
    const int64_t least = tensor->form == TensorForm::kDense ? 0 : 1;
    tensor->weights.reserve(row.count);
    for (uint64_t i = 0; i < row.count; ++i) {
      if (i % kBlockValues == 0) weights_.BeginBlock();
      int64_t weight;
      if (!weights_.Sum(static_cast<uint64_t>(update_->total_weight) + 1, &weight) || weight < least) {
        return Error("malformed weight");
      }
      tensor->weights.push_back(static_cast<int32_t>(weight));
    }
    return absl::OkStatus();
  }

  absl::string_view planes_;
  GapReader gaps_;
  SumReader sums_, weights_;
  Update* update_;
};

// Reads the streams after the table; the counts bound and, where they can, fix their lengths.
absl::Status ReadStreams(const Layout& layout, const Counts& counts, Averaging averaging, ByteReader* reader,
                         UpdateStreams* out) {
  const uint64_t weights = averaging == Averaging::kContributors ? counts.sparse + counts.dense : 0;
  const auto gap_bytes = static_cast<uint64_t>(GapBound(static_cast<int64_t>(counts.sparse), layout.total()));
  const struct {
    const char* name;
    uint64_t most;
    bool exact;
    std::string* raw;
  } streams[] = {
      {"update: gap", counts.sparse == 0 ? 0 : gap_bytes, false, &out->gaps},
      {"update: sum name", counts.sparse, true, &out->sums.names},
      {"update: sum literal", 8 * counts.sparse, false, &out->sums.literals},
      {"update: sum sign", (counts.sparse + 7) / 8, true, &out->sums.signs},
      {"update: dense sum", kPlanes * counts.dense, true, &out->planes},
      {"update: weight name", weights, true, &out->weights.names},
      {"update: weight literal", 3 * weights, false, &out->weights.literals},
      {"update: weight sign", (weights + 7) / 8, true, &out->weights.signs},
  };
  for (const auto& stream : streams) {
    if (absl::Status s = ReadPackedStream(stream.name, stream.most, reader, stream.raw); !s.ok()) return s;
    if (stream.exact && stream.raw->size() != stream.most) {
      return absl::InvalidArgumentError(
          absl::StrCat(stream.name, " stream of ", stream.raw->size(), " bytes, not ", stream.most));
    }
  }
  return reader->left() == 0 ? absl::OkStatus() : Error(absl::StrCat(reader->left(), " bytes left over"));
}

}  // namespace

std::string EncodeUpdate(const Layout& layout, const Update& update) {
  UpdateStreams streams;
  UpdateWriter(update, &streams).Write();
  std::string out;
  BeginSealed(kUpdateSeal, layout, &out);
  ByteWriter writer(&out);
  writer.U8(static_cast<uint8_t>(update.averaging));
  writer.Varint(static_cast<uint64_t>(update.total_weight));
  for (const std::string* raw :
       {&streams.table, &streams.gaps, &streams.sums.names, &streams.sums.literals, &streams.sums.signs,
        &streams.planes, &streams.weights.names, &streams.weights.literals, &streams.weights.signs}) {
    WritePackedStream(*raw, kZstdLevel, &writer);
  }
  EndSealed(&out);
  return out;
}

absl::StatusOr<Update> DecodeUpdate(const Layout& layout, absl::string_view bytes) {
  absl::StatusOr<ByteReader> opened = OpenSealed(kUpdateSeal, layout, bytes);
  if (!opened.ok()) return opened.status();
  ByteReader reader = *opened;
  Update update;
  uint8_t averaging;
  uint64_t total_weight;
  if (!reader.U8(&averaging) || !reader.Varint(&total_weight)) return Error("header cut short");
  if (averaging > static_cast<uint8_t>(Averaging::kContributors)) return Error("unknown averaging");
  if (total_weight < 1 || total_weight > kMostWeight)
    return Error(absl::StrCat("total weight ", total_weight));
  update.averaging = static_cast<Averaging>(averaging);
  update.total_weight = static_cast<int64_t>(total_weight);

  UpdateStreams streams;
  // A row has at most 4 bytes, two varints and the sites left out.
  const uint64_t most_table = static_cast<uint64_t>(layout.tensors()) * (24 + 2 * kMostSites);
  if (absl::Status s = ReadPackedStream("update: table", most_table, &reader, &streams.table); !s.ok())
    return s;
  ByteReader table(streams.table);
  update.tensors.resize(layout.tensors());
  std::vector<TableRow> rows(layout.tensors());
  Counts counts;
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = ReadRow(layout.size(t), &table, &update.tensors[t], &rows[t]); !s.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(s.message(), " (tensor ", t, ")"));
    }
    (update.tensors[t].form == TensorForm::kDense ? counts.dense : counts.sparse) += rows[t].count;
  }
  if (table.left() != 0) return Error("table has bytes left over");
  if (absl::Status s = ReadStreams(layout, counts, update.averaging, &reader, &streams); !s.ok()) return s;
  UpdateReader update_reader(streams, &update);
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = update_reader.Tensor(layout.size(t), rows[t], &update.tensors[t]); !s.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(s.message(), " (tensor ", t, ")"));
    }
  }
  if (absl::Status s = update_reader.Finish(); !s.ok()) return s;
  return update;
}

}  // namespace isthmus
