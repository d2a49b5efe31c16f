#include "compression/group_encoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <thread>

#include "compression/difference.h"
#include "compression/float_mode.h"

namespace isthmus {
namespace {

constexpr int64_t kRunBlocks = 64;  // a share of work

// Where a tensor's parts begin.
struct Place {
  int64_t group = 0, byte = 0;
};

std::vector<Place> PlacesOf(const GroupForm& form, const Layout& layout) {
  std::vector<Place> places(layout.tensors() + 1);
  for (int t = 0; t < layout.tensors(); ++t) {
    places[t + 1] = {places[t].group + form.GroupsOf(layout.size(t)),
                     places[t].byte + form.BytesOf(layout.size(t))};
  }
  return places;
}

// Consecutive blocks of one tensor.
struct Run {
  int tensor = 0;
  int64_t first = 0, end = 0;  // within the tensor
};

std::vector<Run> DivideIntoRuns(const Layout& layout) {
  std::vector<Run> runs;
  for (int t = 0; t < layout.tensors(); ++t) {
    for (int64_t first = 0; first < layout.size(t); first += kRunBlocks * kBlockValues) {
      runs.push_back({t, first, std::min(first + kRunBlocks * kBlockValues, layout.size(t))});
    }
  }
  return runs;
}

class Encoder {
 public:
  Encoder(const GroupForm& form, const HadamardSigns* signs, const EncodePlan& plan, const Layout& layout,
          absl::Span<const float> anchor, absl::Span<const float> parameters, int16_t* exponents,
          uint8_t* integers)
      : form_(form),
        signs_(signs),
        plan_(plan),
        layout_(layout),
        anchor_(anchor),
        parameters_(parameters),
        places_(PlacesOf(form, layout)),
        runs_(DivideIntoRuns(layout)),
        exponents_(exponents),
        integers_(integers) {}

  // Every group at its own exponent.
  absl::Status First() {
    std::atomic<size_t> first_bad{runs_.size()};
    std::vector<int64_t> bad_block(runs_.size());
    ForEachRun([&](size_t r, GroupBlock* block) {
      const Run& run = runs_[r];
      for (int64_t at = run.first; r < first_bad && at < run.end; at += kBlockValues) {
        if (block->Encode(AnchorAt(run, at), ParametersAt(run, at), ValuesAt(run, at), ExponentsAt(run, at),
                          IntegersAt(run, at))) {
          continue;
        }
        bad_block[r] = at;
        size_t bad = first_bad;
        while (r < bad && !first_bad.compare_exchange_weak(bad, r)) {
        }
        return;
      }
    });
    if (first_bad == runs_.size()) return absl::OkStatus();
    return NonFiniteDifference(layout_, runs_[first_bad].tensor, bad_block[first_bad], anchor_, parameters_);
  }

  // The tensors' exponents; what they leave of small groups.
  std::vector<TensorHeader> Second() {
    std::vector<TensorHeader> tensors(layout_.tensors());
    for (int t = 0; t < layout_.tensors(); ++t) tensors[t] = HeaderOf(t);
    ForEachRun([&](size_t r, GroupBlock* block) {
      const Run& run = runs_[r];
      const int least = tensors[run.tensor].exponent;
      if (tensors[run.tensor].form == TensorForm::kAbsent) return;
      for (int64_t at = run.first; at < run.end; at += kBlockValues) {
        const int16_t* exponents = ExponentsAt(run, at);
        const int values = ValuesAt(run, at);
        const auto is_small = [least](int e) { return e < least && e != kNoGroupExponent; };
        if (!std::any_of(exponents, exponents + form_.GroupsOf(values), is_small)) continue;
        block->EncodeAgain(AnchorAt(run, at), ParametersAt(run, at), values, exponents, least,
                           IntegersAt(run, at));
      }
    });
    return tensors;
  }

  // The shifts of the tensors that are there, and their integers moved together.
  int64_t Gather(const std::vector<TensorHeader>& tensors, std::string* shifts) {
    shifts->resize(static_cast<size_t>(places_.back().group));
    char* shift = &(*shifts)[0];
    int64_t bytes = 0;
    for (int t = 0; t < layout_.tensors(); ++t) {
      if (tensors[t].form == TensorForm::kAbsent) continue;
      const int least = tensors[t].exponent;
      for (int64_t g = places_[t].group; g < places_[t + 1].group; ++g) {
        *shift++ = static_cast<char>(std::max<int>(exponents_[g], least) - least);
      }
      const int64_t size = places_[t + 1].byte - places_[t].byte;
      if (bytes != places_[t].byte) std::memmove(integers_ + bytes, integers_ + places_[t].byte, size);
      bytes += size;
    }
    shifts->resize(static_cast<size_t>(shift - shifts->data()));
    return bytes;
  }

 private:
  template <typename Work>
  void ForEachRun(Work work) {
    std::atomic<size_t> next{0};
    const auto take_runs = [&] {
      const PlainFloatScope plain;
      const auto block = std::make_unique<GroupBlock>(form_, signs_, plan_.path);
      for (size_t r = next++; r < runs_.size(); r = next++) work(r, block.get());
    };
    std::vector<std::thread> others;
    const size_t threads = std::min<size_t>(std::max(plan_.threads, 1), runs_.size());
    for (size_t i = 1; i < threads; ++i) others.emplace_back(take_runs);
    take_runs();
    for (std::thread& other : others) other.join();
  }

  TensorHeader HeaderOf(int tensor) const {
    TensorHeader header;
    int most = kNoGroupExponent;
    ForEachGroupOf(tensor, [&](int64_t group, int log2) {
      const int e = exponents_[group];
      if (e != kNoGroupExponent) most = std::max(most, e + log2);
    });
    if (most == kNoGroupExponent) return header;
    header.form = TensorForm::kDense;
    header.value_bits = static_cast<uint8_t>(form_.bits());
    header.exponent = static_cast<int16_t>(std::max(most - form_.most_shift(), kLeastExponent));
    return header;
  }

  // Calls visit(group, log2 of its segment); whole blocks are of one segment.
  template <typename Visit>
  void ForEachGroupOf(int tensor, Visit visit) const {
    int64_t group = places_[tensor].group;
    const int64_t values = layout_.size(tensor);
    for (int64_t at = 0; at < values; at += kBlockValues) {
      const int64_t of_block = group;
      form_.ForEachSegment(static_cast<int>(std::min(kBlockValues, values - at)), [&](const GroupSegment& s) {
        const int64_t end = of_block + s.first_group + (s.values + form_.group() - 1) / form_.group();
        for (; group < end; ++group) visit(group, s.log2);
      });
    }
  }

  const float* AnchorAt(const Run& run, int64_t at) const {
    return anchor_.data() + layout_.offset(run.tensor) + at;
  }
  const float* ParametersAt(const Run& run, int64_t at) const {
    return parameters_.data() + layout_.offset(run.tensor) + at;
  }
  int ValuesAt(const Run& run, int64_t at) const {
    return static_cast<int>(std::min(kBlockValues, run.end - at));
  }
  int16_t* ExponentsAt(const Run& run, int64_t at) const {
    return exponents_ + places_[run.tensor].group + at / form_.group();
  }
  uint8_t* IntegersAt(const Run& run, int64_t at) const {
    return integers_ + places_[run.tensor].byte + form_.BytesOf(at);
  }

  const GroupForm form_;
  const HadamardSigns* const signs_;
  const EncodePlan plan_;
  const Layout& layout_;
  const absl::Span<const float> anchor_, parameters_;
  const std::vector<Place> places_;
  const std::vector<Run> runs_;
  int16_t* const exponents_;
  uint8_t* const integers_;
};

}  // namespace

absl::Status EncodeGroups(const GroupForm& form, const HadamardSigns* signs, const EncodePlan& plan,
                          const Layout& layout, absl::Span<const float> anchor,
                          absl::Span<const float> parameters, std::vector<int16_t>* exponents,
                          std::vector<TensorHeader>* tensors, std::string* shifts, uint8_t* integers,
                          int64_t* bytes) {
  int64_t groups = 0;
  for (int t = 0; t < layout.tensors(); ++t) groups += form.GroupsOf(layout.size(t));
  exponents->resize(static_cast<size_t>(groups));
  Encoder encoder(form, signs, plan, layout, anchor, parameters, exponents->data(), integers);
  if (absl::Status s = encoder.First(); !s.ok()) return s;
  *tensors = encoder.Second();
  *bytes = encoder.Gather(*tensors, shifts);
  return absl::OkStatus();
}

}  // namespace isthmus
