#include <algorithm>

#include "compression/bitmap_code.h"
#include "compression/gap_code.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"
#include "compression/update.h"
#include "compression/update_parts.h"

namespace isthmus {
namespace {

constexpr int kZstdLevel = 1;

// A byte a gap, and some for long ones, against a bit a value: about where both take the same once they are
// packed. Measured on independent positions; where they cluster both gain.
bool PaysBitmap(uint64_t positions, int64_t size) {
  return size >= kBlockValues && 5 * positions > static_cast<uint64_t>(size);
}

class UpdateWriter {
 public:
  UpdateWriter(const Layout& layout, const Update& update, UpdateScratch::Memory* memory)
      : layout_(layout),
        update_(update),
        out_(&memory->streams),
        passes_(SumPassesOf(memory->path)),
        gaps_(&memory->streams.gaps),
        sums_(memory->writer) {
    for (std::string* raw : out_->All()) raw->clear();
    sums_.Clear();
  }

  void Write() {
    for (int t = 0; t < layout_.tensors(); ++t) Tensor(layout_.size(t), update_.tensors[t]);
    sums_.Finish();
  }

 private:
  void Tensor(int64_t size, const UpdateTensor& tensor) {
    const int zeros = CommonZeros(tensor.sums);
    const bool is_bitmap = PaysBitmap(tensor.positions.size(), size);
    ByteWriter table(&out_->table);
    table.U8(static_cast<uint8_t>(tensor.form) | (is_bitmap ? kBitmapFlag : 0));
    table.U16(static_cast<uint16_t>(tensor.exponent));
    table.U8(static_cast<uint8_t>(zeros));
    table.Varint(tensor.positions.size());
    table.Varint(tensor.left_out.size());
    for (uint16_t site : tensor.left_out) table.U16(site);
    if (tensor.form == TensorForm::kSparse) {
      if (is_bitmap) {
        AppendBitmap(tensor.positions, size, &out_->bitmaps, passes_);
      } else {
        gaps_.BeginRange();
        for (uint32_t position : tensor.positions) gaps_.Position(position);
      }
      Sums(tensor, zeros);
    }
    if (tensor.form == TensorForm::kDense) {
      Planes(tensor.sums, zeros, kSumPlanes, &out_->sum_planes);
      Planes(tensor.weights, 0, kWeightPlanes, &out_->weight_planes);
    }
  }

  // Zero bits below the lowest one of all sums; they are not sent.
  int CommonZeros(const std::vector<int64_t>& sums) const {
    const uint64_t any = passes_.any(sums.data(), sums.size());
    return any == 0 ? 0 : __builtin_ctzll(any);
  }

  void Sums(const UpdateTensor& tensor, int zeros) {
    const auto sums = absl::MakeConstSpan(tensor.sums);
    const auto weights = absl::MakeConstSpan(tensor.weights);
    for (size_t first = 0, end; first < tensor.positions.size(); first = end) {
      end = BlockEnd(tensor.positions, first);
      sums_.Block(sums.subspan(first, end - first), zeros,
                  weights.empty() ? weights : weights.subspan(first, end - first));
    }
  }

  template <typename Value>
  static void Planes(const std::vector<Value>& values, int zeros, int planes, std::string* out) {
    const size_t first = out->size(), n = values.size();
    out->resize(first + planes * n);
    char* bytes = &(*out)[first];
    for (size_t i = 0; i < n; ++i) {
      const uint64_t bits = static_cast<uint64_t>(int64_t{values[i]} / (int64_t{1} << zeros));
      for (int p = 0; p < planes; ++p) bytes[p * n + i] = static_cast<char>(bits >> (8 * p));
    }
  }

  const Layout& layout_;
  const Update& update_;
  UpdateStreams<std::string>* out_;
  const SumPasses& passes_;
  GapWriter gaps_;
  SumWriter& sums_;
};

}  // namespace

UpdateScratch::UpdateScratch(SimdPath path) : memory_(new Memory(path)) {}
UpdateScratch::~UpdateScratch() = default;

std::string EncodeUpdate(const Layout& layout, const Update& update) {
  UpdateScratch scratch;
  return EncodeUpdate(layout, update, &scratch);
}

std::string EncodeUpdate(const Layout& layout, const Update& update, UpdateScratch* scratch) {
  UpdateStreams<std::string>& streams = scratch->memory()->streams;
  UpdateWriter(layout, update, scratch->memory()).Write();
  size_t raw_bytes = 0;
  for (const std::string* raw : streams.All()) raw_bytes += raw->size();
  std::string out;
  out.reserve(raw_bytes / 2);
  BeginSealed(kUpdateSeal, layout, &out);
  ByteWriter writer(&out);
  writer.U8(static_cast<uint8_t>(update.averaging));
  writer.Varint(static_cast<uint64_t>(update.total_weight));
  for (const std::string* raw : streams.All()) {
    // zstd would only try in vain on range codes and on signs.
    const bool is_packable = raw != &streams.sums.names && raw != &streams.sums.signs;
    WritePackedStream(*raw, is_packable ? kZstdLevel : 0, &writer);
  }
  EndSealed(&out);
  return out;
}

}  // namespace isthmus
