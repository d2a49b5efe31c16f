#include "compression/golden_updates.h"

#include <functional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compression/byte_io.h"
#include "compression/codec.h"
#include "compression/packed_stream.h"
#include "compression/sealed_bytes.h"
#include "compression/test_random.h"
#include "compression/update.h"
#include "compression/update_streams.h"

namespace isthmus {
namespace {

constexpr uint64_t kDigest = 0x0123456789ABCDEFull;
constexpr const char* kSpec = "topk(k=16,block=4096)|levels(bits=1)|gaps|zstd(1)";
constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kDataLoss = absl::StatusCode::kDataLoss;

Layout SparseLayout() { return Layout({4200, 3, 4096}, kDigest); }
Layout DenseLayout() { return Layout({20, 3}, kDigest); }

DecodedFrame Frame(double scale, uint64_t seed) {
  const Layout layout = SparseLayout();
  const std::vector<float> zero(layout.total());
  const auto codec = std::move(ParseCodecSpec(kSpec)).value();
  const auto frame = codec->Encode(layout, zero, TestRandom(seed).Normals(layout.total(), scale));
  return codec->Decode(layout, frame.value()).value();
}

Update SmallUpdate(Averaging averaging) {
  const DecodedFrame a = Frame(0.01, 1), b = Frame(0.01, 2), below = Frame(1e-8, 3);
  return SumFrames(SparseLayout(), {{&a, 64}, {&b, 70}, {&below, 64}}, averaging).value();
}

Update DenseUpdate() {
  Update update;
  update.total_weight = 128;
  update.tensors = {{}, {TensorForm::kDense, -20, {}, {-(kSumLimit - 1), 0, 96}, {}, {1}}};
  return update;
}

Update DenseContributors() {
  Update update = DenseUpdate();
  update.averaging = Averaging::kContributors;
  update.tensors[1].weights = {128, 0, 64};
  return update;
}

// One tensor of positions as a bitmap, with cancelled sums; one whose block has over 255 magnitudes.
Update ManyUpdate() {
  TestRandom random(5);
  Update update;
  update.averaging = Averaging::kContributors;
  update.total_weight = 149;
  update.tensors.resize(3);
  const int64_t levels[] = {64 * 27, 64 * 28, 21 * 27};
  const int32_t weights[] = {64, 64, 21};
  for (int t : {0, 2}) {
    UpdateTensor& tensor = update.tensors[t];
    tensor.form = TensorForm::kSparse;
    tensor.exponent = -30;
    for (uint32_t position = 0; position < SparseLayout().size(t); ++position) {
      if (!random.Chance(t == 0 ? 0.3 : 0.1)) continue;
      int64_t sum = 0;
      int32_t weight = 0;
      for (int site = 0; site < 3; ++site) {
        if (weight > 0 && !random.Chance(0.2)) continue;
        sum += random.Chance(0.5) ? levels[site] : -levels[site];
        weight += weights[site];
      }
      if (t == 2) sum = static_cast<int64_t>(position) * 3 - 4000;
      tensor.positions.push_back(position);
      tensor.sums.push_back(sum);
      tensor.weights.push_back(weight);
    }
  }
  return update;
}

// Bytes changed in place, then the checksum set right.
std::string Patched(std::string bytes, size_t at, const std::string& patch) {
  bytes.replace(at, patch.size(), patch);
  FixChecksum(&bytes);
  return bytes;
}

// An envelope around hand-written bytes.
std::string Sealed(const std::function<void(ByteWriter*)>& write) {
  std::string out;
  BeginSealed({"update", "ISUP"}, SparseLayout(), &out);
  ByteWriter writer(&out);
  write(&writer);
  EndSealed(&out);
  return out;
}

// A good update's streams taken apart, changed, and sealed again.
std::string Restreamed(const std::string& good,
                       const std::function<void(UpdateStreams<std::string>*)>& change) {
  const size_t head = 18 + 1 + (static_cast<uint8_t>(good[19]) < 0x80 ? 1 : 2);
  ByteReader reader(absl::string_view(good).substr(head, good.size() - head - 8));
  UpdateStreams<std::string> streams;
  for (std::string* stream : streams.All()) ReadPackedStream("good", 1 << 20, &reader, stream).IgnoreError();
  change(&streams);
  std::string out = good.substr(0, head);
  ByteWriter writer(&out);
  for (const std::string* stream : streams.All()) WritePackedStream(*stream, 0, &writer);
  EndSealed(&out);
  return out;
}

class UpdateCases {
 public:
  explicit UpdateCases(std::vector<GoldenCase>* out) : out_(out) {}

  void AddAll() {
    AddGood();
    AddBadHeads();
    AddBadTables();
    AddBadStreams();
  }

 private:
  using Streams = UpdateStreams<std::string>;

  void Good(const char* name, const Layout& layout, const Update& update) {
    out_->push_back(
        {absl::StrCat("good_", name, ".update"), "", layout, EncodeUpdate(layout, update), {}, ""});
  }
  void Bad(const char* name, const char* message, std::string bytes, absl::StatusCode code = kInvalid) {
    out_->push_back(
        {absl::StrCat("bad_", name, ".update"), "", SparseLayout(), std::move(bytes), code, message});
  }
  void BadUpdate(const char* name, const char* message, const std::function<void(Update*)>& change) {
    Update update = SmallUpdate(Averaging::kContributors);
    change(&update);
    Bad(name, message, EncodeUpdate(SparseLayout(), update));
  }
  void BadStreams(const char* name, const char* message, const std::function<void(Streams*)>& change) {
    Bad(name, message, Restreamed(EncodeUpdate(SparseLayout(), ManyUpdate()), change));
  }

  void AddGood() {
    Good("peers", SparseLayout(), SmallUpdate(Averaging::kPeers));
    Good("contributors", SparseLayout(), SmallUpdate(Averaging::kContributors));
    Good("many", SparseLayout(), ManyUpdate());
    Good("dense", DenseLayout(), DenseUpdate());
    Good("dense_contributors", DenseLayout(), DenseContributors());
  }

  void AddBadHeads() {
    const std::string good = EncodeUpdate(SparseLayout(), SmallUpdate(Averaging::kPeers));
    std::string flipped = good;
    flipped[40] ^= 1;
    Bad("truncated", "checksum differs", good.substr(0, good.size() - 9), kDataLoss);
    Bad("bit_flip", "checksum differs", flipped, kDataLoss);
    Bad("version", "update of version 2", Patched(good, 4, "\x02"));
    Bad("layout", "update of layout", Patched(good, 10, "\xEE"));
    Bad("magic", "wrong magic: this is no update", Patched(good, 0, "ISFR"));
    Bad("averaging", "unknown averaging", Patched(good, 18, "\x02"));
    Bad("no_weight", "total weight 0", Sealed([](ByteWriter* w) { w->U16(0); }));
    Bad("claims_2_31", "table stream: claims 2147483648 bytes", Sealed([](ByteWriter* w) {
          w->U8(0);
          w->Varint(64);
          w->Varint(uint64_t{1} << 31);
          w->Varint(4);
          w->Bytes("abcd");
        }));
  }

  void AddBadTables() {
    BadUpdate("exponent", "exponent 109 is outside", [](Update* u) { u->tensors[0].exponent = 109; });
    BadUpdate("sum", "malformed sum (tensor 1)", [](Update* u) { u->tensors[1].sums[0] = kSumLimit + 1; });
    BadUpdate("weight", "malformed sum (tensor 1)", [](Update* u) { u->tensors[1].weights[0] = 0; });
    BadUpdate("position", "gaps end, or pass the tensor's end (tensor 1)",
              [](Update* u) { u->tensors[1].positions.back() = 3; });
    BadUpdate("positions_claimed", "claims 4 positions of 3 values", [](Update* u) {
      u->tensors[1].positions.resize(4, 5);
      u->tensors[1].sums.resize(4, 5);
      u->tensors[1].weights.resize(4, 5);
    });
    BadUpdate("left_out", "left out not ascending", [](Update* u) { u->tensors[1].left_out = {2, 2}; });
    // The flag of a bitmap stands beside the sparse form only.
    BadStreams("bitmap_form", "unknown form 130", [](Streams* s) { s->table[0] = '\x82'; });
  }

  void AddBadStreams() {
    BadStreams("bitmap_short", "bitmap stream of 524 bytes, not 525",
               [](Streams* s) { s->bitmaps.pop_back(); });
    BadStreams("bitmap_more", "bitmap has other positions than the table says (tensor 0)",
               [](Streams* s) { s->bitmaps[0] = '\xFF'; });
    BadStreams("bitmap_less", "bitmap has other positions than the table says (tensor 0)",
               [](Streams* s) { s->bitmaps[0] = '\0'; });
    BadStreams("dictionary_empty", "malformed sum (tensor 0)", [](Streams* s) { s->sums.sizes[0] = 0; });
    BadStreams("dictionary_large", "malformed sum (tensor 0)",
               [](Streams* s) { s->sums.sizes.replace(0, 1, "\xFF\x1F"); });
    BadStreams("dictionary_pair", "malformed sum (tensor 0)", [](Streams* s) { s->sums.entries[0] = 1; });
    BadStreams("literal_negative", "malformed sum (tensor 0)", [](Streams* s) { s->sums.literals[0] = 1; });
    BadStreams("literals_short", "malformed sum (tensor 2)", [](Streams* s) { s->sums.literals.pop_back(); });
    BadStreams("literals_left_over", "streams have bytes left over",
               [](Streams* s) { s->sums.literals.push_back(1); });
    BadStreams("frequencies", "malformed sum (tensor 0)", [](Streams* s) { ++s->sums.frequencies[1]; });
    BadStreams("sum_table_far", "malformed sum (tensor 0)", [](Streams* s) { s->sums.tables[0] = 0; });
    BadStreams("sum_table_unknown", "malformed sum (tensor 0)", [](Streams* s) { s->sums.tables[0] = 17; });
    BadStreams("names_state", "streams have bytes left over", [](Streams* s) {
      for (int b : {0, 2, 3}) s->sums.names[b] = 0;  // below 2^16
    });
    BadStreams("names_short", "streams have bytes left over",
               [](Streams* s) { s->sums.names.resize(s->sums.names.size() - 2); });
    BadStreams("names_left_over", "streams have bytes left over",
               [](Streams* s) { s->sums.names.append(2, '\0'); });
    BadStreams("signs_tail", "streams have bytes left over",
               [](Streams* s) { s->sums.signs.back() |= '\x80'; });
    BadStreams("signs_short", "streams have bytes left over", [](Streams* s) { s->sums.signs.pop_back(); });
  }

  std::vector<GoldenCase>* out_;
};

}  // namespace

void AddGoldenUpdates(std::vector<GoldenCase>* out) { UpdateCases(out).AddAll(); }

}  // namespace isthmus
