#include "compression/group_codec.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/byte_io.h"
#include "compression/difference.h"
#include "compression/float_mode.h"
#include "compression/group_encoder.h"
#include "compression/packed_stream.h"

namespace isthmus {
namespace {

const uint8_t* BytesOf(absl::string_view bytes) { return reinterpret_cast<const uint8_t*>(bytes.data()); }

template <typename... What>
absl::Status TensorError(int tensor, const What&... what) {
  return absl::InvalidArgumentError(absl::StrCat("frame: tensor ", tensor, ": ", what...));
}

}  // namespace

GroupCodec::GroupCodec(const CodecSpec& spec, const EncodePlan& plan)
    : spec_(spec),
      plan_(plan),
      text_(SpecText(spec)),
      form_(spec),
      signs_(spec.hadamard == kNoHadamard ? nullptr : std::make_unique<const HadamardSigns>(spec.hadamard)) {}

absl::StatusOr<std::string> GroupCodec::Encode(const Layout& layout, absl::Span<const float> anchor,
                                               absl::Span<const float> parameters) const {
  GroupScratch scratch;
  std::string frame;
  if (absl::Status s = EncodeInto(layout, anchor, parameters, &scratch, &frame); !s.ok()) return s;
  return frame;
}

absl::Status GroupCodec::EncodeInto(const Layout& layout, absl::Span<const float> anchor,
                                    absl::Span<const float> parameters, GroupScratch* scratch,
                                    std::string* frame) const {
  if (absl::Status s = CheckEncodeInput(layout, anchor, parameters); !s.ok()) return s;
  const PlainFloatScope plain;
  // Streams that are stored as they are get their values in place; room for those of absent tensors is given
  // back at the end.
  FrameBody& body = scratch->body;
  const size_t room = static_cast<size_t>(Limits(layout).value_bytes);
  const bool is_stored = spec_.zstd_level == 0;
  std::string front = is_stored ? StoredFront(layout, room) : std::string();
  std::string* values = is_stored ? frame : &body.values;
  if (values->size() < front.size() + room) values->resize(front.size() + room);
  int64_t written = 0;
  const absl::Status encoded =
      EncodeGroups(form_, signs_.get(), plan_, layout, anchor, parameters, &scratch->exponents, &body.tensors,
                   &body.levels, reinterpret_cast<uint8_t*>(&(*values)[front.size()]), &written);
  if (!encoded.ok()) return encoded;
  const size_t bytes = static_cast<size_t>(written);
  if (!is_stored) {
    body.values.resize(bytes);
    *frame = SealFrame(layout, text_, spec_.zstd_level, body);
    return absl::OkStatus();
  }
  if (bytes != room) {
    const size_t from = front.size();
    front = StoredFront(layout, bytes);
    std::memmove(&(*frame)[front.size()], &(*frame)[from], bytes);
  }
  std::memcpy(&(*frame)[0], front.data(), front.size());
  frame->resize(front.size() + bytes);
  EndFrame(0, body, frame);
  return absl::OkStatus();
}

// A frame up to its values, when it is stored as it is.
std::string GroupCodec::StoredFront(const Layout& layout, size_t value_bytes) const {
  std::string front;
  BeginFrame(layout, text_, &front);
  if (value_bytes == 0) return front;
  BeginPiece(&front);
  ByteWriter writer(&front);
  WritePackedStream(absl::string_view(), 0, &writer);  // no gaps
  writer.Varint(value_bytes);
  writer.Varint(value_bytes);
  return front;
}

absl::StatusOr<DecodedFrame> GroupCodec::Decode(const Layout& layout, absl::string_view frame) const {
  DecodedFrame decoded;
  FrameBody scratch;
  if (absl::Status s = DecodeInto(layout, frame, &scratch, &decoded); !s.ok()) return s;
  return decoded;
}

absl::Status GroupCodec::DecodeInto(const Layout& layout, absl::string_view frame, FrameBody* body,
                                    DecodedFrame* decoded) const {
  if (absl::Status s = OpenFrame(layout, text_, Limits(layout), frame, body); !s.ok()) return s;
  absl::string_view shifts = body->levels, integers = body->values;
  decoded->tensors.resize(layout.tensors());
  for (int t = 0; t < layout.tensors(); ++t) {
    const TensorHeader& header = body->tensors[t];
    DecodedTensor& tensor = decoded->tensors[t];
    tensor.form = header.form;
    tensor.exponent = header.exponent;
    tensor.mantissa_bits = 0;
    tensor.positions.clear();
    if (header.form == TensorForm::kAbsent) {
      tensor.mantissas.clear();
      continue;
    }
    if (absl::Status s = CheckHeader(header, t); !s.ok()) return s;
    const size_t groups = static_cast<size_t>(form_.GroupsOf(layout.size(t)));
    const size_t bytes = static_cast<size_t>(form_.BytesOf(layout.size(t)));
    if (shifts.size() < groups) return TensorError(t, "level stream ends");
    if (integers.size() < bytes) return TensorError(t, "value stream ends");
    tensor.mantissas.resize(static_cast<size_t>(layout.size(t)));
    tensor.mantissa_bits = form_.mantissa_bits();
    if (absl::Status s = CheckShifts(shifts.substr(0, groups), layout.size(t), t); !s.ok()) return s;
    if (absl::Status s = DecodeTensor(t, shifts, integers.substr(0, bytes), &tensor); !s.ok()) return s;
    shifts.remove_prefix(groups);
    integers.remove_prefix(bytes);
  }
  if (!shifts.empty() || !integers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("frame: level stream has ", shifts.size(),
                                                   " bytes left over, value stream ", integers.size()));
  }
  return absl::OkStatus();
}

absl::Status GroupCodec::DecodeTensor(int tensor, absl::string_view shifts, absl::string_view integers,
                                      DecodedTensor* out) const {
  const auto block = std::make_unique<GroupBlock>(form_, signs_.get(), plan_.path);
  const int64_t values = static_cast<int64_t>(out->mantissas.size());
  for (int64_t at = 0; at < values; at += kBlockValues) {
    const int of_block = static_cast<int>(std::min(kBlockValues, values - at));
    if (!block->Decode(BytesOf(integers) + form_.BytesOf(at), of_block, BytesOf(shifts) + at / form_.group(),
                       &out->mantissas[at])) {
      return TensorError(tensor, "an integer below -", form_.bits() == 8 ? 127 : 7);
    }
  }
  if (form_.bits() == 4 && values % 2 == 1 && static_cast<uint8_t>(integers.back()) > 15) {
    return TensorError(tensor, "value stream has bits that are not 0 after the last value");
  }
  return absl::OkStatus();
}

absl::Status GroupCodec::CheckShifts(absl::string_view shifts, int64_t tensor_values, int tensor) const {
  int64_t group = 0;
  for (int64_t at = 0; at < tensor_values; at += kBlockValues) {
    const int64_t of_block = group;
    bool fits = true;
    form_.ForEachSegment(
        static_cast<int>(std::min(kBlockValues, tensor_values - at)), [&](const GroupSegment& s) {
          const int most = form_.most_shift() - s.log2;
          const int64_t end = of_block + s.first_group + (s.values + form_.group() - 1) / form_.group();
          for (; group < end; ++group) fits &= static_cast<uint8_t>(shifts[group]) <= most;
        });
    if (!fits) return TensorError(tensor, "block ", at / kBlockValues, ": a shift is too large");
  }
  return absl::OkStatus();
}

int64_t GroupCodec::BoundBytes(const Layout& layout) const {
  return FrameBound(layout, text_, Limits(layout));
}

FrameLimits GroupCodec::Limits(const Layout& layout) const {
  FrameLimits limits;
  for (int t = 0; t < layout.tensors(); ++t) {
    limits.level_bytes += form_.GroupsOf(layout.size(t));
    limits.value_bytes += form_.BytesOf(layout.size(t));
  }
  return limits;
}

absl::Status GroupCodec::CheckHeader(const TensorHeader& header, int tensor) const {
  if (header.form != TensorForm::kDense) return TensorError(tensor, "not of the dense form");
  if (header.value_bits != form_.bits() || header.k != 0) {
    return TensorError(tensor, "other settings than the codec spec");
  }
  if (header.exponent < kLeastExponent || header.exponent > form_.most_exponent()) {
    return TensorError(tensor, "exponent ", header.exponent, " is outside ", kLeastExponent, " to ",
                       form_.most_exponent(), ", where values are finite");
  }
  return absl::OkStatus();
}

}  // namespace isthmus
