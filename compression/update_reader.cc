#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/bitmap_code.h"
#include "compression/gap_code.h"
#include "compression/level_table.h"
#include "compression/packed_stream.h"
#include "compression/update.h"
#include "compression/update_parts.h"

namespace isthmus {
namespace {

constexpr int64_t kMostSites = 1024;
constexpr int64_t kMostWeight = kMostSites * 256;
// Of a dictionary's literal: differences are below 2^53, weights below 2^19.
constexpr uint64_t kMostLiteralBytes = 8, kMostWeightBytes = 3;
constexpr uint64_t kMostFrequencyBytes = 17 * 2 * (kRansSymbols + 1);

absl::Status Error(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("update: ", what));
}

// What the table says, beside what goes straight into the update.
struct TableRow {
  bool is_bitmap = false;
  uint8_t zeros = 0;
  uint64_t count = 0;  // positions or, dense, values
};

// What the tables' rows come to.
struct Counts {
  uint64_t sparse = 0, dense = 0, gap_positions = 0, bitmap_bytes = 0;
  uint64_t blocks = 0;  // with positions, at most
};

absl::Status ReadRow(int64_t size, ByteReader* table, UpdateTensor* tensor, TableRow* row) {
  uint8_t form;
  uint16_t exponent, site;
  uint64_t positions, left_out;
  if (!table->U8(&form) || !table->U16(&exponent) || !table->U8(&row->zeros) || !table->Varint(&positions) ||
      !table->Varint(&left_out) || left_out > table->left() / 2) {
    return Error("table cut short");
  }
  row->is_bitmap = form == (kBitmapFlag | static_cast<uint8_t>(TensorForm::kSparse));
  if (row->is_bitmap) form = static_cast<uint8_t>(TensorForm::kSparse);
  if (form > static_cast<uint8_t>(TensorForm::kDense)) return Error(absl::StrCat("unknown form ", form));
  tensor->form = static_cast<TensorForm>(form);
  tensor->left_out.clear();
  tensor->exponent = static_cast<int16_t>(exponent);
  if (tensor->exponent < kLeastExponent || tensor->exponent > kMostLevelExponent) {
    return Error(absl::StrCat("exponent ", tensor->exponent, " is outside ", kLeastExponent, " to ",
                              kMostLevelExponent));
  }
  if (row->zeros >= 52) return Error(absl::StrCat(row->zeros, " common zero bits"));
  const bool sparse = tensor->form == TensorForm::kSparse;
  constexpr uint64_t kMostGaps = INT32_MAX;  // what a reader of gaps counts in
  if (positions > static_cast<uint64_t>(sparse ? size : 0) || (positions > kMostGaps && !row->is_bitmap)) {
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

void CountRow(int64_t size, TensorForm form, const TableRow& row, Counts* counts) {
  if (form == TensorForm::kDense) {
    counts->dense += row.count;
    return;
  }
  counts->sparse += row.count;
  counts->blocks += std::min(row.count, static_cast<uint64_t>((size + kBlockValues - 1) / kBlockValues));
  if (row.is_bitmap) {
    counts->bitmap_bytes += static_cast<uint64_t>(BitmapBytes(size));
  } else {
    counts->gap_positions += row.count;
  }
}

class UpdateReader {
 public:
  UpdateReader(const UpdateStreams<absl::string_view>& in, const Counts& counts, SimdPath path,
               Update* update)
      : bitmaps_(in.bitmaps),
        sum_planes_(in.sum_planes),
        weight_planes_(in.weight_planes),
        gaps_(in.gaps),
        passes_(SumPassesOf(path)),
        sums_(in.sums, counts.sparse, path),
        update_(update) {}

  absl::Status Tensor(int64_t size, const TableRow& row, UpdateTensor* tensor) {
    if (absl::Status s = Values(size, row, tensor); !s.ok()) return s;
    return IsFinite(*tensor) ? absl::OkStatus() : Error("a mean beyond what an fp32 holds");
  }

  absl::Status Finish() const {
    return gaps_.is_spent() && sums_.is_spent() ? absl::OkStatus() : Error("streams have bytes left over");
  }

 private:
  bool has_weights() const { return update_->averaging == Averaging::kContributors; }

  absl::Status Values(int64_t size, const TableRow& row, UpdateTensor* tensor) {
    // Whatever was in it before.
    if (tensor->form != TensorForm::kSparse) tensor->positions.clear();
    if (tensor->form == TensorForm::kAbsent) tensor->sums.clear();
    if (tensor->form == TensorForm::kAbsent || !has_weights()) tensor->weights.clear();
    if (tensor->form == TensorForm::kAbsent) return absl::OkStatus();
    if (tensor->form == TensorForm::kDense) return Dense(row, tensor);
    tensor->positions.resize(row.count);
    if (absl::Status s = Positions(size, row, &tensor->positions); !s.ok()) return s;
    return Sums(row, tensor);
  }

  // Whether every mean is an fp32: an anchor moved by Inf or NaN could not be put right.
  bool IsFinite(const UpdateTensor& tensor) {
    // A dictionary may list more than is used, so that only what fits is decided by it.
    int64_t largest = sums_.TakeLargest();
    if (tensor.form == TensorForm::kDense) {
      for (int64_t sum : tensor.sums) largest = std::max(largest, std::abs(sum));
    }
    const auto fits = [&](int64_t sum, int64_t weight) {
      const double worth = std::ldexp(static_cast<double>(sum), tensor.exponent);
      return std::isfinite(static_cast<float>(worth / static_cast<double>(std::max<int64_t>(weight, 1))));
    };
    if (fits(largest, has_weights() ? 1 : update_->total_weight)) return true;
    for (size_t i = 0; i < tensor.sums.size(); ++i) {
      if (!fits(tensor.sums[i], has_weights() ? tensor.weights[i] : update_->total_weight)) return false;
    }
    return true;
  }

  absl::Status Positions(int64_t size, const TableRow& row, std::vector<uint32_t>* positions) {
    if (row.is_bitmap) {
      const auto bytes = static_cast<size_t>(BitmapBytes(size));
      if (!ReadBitmap(bitmaps_.substr(0, bytes), size, absl::MakeSpan(*positions), passes_)) {
        return Error("bitmap has other positions than the table says");
      }
      bitmaps_.remove_prefix(bytes);
      return absl::OkStatus();
    }
    gaps_.BeginRange(static_cast<uint64_t>(size));
    const auto count = static_cast<int>(row.count);
    return gaps_.PositionsOrEnd(count, 0, positions->data()) == count
               ? absl::OkStatus()
               : Error("gaps end, or pass the tensor's end");
  }

  absl::Status Sums(const TableRow& row, UpdateTensor* tensor) {
    tensor->sums.resize(row.count);
    if (has_weights()) tensor->weights.resize(row.count);
    const SumReader::Limits limits{kSumLimit >> row.zeros,
                                   has_weights() ? static_cast<int32_t>(update_->total_weight) : 0};
    for (size_t first = 0, end; first < row.count; first = end) {
      end = BlockEnd(tensor->positions, first);
      if (!sums_.Block(static_cast<int>(end - first), row.zeros, limits, &tensor->sums[first],
                       has_weights() ? &tensor->weights[first] : nullptr)) {
        return Error("malformed sum");
      }
    }
    return absl::OkStatus();
  }

  absl::Status Dense(const TableRow& row, UpdateTensor* tensor) {
    const size_t n = row.count;
    if (!Planes(kSumPlanes, row.zeros, 1 - (kSumLimit >> row.zeros), (kSumLimit >> row.zeros) - 1, n,
                &sum_planes_, &tensor->sums)) {
      return Error("malformed sum");
    }
    if (has_weights() &&
        !Planes(kWeightPlanes, 0, 0, update_->total_weight, n, &weight_planes_, &tensor->weights)) {
      return Error("malformed weight");
    }
    return absl::OkStatus();
  }

  // `count` numbers of `planes` bytes, each least … most, times 2^zeros.
  template <typename Value>
  static bool Planes(int planes, int zeros, int64_t least, int64_t most, size_t count, absl::string_view* in,
                     std::vector<Value>* out) {
    const char* bytes = in->data();
    in->remove_prefix(planes * count);
    out->resize(count);
    const int unused = 64 - 8 * planes;
    bool fits = true;
    for (size_t i = 0; i < count; ++i) {
      uint64_t bits = 0;
      for (int p = 0; p < planes; ++p) {
        bits |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[p * count + i])) << (8 * p);
      }
      const int64_t value = static_cast<int64_t>(bits << unused) >> unused;
      fits &= value >= least && value <= most;
      (*out)[i] = fits ? static_cast<Value>(value * (int64_t{1} << zeros)) : 0;
    }
    return fits;
  }

  absl::string_view bitmaps_, sum_planes_, weight_planes_;
  GapReader gaps_;
  const SumPasses& passes_;
  SumReader sums_;
  Update* update_;
};

// Reads the streams after the table, their bytes into `unpacked` where they are packed; the counts bound and,
// where they can, fix their lengths.
absl::Status ReadStreams(const Layout& layout, const Counts& counts, Averaging averaging, ByteReader* reader,
                         UpdateStreams<std::string>* unpacked, UpdateStreams<absl::string_view>* out) {
  const bool has_weights = averaging == Averaging::kContributors;
  const uint64_t gap_bytes =
      counts.gap_positions == 0
          ? 0
          : static_cast<uint64_t>(GapBound(static_cast<int64_t>(counts.gap_positions), layout.total()));
  const uint64_t sums = counts.sparse;
  const struct {
    std::string* unpacked;
    absl::string_view* raw;
    uint64_t most;
    bool exact;
  } streams[] = {
      {&unpacked->gaps, &out->gaps, gap_bytes, false},
      {&unpacked->bitmaps, &out->bitmaps, counts.bitmap_bytes, true},
      {&unpacked->sums.tables, &out->sums.tables, counts.blocks, false},
      {&unpacked->sums.sizes, &out->sums.sizes, 2 * counts.blocks, false},
      {&unpacked->sums.entries, &out->sums.entries, sums, false},
      {&unpacked->sums.literals, &out->sums.literals, kMostLiteralBytes * sums, false},
      {&unpacked->sums.weights, &out->sums.weights, has_weights ? kMostWeightBytes * sums : 0, false},
      {&unpacked->sums.frequencies, &out->sums.frequencies, sums == 0 ? 0 : kMostFrequencyBytes, false},
      {&unpacked->sums.names, &out->sums.names, 0, false},
      {&unpacked->sums.signs, &out->sums.signs, (sums + 7) / 8, false},
      {&unpacked->sum_planes, &out->sum_planes, kSumPlanes * counts.dense, true},
      {&unpacked->weight_planes, &out->weight_planes, has_weights ? kWeightPlanes * counts.dense : 0, true},
  };
  int at = 1;  // after the table
  for (const auto& stream : streams) {
    const std::string name = absl::StrCat("update: ", kUpdateStreamNames[at++]);
    // Names are as many bytes as they are, but stored unpacked, so that they cannot be more than are left.
    const bool is_names = stream.raw == &out->sums.names;
    const uint64_t most = is_names && sums > 0 ? reader->left() : stream.most;
    if (absl::Status s = ReadPackedStream(name, most, reader, stream.unpacked, stream.raw); !s.ok()) return s;
    if (stream.exact && stream.raw->size() != stream.most) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " stream of ", stream.raw->size(), " bytes, not ", stream.most));
    }
  }
  return reader->left() == 0 ? absl::OkStatus() : Error(absl::StrCat(reader->left(), " bytes left over"));
}

}  // namespace

absl::StatusOr<Update> DecodeUpdate(const Layout& layout, absl::string_view bytes) {
  UpdateScratch scratch;
  Update update;
  if (absl::Status s = DecodeUpdate(layout, bytes, &scratch, &update); !s.ok()) return s;
  return update;
}

absl::Status DecodeUpdate(const Layout& layout, absl::string_view bytes, UpdateScratch* scratch,
                          Update* update) {
  absl::StatusOr<ByteReader> opened = OpenSealed(kUpdateSeal, layout, bytes);
  if (!opened.ok()) return opened.status();
  ByteReader reader = *opened;
  uint8_t averaging;
  uint64_t total_weight;
  if (!reader.U8(&averaging) || !reader.Varint(&total_weight)) return Error("header cut short");
  if (averaging > static_cast<uint8_t>(Averaging::kContributors)) return Error("unknown averaging");
  if (total_weight < 1 || total_weight > kMostWeight)
    return Error(absl::StrCat("total weight ", total_weight));
  update->averaging = static_cast<Averaging>(averaging);
  update->total_weight = static_cast<int64_t>(total_weight);

  UpdateStreams<std::string>& unpacked = scratch->memory()->streams;
  UpdateStreams<absl::string_view> streams;
  // A row has at most 4 bytes, two varints and the sites left out.
  const uint64_t most_table = static_cast<uint64_t>(layout.tensors()) * (24 + 2 * kMostSites);
  if (absl::Status s =
          ReadPackedStream("update: table", most_table, &reader, &unpacked.table, &streams.table);
      !s.ok()) {
    return s;
  }
  ByteReader table(streams.table);
  update->tensors.resize(layout.tensors());
  std::vector<TableRow> rows(layout.tensors());
  Counts counts;
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = ReadRow(layout.size(t), &table, &update->tensors[t], &rows[t]); !s.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(s.message(), " (tensor ", t, ")"));
    }
    CountRow(layout.size(t), update->tensors[t].form, rows[t], &counts);
  }
  if (table.left() != 0) return Error("table has bytes left over");
  if (absl::Status s = ReadStreams(layout, counts, update->averaging, &reader, &unpacked, &streams);
      !s.ok()) {
    return s;
  }
  UpdateReader update_reader(streams, counts, scratch->memory()->path, update);
  for (int t = 0; t < layout.tensors(); ++t) {
    if (absl::Status s = update_reader.Tensor(layout.size(t), rows[t], &update->tensors[t]); !s.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(s.message(), " (tensor ", t, ")"));
    }
  }
  return update_reader.Finish();
}

}  // namespace isthmus
