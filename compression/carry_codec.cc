#include "compression/carry_codec.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compression/byte_io.h"
#include "compression/carry_forms.h"
#include "compression/codec_spec.h"
#include "compression/float_mode.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"

namespace isthmus {
namespace {

constexpr absl::string_view kMagic = "ISCV";
constexpr int64_t kHeadBytes = 4 + 2 + 8 + 2;  // and the spec

// The carry-only forms.
class FormCarryCodec : public CarryCodec {
 public:
  explicit FormCarryCodec(const CodecSpec& spec) : spec_(spec), text_(SpecText(spec)) {}

  std::string spec() const override { return text_; }

  absl::StatusOr<std::string> Encode(absl::Span<const float> values) const override {
    if (values.size() > UINT32_MAX) return absl::InvalidArgumentError("carry: over 2^32 values");
    if (spec_.kind == CodecSpec::Kind::kFp8 || spec_.kind == CodecSpec::Kind::kNf4) {
      for (size_t i = 0; i < values.size(); ++i) {
        if (!std::isfinite(values[i])) {
          return absl::InvalidArgumentError(absl::StrCat("carry: value ", i, " is ",
                                                         std::isnan(values[i]) ? "NaN" : "Inf", ", which ",
                                                         text_, " cannot carry"));
        }
      }
    }
    const PlainFloatScope plain;
    CarryStreams streams;
    EncodeCarried(spec_, values, &streams);
    std::string out;
    ByteWriter writer(&out);
    writer.Bytes(kMagic);
    writer.U16(kFormatVersion);
    writer.U64(values.size());
    writer.U16(static_cast<uint16_t>(text_.size()));
    writer.Bytes(text_);
    WritePackedStream(streams.scales, spec_.zstd_level, &writer);
    WritePackedStream(streams.values, spec_.zstd_level, &writer);
    EndSealed(&out);
    return out;
  }

  absl::Status Decode(absl::string_view bytes, absl::Span<float> values) const override {
    const int64_t count = static_cast<int64_t>(values.size());
    if (static_cast<int64_t>(bytes.size()) > BoundBytes(count)) {
      return absl::InvalidArgumentError(
          absl::StrCat("carried values of ", bytes.size(), " bytes, at most ", BoundBytes(count), " fit"));
    }
    const absl::StatusOr<absl::string_view> covered = CheckedBytes("carried values", bytes);
    if (!covered.ok()) return covered.status();
    ByteReader reader(*covered);
    if (absl::Status s = ReadHead(&reader, values.size()); !s.ok()) return s;
    std::string scale_room, value_room;
    absl::string_view scales, coded;
    if (absl::Status s = ReadStream("scale", CarryScaleBytes(spec_, count), &reader, &scale_room, &scales);
        !s.ok()) {
      return s;
    }
    if (absl::Status s = ReadStream("value", CarryValueBytes(spec_, count), &reader, &value_room, &coded);
        !s.ok()) {
      return s;
    }
    if (reader.left() != 0) {
      return absl::InvalidArgumentError(absl::StrCat("carried values: ", reader.left(), " bytes left over"));
    }
    const PlainFloatScope plain;
    if (!DecodeCarried(spec_, scales, coded, values)) {
      return absl::InvalidArgumentError("carried values: a byte that no encoder writes");
    }
    return absl::OkStatus();
  }

  int64_t BoundBytes(int64_t values) const override {
    return kHeadBytes + static_cast<int64_t>(text_.size()) +
           PackedStreamBound(CarryScaleBytes(spec_, values)) +
           PackedStreamBound(CarryValueBytes(spec_, values)) + 8;
  }

 private:
  absl::Status ReadHead(ByteReader* reader, uint64_t count) const {
    absl::string_view magic, spec;
    uint16_t version = 0, spec_bytes = 0;
    uint64_t sent = 0;
    if (!reader->Bytes(4, &magic) || !reader->U16(&version) || !reader->U64(&sent) ||
        !reader->U16(&spec_bytes) || !reader->Bytes(spec_bytes, &spec)) {
      return absl::InvalidArgumentError("carried values: head cut short");
    }
    if (magic != kMagic) return absl::InvalidArgumentError("wrong magic: these are no carried values");
    if (version != kFormatVersion) {
      return absl::InvalidArgumentError(
          absl::StrCat("carried values of version ", version, ", this program reads ", kFormatVersion));
    }
    if (spec != text_) {
      return absl::InvalidArgumentError(absl::StrCat("carried values: another codec spec than ", text_));
    }
    if (sent != count) {
      return absl::InvalidArgumentError(
          absl::StrCat("carried values: ", sent, " of them, ", count, " are expected"));
    }
    return absl::OkStatus();
  }

  static absl::Status ReadStream(absl::string_view name, int64_t bytes, ByteReader* reader, std::string* room,
                                 absl::string_view* raw) {
    const absl::Status read = ReadPackedStream(absl::StrCat("carried values: ", name),
                                               static_cast<uint64_t>(bytes), reader, room, raw);
    if (read.ok() && static_cast<int64_t>(raw->size()) != bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("carried values: ", name, " stream of ", raw->size(), " bytes, not ", bytes));
    }
    return read;
  }

  const CodecSpec spec_;
  const std::string text_;
};

// Frames of one tensor, of the differences to zeros.
class FrameCarryCodec : public CarryCodec {
 public:
  explicit FrameCarryCodec(std::unique_ptr<Codec> codec) : codec_(std::move(codec)) {}

  std::string spec() const override { return codec_->spec(); }

  absl::StatusOr<std::string> Encode(absl::Span<const float> values) const override {
    const std::vector<float> zeros(values.size());
    return codec_->Encode(LayoutOf(static_cast<int64_t>(values.size())), values, zeros);
  }

  absl::Status Decode(absl::string_view bytes, absl::Span<float> values) const override {
    const absl::StatusOr<DecodedFrame> frame =
        codec_->Decode(LayoutOf(static_cast<int64_t>(values.size())), bytes);
    if (!frame.ok()) return frame.status();
    const PlainFloatScope plain;
    std::fill(values.begin(), values.end(), 0.0f);
    for (const DecodedTensor& t : frame->tensors) {
      for (size_t i = 0; i < t.mantissas.size(); ++i) {
        const size_t at = t.form == TensorForm::kSparse ? t.positions[i] : i;
        values[at] = DecodedValue(t.mantissas[i], t.exponent);
      }
    }
    return absl::OkStatus();
  }

  int64_t BoundBytes(int64_t values) const override { return codec_->BoundBytes(LayoutOf(values)); }

 private:
  static Layout LayoutOf(int64_t values) { return values == 0 ? Layout({}, 0) : Layout({values}, 0); }

  const std::unique_ptr<Codec> codec_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<CarryCodec>> ParseCarrySpec(absl::string_view spec,
                                                           const CodecOptions& options) {
  const absl::StatusOr<CodecSpec> parsed = ParseSpecText(spec);
  if (!parsed.ok()) return parsed.status();
  if (!IsSummable(*parsed)) return std::make_unique<FormCarryCodec>(*parsed);
  absl::StatusOr<std::unique_ptr<Codec>> codec = ParseCodecSpec(spec, options);
  if (!codec.ok()) return codec.status();
  return std::make_unique<FrameCarryCodec>(*std::move(codec));
}

}  // namespace isthmus
