#include "compression/golden_cases.h"

#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compression/byte_io.h"
#include "compression/codec.h"
#include "compression/frame_format.h"
#include "compression/golden_carried.h"
#include "compression/golden_updates.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"
#include "compression/test_random.h"
#include "compression/update.h"

namespace isthmus {
namespace {

constexpr uint64_t kDigest = 0x0123456789ABCDEFull;
constexpr const char* kSparseSpec = "topk(k=16,block=4096)|levels(bits=1)|gaps|zstd(1)";
constexpr const char* kAutoSpec = "topk(k=16,block=4096,share=energy)|levels(bits=auto)|gaps|zstd(1)";
constexpr const char* kDenseSpec = "dense(bits=24)|zstd(1)";
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

Layout SparseLayout() { return Layout({4200, 3, 4096}, kDigest); }
Layout RowLayout() { return Layout({32768, 3, 4200}, kDigest, {64, 0, 42}); }
Layout DenseLayout() { return Layout({20, 3}, kDigest); }

std::string GoodFrame(const std::string& spec, const Layout& layout, double scale, uint64_t seed) {
  const std::vector<float> zero(layout.total());
  const auto codec = std::move(ParseCodecSpec(spec)).value();
  return codec->Encode(layout, zero, TestRandom(seed).Normals(layout.total(), scale)).value();
}

// Tensors of other tails and energies, so that each has its own k and value bits.
std::string AutoFrame(const Layout& layout) {
  std::vector<float> parameters = TestRandom(2).Normals(layout.total(), 0.01);
  for (int64_t i = layout.offset(2); i < layout.total(); ++i) {
    parameters[i] = parameters[i] * parameters[i] * parameters[i] * 3e4f;
  }
  const std::vector<float> zero(layout.total());
  return std::move(ParseCodecSpec(kAutoSpec)).value()->Encode(layout, zero, parameters).value();
}

// Matrices of which few rows have a difference: 32 of 512, which are sent by rows, and 10 of 100, too few to
// be worth it.
std::string RowFrame(const Layout& layout) {
  std::vector<float> parameters = TestRandom(3).Normals(layout.total(), 0.01);
  for (int t : {0, 2}) {
    const int64_t row_length = layout.row_length(t), every = t == 0 ? 16 : 10;
    for (int64_t i = 0; i < layout.size(t); ++i) {
      if (i / row_length % every != 3) parameters[layout.offset(t) + i] = 0;
    }
  }
  const std::vector<float> zero(layout.total());
  return std::move(ParseCodecSpec(kSparseSpec)).value()->Encode(layout, zero, parameters).value();
}

// A good frame taken apart, changed, and sealed again with the right checksum.
std::string Changed(const std::string& spec, const Layout& layout,
                    const std::function<void(FrameBody*)>& change) {
  const FrameLimits wide{1 << 20, 1 << 20, 1 << 20};
  const std::string good = spec == kAutoSpec          ? AutoFrame(layout)
                           : layout.row_length(0) > 0 ? RowFrame(layout)
                                                      : GoodFrame(spec, layout, 0.01, 1);
  FrameBody body = OpenFrame(layout, spec, wide, good).value();
  change(&body);
  return SealFrame(layout, spec, 1, body);
}

// The same with the raw bytes of the tensor table.
std::string ChangedTable(const std::string& spec, const Layout& layout,
                         const std::function<void(std::string*)>& change) {
  std::string frame = GoodFrame(spec, layout, 0.01, 1);
  frame.resize(frame.size() - 8);
  ByteReader reader(absl::string_view(frame).substr(20 + spec.size()));
  std::string raw;
  uint8_t is_piece = 0;
  size_t table = 0;
  while (reader.U8(&is_piece)) {
    for (int stream = 0; stream < 2; ++stream) {  // gaps and values, at last levels and table
      table = frame.size() - reader.left();
      if (!ReadPackedStream("stream", 1 << 20, &reader, &raw).ok()) return "";
    }
  }
  change(&raw);
  frame.resize(table);
  ByteWriter writer(&frame);
  WritePackedStream(raw, 1, &writer);
  EndSealed(&frame);
  return frame;
}

// The same frame with its gaps and values in these pieces, by their lengths.
std::string InPieces(const Layout& layout, const std::vector<std::pair<size_t, size_t>>& pieces) {
  const FrameLimits wide{1 << 20, 1 << 20, 1 << 20};
  const FrameBody body =
      OpenFrame(layout, kSparseSpec, wide, GoodFrame(kSparseSpec, layout, 0.01, 1)).value();
  FrameWriter writer(layout, kSparseSpec, 1, 0);
  size_t gap = 0, value = 0;
  for (const auto& [gaps, values] : pieces) {
    writer.Piece(absl::string_view(body.gaps).substr(gap, gaps),
                 absl::string_view(body.values).substr(value, values));
    gap += gaps;
    value += values;
  }
  writer.Piece(absl::string_view(body.gaps).substr(gap), absl::string_view(body.values).substr(value));
  return writer.Finish(body.levels, body.tensors);
}

// Blocks of which fewer than k values are not zero, with 256 and with no values after the last of them, and
// an absent tensor between others.
std::string FewFrame(const Layout& layout) {
  std::vector<float> parameters(layout.total());
  parameters[254] = parameters[510] = 0.5f;
  parameters[3839] = -0.5f;
  parameters[4199] = 0.25f;  // its block keeps one, so it is full
  parameters[4203 + 4095] = -0.125f;
  const auto codec = std::move(ParseCodecSpec(kSparseSpec)).value();
  return codec->Encode(layout, std::vector<float>(layout.total()), parameters).value();
}

// Bytes changed in place, then the checksum set right.
std::string Patched(std::string bytes, size_t at, const std::string& patch) {
  bytes.replace(at, patch.size(), patch);
  FixChecksum(&bytes);
  return bytes;
}

// An envelope around hand-written bytes.
std::string Sealed(const SealKind& kind, const Layout& layout,
                   const std::function<void(ByteWriter*)>& write) {
  std::string out;
  BeginSealed(kind, layout, &out);
  ByteWriter writer(&out);
  write(&writer);
  EndSealed(&out);
  return out;
}

std::string ClaimingFrame(uint64_t raw_bytes, uint64_t stored_bytes) {
  return Sealed({"frame", "ISFR"}, SparseLayout(), [&](ByteWriter* w) {
    w->U16(static_cast<uint16_t>(std::string(kSparseSpec).size()));
    w->Bytes(kSparseSpec);
    w->U8(1);
    w->Varint(raw_bytes);
    w->Varint(stored_bytes);
    w->Bytes("abcd");
  });
}

// Two pieces, each of which could be, but not both.
std::string ClaimingPieces() {
  FrameWriter writer(SparseLayout(), kSparseSpec, 1, 0);
  for (int piece = 0; piece < 2; ++piece) writer.Piece(std::string(40, '\0'), "");
  return writer.Finish("", std::vector<TensorHeader>(3));
}

void AddGoodFrames(std::vector<GoldenCase>* out) {
  const Layout layout = SparseLayout();
  const auto add = [&](const char* name, const std::string& spec, const Layout& of, double scale) {
    out->push_back({absl::StrCat("good_", name, ".frame"), spec, of, GoodFrame(spec, of, scale, 1), {}, ""});
  };
  add("one_bit", kSparseSpec, layout, 0.01);
  add("two_bits", "topk(k=16)|levels(bits=2)", layout, 0.01);
  add("three_bits", "topk(k=16)|levels(bits=3)|zstd(3)", layout, 0.01);
  add("tiny", kSparseSpec, layout, 0x1p-143);
  add("huge", kSparseSpec, layout, 0x1p+124);
  add("nothing", kSparseSpec, layout, 0);
  out->push_back(
      {"good_pieces.frame", kSparseSpec, layout, InPieces(layout, {{7, 0}, {0, 3}, {20, 1}}), {}, ""});
  out->push_back({"good_auto.frame", kAutoSpec, layout, AutoFrame(layout), {}, ""});
  out->push_back({"good_rows.frame", kSparseSpec, RowLayout(), RowFrame(RowLayout()), {}, ""});
  out->push_back({"good_few.frame", kSparseSpec, layout, FewFrame(layout), {}, ""});
  add("dense", kDenseSpec, DenseLayout(), 0.01);
  add("dense_tiny", kDenseSpec, DenseLayout(), 0x1p-143);
}

void AddBadEnvelopes(std::vector<GoldenCase>* out) {
  const Layout layout = SparseLayout();
  const std::string good = GoodFrame(kSparseSpec, layout, 0.01, 1);
  const auto add = [&](const char* name, std::string bytes, absl::StatusCode code, const char* message) {
    out->push_back(
        {absl::StrCat("bad_", name, ".frame"), kSparseSpec, layout, std::move(bytes), code, message});
  };
  std::string flipped = good;
  flipped[60] ^= 4;
  const std::string length(1, static_cast<char>(std::string(kSparseSpec).size()));
  add("empty", "", kDataLoss, "0 bytes is cut short");
  add("truncated", good.substr(0, good.size() / 2), kDataLoss, "checksum differs");
  add("bit_flip", flipped, kDataLoss, "checksum differs");
  add("oversize", std::string(1300, 'x'), kInvalid, "1300 bytes, at most");
  add("magic", Patched(good, 0, "ISUP"), kInvalid, "wrong magic: this is no frame");
  add("version", Patched(good, 4, "\x02"), kInvalid, "version 2, this program reads 1");
  add("tensor_count", Patched(good, 6, "\x04"), kInvalid, "4 tensors, the layout has 3");
  add("layout", Patched(good, 10, "\xEE"), kInvalid, "layout 0123456789abcdee, ours is 0123456789abcdef");
  add("spec", Patched(good, 20 + 8, "7"), kInvalid, "another codec spec than topk(k=16");
  add("spec_length", Patched(good, 19, "\xFF"), kInvalid, "codec spec cut short");
  add("left_over", Patched(good + "x", 0, "I"), kInvalid, "left over");
  add("claims_2_31", ClaimingFrame(uint64_t{1} << 31, 4), kInvalid,
      "gap stream: claims 2147483648 bytes, at most 66 fit");
  add("claims_stored", ClaimingFrame(18, uint64_t{1} << 40), kInvalid, "claims 1099511627776 stored bytes");
  add("piece_mark", Patched(good, 20 + std::string(kSparseSpec).size(), "\x02"), kInvalid,
      "neither another piece nor the last");
  add("piece_empty", InPieces(layout, {{7, 0}, {0, 0}}), kInvalid, "an empty piece");
  add("pieces_claim", ClaimingPieces(), kInvalid, "gap stream: claims 40 bytes, at most 26 fit");
  add("zstd", ClaimingFrame(18, 4), kInvalid, "gap stream: does not unpack");
}

void AddBadSparse(std::vector<GoldenCase>* out) {
  const auto add = [&](const char* name, const char* message, const std::function<void(FrameBody*)>& change) {
    const Layout layout = SparseLayout();
    out->push_back({absl::StrCat("bad_", name, ".frame"), kSparseSpec, layout,
                    Changed(kSparseSpec, layout, change), kInvalid, message});
  };
  const auto add_table = [&](const char* name, const char* message,
                             const std::function<void(std::string*)>& change) {
    const Layout layout = SparseLayout();
    out->push_back({absl::StrCat("bad_", name, ".frame"), kSparseSpec, layout,
                    ChangedTable(kSparseSpec, layout, change), kInvalid, message});
  };
  const std::string one = '\0' + std::string(16, '\xFF') + '\x0F';  // the first value of 4096 and no other
  add("k_beyond_block", "tensor 0: k 5000 is beyond a block of 4096",
      [](FrameBody* b) { b->tensors[0].k = 5000; });
  add("k_other", "tensor 2: k 17, the codec spec says 16", [](FrameBody* b) { b->tensors[2].k = 17; });
  add("value_bits", "tensor 1: 2 value bits, the codec spec says 1",
      [](FrameBody* b) { b->tensors[1].value_bits = 2; });
  add("exponent_not_finite", "tensor 0: exponent 109 is outside",
      [](FrameBody* b) { b->tensors[0].exponent = 109; });
  add("exponent_low", "tensor 0: exponent -150 is outside",
      [](FrameBody* b) { b->tensors[0].exponent = -150; });
  add("form", "tensor 0: not of the sparse form",
      [](FrameBody* b) { b->tensors[0].form = TensorForm::kDense; });
  add("form_unknown", "unknown form 4",
      [](FrameBody* b) { b->tensors[0].form = static_cast<TensorForm>(4); });
  add_table("form_absent", "tensor 1 has unknown form 0", [](std::string* t) { (*t)[1 + 1] = 0; });
  add_table("table_short", "table stream of 18 bytes, not 19", [](std::string* t) { t->pop_back(); });
  add_table("table_empty", "table stream of 0 bytes, not 1", [](std::string* t) { t->clear(); });
  add_table("table_absent", "table stream of 19 bytes, not 13", [](std::string* t) { (*t)[0] = 5; });
  add_table("table_tail", "tensors beyond the layout's", [](std::string* t) { (*t)[0] = 15; });
  add("levels_short", "level stream ends in tensor 2", [](FrameBody* b) { b->levels.pop_back(); });
  add("levels_long", "level stream has 1 bytes left over", [](FrameBody* b) { b->tensors[1] = {}; });
  add("levels_gone", "gap stream has bytes left over", [](FrameBody* b) { b->levels.back() = 0; });
  add("values_short", "value stream ends in tensor 2", [](FrameBody* b) { b->values.pop_back(); });
  add("values_long", "value stream of 5 bytes, the values at the positions take 1", [&](FrameBody* b) {
    b->gaps = one + std::string(2, '\0') + one;  // each block sends its first value only
  });
  add("values_tail", "bits that are not 0", [](FrameBody* b) { b->values.back() |= '\x80'; });
  add("gap_overflow", "tensor 0, block 0: gaps pass the block's end",
      [](FrameBody* b) { b->gaps = std::string(17, '\xFF') + b->gaps.substr(17); });
  add("gap_none", "tensor 0, block 0: levels, but no positions",
      [](FrameBody* b) { b->gaps = std::string(16, '\xFF') + '\x10' + b->gaps.substr(17); });
  add("gap_short", "tensor 2, block 0: gap stream ends", [](FrameBody* b) { b->gaps.pop_back(); });
  add("gap_left_over", "gap stream has bytes left over", [](FrameBody* b) { b->gaps.push_back('\x01'); });
}

void AddBadAuto(std::vector<GoldenCase>* out) {
  const auto add = [&](const char* name, const char* message, const std::function<void(FrameBody*)>& change) {
    const Layout layout = SparseLayout();
    out->push_back({absl::StrCat("bad_auto_", name, ".frame"), kAutoSpec, layout,
                    Changed(kAutoSpec, layout, change), kInvalid, message});
  };
  add("k", "tensor 0: k 65, the codec spec says 1 to 64", [](FrameBody* b) { b->tensors[0].k = 65; });
  add("k_none", "tensor 2: k 0, the codec spec says 1 to 64", [](FrameBody* b) { b->tensors[2].k = 0; });
  add("bits", "tensor 0: 4 value bits, the codec spec says 1 to 3",
      [](FrameBody* b) { b->tensors[0].value_bits = 4; });
  add("bits_none", "tensor 0: 0 value bits", [](FrameBody* b) { b->tensors[0].value_bits = 0; });
}

void AddBadRows(std::vector<GoldenCase>* out) {
  const auto add = [&](const char* name, const char* message, const std::function<void(FrameBody*)>& change) {
    const Layout layout = RowLayout();
    out->push_back({absl::StrCat("bad_rows_", name, ".frame"), kSparseSpec, layout,
                    Changed(kSparseSpec, layout, change), kInvalid, message});
  };
  add("none", "tensor 0: 0 rows are sent, the layout has 512", [](FrameBody* b) { b->tensors[0].rows = 0; });
  add("many", "tensor 0: 513 rows are sent, the layout has 512",
      [](FrameBody* b) { b->tensors[0].rows = 513; });
  add("huge", "tensor 0: 4294967295 rows", [](FrameBody* b) { b->tensors[0].rows = UINT32_MAX; });
  add("of_a_vector", "tensor 1: 1 rows are sent, the layout has 0", [](FrameBody* b) {
    b->tensors[1].form = TensorForm::kRows;
    b->tensors[1].rows = 1;
  });
  add("k", "k 260 of 32 rows, the codec spec lets all rows keep 128",
      [](FrameBody* b) { b->tensors[0].k = 260; });
  add("k_none", "tensor 0: k 0 of 32 rows", [](FrameBody* b) { b->tensors[0].k = 0; });
  add("k_beyond_block", "tensor 0: k 4097 is beyond", [](FrameBody* b) { b->tensors[0].k = 4097; });
  add("pass", "tensor 0: gap stream ends, or passes the last of 512 rows",
      [](FrameBody* b) { b->gaps[0] = 50; });
  add("pass_far", "tensor 0: gap stream ends, or passes the last of 512 rows",
      [](FrameBody* b) { b->gaps.insert(0, 2, '\xFF'); });
  add("end", "tensor 0: gap stream ends, or passes", [](FrameBody* b) { b->gaps.resize(31); });
  add("levels", "level stream ends in tensor 2", [](FrameBody* b) {
    b->tensors[0].rows = 96;
    b->tensors[0].k = 64;
  });
  add("fewer", "tensor 1, block 0: gaps pass", [](FrameBody* b) { b->tensors[0].rows = 1; });
}

void AddBadDense(std::vector<GoldenCase>* out) {
  const auto add = [&](const char* name, const char* message, const std::function<void(FrameBody*)>& change) {
    const Layout layout = DenseLayout();
    out->push_back({absl::StrCat("bad_dense_", name, ".frame"), kDenseSpec, layout,
                    Changed(kDenseSpec, layout, change), kInvalid, message});
  };
  add("exponent", "tensor 1: exponent 106 is outside", [](FrameBody* b) { b->tensors[1].exponent = 106; });
  add("short", "tensor 1: value stream ends", [](FrameBody* b) { b->values.pop_back(); });
  add("left_over", "value stream has 9 bytes left over", [](FrameBody* b) { b->tensors[1] = {}; });
  add("form", "tensor 0: not of the dense form",
      [](FrameBody* b) { b->tensors[0].form = TensorForm::kSparse; });
  add("k", "tensor 0: other settings", [](FrameBody* b) { b->tensors[0].k = 16; });
  add("mantissa", "tensor 0: a mantissa of over 23 bits", [](FrameBody* b) {
    b->values[0] = b->values[20] = 0;
    b->values[40] = '\x80';
  });
}

constexpr const char* kMaskSpec = "mask(k=64,block=4096,seed=7)|levels(bits=1)|zstd(1)";

void AddMasks(std::vector<GoldenCase>* out) {
  const Layout layout = SparseLayout();
  const auto good = [&](const char* name, const char* spec, double scale) {
    out->push_back(
        {absl::StrCat("good_", name, ".frame"), spec, layout, GoodFrame(spec, layout, scale, 1), {}, ""});
  };
  good("mask", kMaskSpec, 0.01);
  good("mask_tiny", kMaskSpec, 0x1p-147);
  good("mask_three_bits", "mask(k=64,block=4096,seed=7)|levels(bits=3)|zstd(1)", 0.01);
  const auto bad = [&](const char* name, const char* message, const std::function<void(FrameBody*)>& change) {
    out->push_back({absl::StrCat("bad_mask_", name, ".frame"), kMaskSpec, layout,
                    Changed(kMaskSpec, layout, change), kInvalid, message});
  };
  bad("form", "tensor 0: not of the sparse form",
      [](FrameBody* b) { b->tensors[0].form = TensorForm::kDense; });
  bad("k", "tensor 1: other settings", [](FrameBody* b) { b->tensors[1].k = 63; });
  bad("exponent", "tensor 2: exponent 109 is outside", [](FrameBody* b) { b->tensors[2].exponent = 109; });
  bad("levels_short", "tensor 2: level stream ends", [](FrameBody* b) { b->levels.pop_back(); });
  bad("levels_long", "level stream has 1 bytes left over", [](FrameBody* b) { b->tensors[1] = {}; });
  bad("values_short", "16 bytes for 131 values", [](FrameBody* b) { b->values.pop_back(); });
  bad("tail", "bits that are not 0", [](FrameBody* b) { b->values.back() |= '\x80'; });
  bad("gaps", "gap stream: claims 1 bytes, at most 0", [](FrameBody* b) { b->gaps = "x"; });
}

constexpr const char* kInt8Spec = "dense(bits=8,group=64)|zstd(1)";
constexpr const char* kInt4Spec = "dense(bits=4,group=64)|zstd(1)";
constexpr const char* kHadamardSpec = "dense(bits=4,group=16,hadamard=7)|zstd(1)";

// Of a whole block, and of segments of 128 and 11 values after it.
Layout GroupLayout() { return Layout({4096 + 139, 3, 1}, kDigest); }

void AddGroups(std::vector<GoldenCase>* out) {
  const Layout layout = GroupLayout();
  const auto good = [&](const char* name, const char* spec, double scale) {
    out->push_back(
        {absl::StrCat("good_", name, ".frame"), spec, layout, GoodFrame(spec, layout, scale, 1), {}, ""});
  };
  good("int8", kInt8Spec, 0.01);
  good("int8_tiny", kInt8Spec, 0x1p-143);
  good("int8_huge", kInt8Spec, 0x1p+125);
  good("int8_stored", "dense(bits=8,group=4096)|zstd(0)", 0.01);
  good("int4", kInt4Spec, 0.01);
  good("int4_hadamard", kHadamardSpec, 0.01);
  good("int4_hadamard_huge", kHadamardSpec, 0x1p+125);
  const auto bad = [&](const char* name, const char* spec, const char* message,
                       const std::function<void(FrameBody*)>& change) {
    out->push_back({absl::StrCat("bad_", name, ".frame"), spec, layout, Changed(spec, layout, change),
                    kInvalid, message});
  };
  bad("int8_shift", kInt8Spec, "tensor 0: block 1: a shift is too large",
      [](FrameBody* b) { b->levels[65] = 14; });
  bad("int8_integer", kInt8Spec, "tensor 0: an integer below -127",
      [](FrameBody* b) { b->values[5] = '\x80'; });
  bad("int8_short_integer", kInt8Spec, "tensor 1: an integer below -127",
      [](FrameBody* b) { b->values[4096 + 139] = '\x80'; });
  bad("int8_exponent", kInt8Spec, "exponent 109 is outside -149 to 108",
      [](FrameBody* b) { b->tensors[0].exponent = 109; });
  bad("int8_bits", kInt8Spec, "tensor 0: other settings",
      [](FrameBody* b) { b->tensors[0].value_bits = 24; });
  bad("int8_form", kInt8Spec, "tensor 2: not of the dense form",
      [](FrameBody* b) { b->tensors[2].form = TensorForm::kSparse; });
  bad("int8_shifts_short", kInt8Spec, "tensor 2: level stream ends",
      [](FrameBody* b) { b->levels.pop_back(); });
  bad("int8_short", kInt8Spec, "tensor 2: value stream ends", [](FrameBody* b) { b->values.pop_back(); });
  bad("int8_left_over", kInt8Spec, "level stream has 1 bytes left over, value stream 1",
      [](FrameBody* b) { b->tensors[2] = {}; });
  bad("int8_gaps", kInt8Spec, "gap stream: claims 1 bytes, at most 0", [](FrameBody* b) { b->gaps = "x"; });
  bad("int4_shift", kInt4Spec, "tensor 0: block 0: a shift is too large",
      [](FrameBody* b) { b->levels[0] = 18; });
  bad("int4_integer", kInt4Spec, "tensor 0: an integer below -7",
      [](FrameBody* b) { b->values[7] = '\x18'; });
  bad("int4_tail", kInt4Spec, "tensor 1: value stream has bits that are not 0",
      [](FrameBody* b) { b->values[(4096 + 140) / 2 + 1] |= '\x10'; });
  bad("int4_hadamard_shift", kHadamardSpec, "tensor 0: block 0: a shift is too large",
      [](FrameBody* b) { b->levels[0] = 10; });
  bad("int4_hadamard_segment_shift", kHadamardSpec, "tensor 0: block 1: a shift is too large",
      [](FrameBody* b) { b->levels[256] = 15; });
  bad("int4_hadamard_exponent", kHadamardSpec, "exponent 105 is outside -149 to 104",
      [](FrameBody* b) { b->tensors[0].exponent = 105; });
}

template <typename Values>
std::string Listed(const Values& values) {
  std::string text;
  for (auto v : values) absl::StrAppend(&text, text.empty() ? "" : " ", v);
  return text;
}

}  // namespace

std::vector<GoldenCase> GoldenCases() {
  std::vector<GoldenCase> cases;
  AddGoodFrames(&cases);
  AddBadEnvelopes(&cases);
  AddBadSparse(&cases);
  AddBadAuto(&cases);
  AddBadRows(&cases);
  AddBadDense(&cases);
  AddGroups(&cases);
  AddMasks(&cases);
  AddGoldenUpdates(&cases);
  AddGoldenCarried(&cases);
  return cases;
}

absl::Status ReadGolden(const GoldenCase& golden, const std::string& bytes, std::string* text) {
  text->clear();
  if (absl::EndsWith(golden.name, ".carried")) return ReadGoldenCarried(golden, bytes, text);
  if (absl::EndsWith(golden.name, ".update")) {
    const absl::StatusOr<Update> update = DecodeUpdate(golden.layout, bytes);
    if (!update.ok()) return update.status();
    absl::StrAppend(text, "averaging ", static_cast<int>(update->averaging), " weight ", update->total_weight,
                    "\n");
    for (const UpdateTensor& t : update->tensors) {
      absl::StrAppend(text, "form ", static_cast<int>(t.form), " exponent ", t.exponent, "\n  left out ",
                      Listed(t.left_out), "\n  positions ", Listed(t.positions), "\n  sums ", Listed(t.sums),
                      "\n  weights ", Listed(t.weights), "\n");
    }
    return absl::OkStatus();
  }
  const absl::StatusOr<DecodedFrame> frame =
      std::move(ParseCodecSpec(golden.spec)).value()->Decode(golden.layout, bytes);
  if (!frame.ok()) return frame.status();
  for (const DecodedTensor& t : frame->tensors) {
    absl::StrAppend(text, "form ", static_cast<int>(t.form), " exponent ", t.exponent, " bits ",
                    t.mantissa_bits, "\n  positions ", Listed(t.positions), "\n  mantissas ",
                    Listed(t.mantissas), "\n");
  }
  return absl::OkStatus();
}

void FixChecksum(std::string* bytes) {
  if (bytes->size() < 8) return;
  bytes->resize(bytes->size() - 8);
  EndSealed(bytes);
}

}  // namespace isthmus
