#include "daemon/training/difference_study.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "compression/codec.h"
#include "daemon/base/status.h"
#include "daemon/training/mask_code.h"

namespace isthmus {
namespace {

// Bits of a block of 4096 at the position bound: positions, values, levels.
double BlockBits(int64_t k, int bits) {
  const double n = kBlockValues;
  const double positions = (std::lgamma(n + 1) - std::lgamma(static_cast<double>(k) + 1) -
                            std::lgamma(n - static_cast<double>(k) + 1)) /
                           std::log(2);
  return positions + static_cast<double>(k * bits) + 8 * std::pow(2, bits - 1);
}

int64_t EqualK(int64_t k, int bits) {
  int64_t found = k;
  while (found > 1 && BlockBits(found, bits) > BlockBits(k, 1)) --found;
  return found;
}

double Energy(absl::Span<const float> values) {
  double sum = 0;
  for (float v : values) sum += static_cast<double>(v) * v;
  return sum;
}

// The kept magnitudes of one tensor, by block.
struct Tail {
  double sum = 0, blocks = 0;

  void Add(absl::Span<const uint8_t> mask, absl::Span<const float> values) {
    for (size_t at = 0; at < mask.size(); at += kBlockValues) {
      double count = 0, mean = 0, square = 0;
      for (size_t i = at; i < std::min<size_t>(at + kBlockValues, mask.size()); ++i) {
        if (!mask[i]) continue;
        count += 1;
        mean += std::abs(values[i]);
        square += static_cast<double>(values[i]) * values[i];
      }
      if (mean == 0) continue;
      sum += std::sqrt(square / count) / (mean / count);
      blocks += 1;
    }
  }
};

// All differences of a set at one k.
class Density {
 public:
  Density(const DifferenceSet& set, int64_t k) : set_(set), layout_(set.layout) {
    study_.k = k;
    study_.tensors.resize(layout_.tensors());
    tails_.resize(layout_.tensors());
    zeros_.assign(layout_.total(), 0.0f);
    energy_.assign(layout_.tensors(), 0.0);
  }

  absl::Status SetUp() {
    for (int bits = 1; bits <= 3; ++bits) {
      study_.equal_k[bits] = EqualK(study_.k, bits);
      ISTHMUS_ASSIGN_OR_RETURN(codecs_[bits],
                               ParseCodecSpec(absl::StrCat("topk(k=", study_.equal_k[bits],
                                                           ",block=4096)|levels(bits=", bits, ")")));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const DumpedDifference& one, absl::Span<const float> values) {
    std::vector<uint8_t> mask(values.size(), 0);
    for (int bits = 3; bits >= 1; --bits) {
      ISTHMUS_ASSIGN_OR_RETURN(const std::string frame, codecs_[bits]->Encode(layout_, values, zeros_));
      ISTHMUS_ASSIGN_OR_RETURN(const DecodedFrame decoded, codecs_[bits]->Decode(layout_, frame));
      AddCaptured(decoded, values, bits, bits == 1 ? &mask : nullptr);
    }
    for (int t = 0; t < layout_.tensors(); ++t) AddTensor(t, one, mask, values);
    AddToRound(one, mask);
    masks_[{one.round, one.site}] = std::move(mask);
    return absl::OkStatus();
  }

  DensityStudy Finish() {
    for (int t = 0; t < layout_.tensors(); ++t) {
      TensorStudy& tensor = study_.tensors[t];
      const double energy = std::max(energy_[t], 1e-300);
      tensor.kept_energy /= energy;
      for (int bits = 1; bits <= 3; ++bits) tensor.captured[bits] /= energy;
      tensor.tail = tails_[t].sum / std::max(1.0, tails_[t].blocks);
    }
    double touched = 0, kept = 0, by_chance = 0;
    for (const auto& [round, counts] : rounds_) {
      double in_round = 0;
      for (uint16_t count : counts) {
        touched += count > 0 ? 1 : 0;
        in_round += count;
      }
      kept += in_round;
      const double sites = static_cast<double>(sites_[round]);
      const double n = static_cast<double>(counts.size());
      by_chance += n * (1 - std::pow(1 - in_round / sites / n, sites));
    }
    study_.contributors = kept / std::max(1.0, touched);
    study_.contributors_by_chance = kept / std::max(1.0, by_chance);
    study_.kept_again = kept_again_ / std::max(1e-300, kept_again_by_chance_);
    return study_;
  }

 private:
  // Energy that the frame takes off; marks the positions it kept.
  void AddCaptured(const DecodedFrame& frame, absl::Span<const float> values, int bits,
                   std::vector<uint8_t>* mask) {
    for (int t = 0; t < layout_.tensors(); ++t) {
      const DecodedTensor& tensor = frame.tensors[t];
      for (size_t i = 0; i < tensor.positions.size(); ++i) {
        const size_t at = layout_.offset(t) + tensor.positions[i];
        const double value = values[at];
        const double rest = value - DecodedValue(tensor.mantissas[i], tensor.exponent);
        study_.tensors[t].captured[bits] += value * value - rest * rest;
        if (mask != nullptr) (*mask)[at] = 1;
      }
    }
  }

  void AddTensor(int t, const DumpedDifference& one, absl::Span<const uint8_t> whole_mask,
                 absl::Span<const float> whole) {
    const auto mask = whole_mask.subspan(layout_.offset(t), layout_.size(t));
    const auto values = whole.subspan(layout_.offset(t), layout_.size(t));
    TensorStudy& tensor = study_.tensors[t];
    energy_[t] += Energy(values);
    for (size_t i = 0; i < mask.size(); ++i) {
      if (!mask[i]) continue;
      tensor.kept += 1;
      tensor.kept_energy += static_cast<double>(values[i]) * values[i];
    }
    tails_[t].Add(mask, values);
    const std::vector<int64_t>& shape = set_.tensors[t].shape;
    const int64_t columns = shape.size() > 1 ? shape.back() : layout_.size(t);
    MaskContext context;
    const double plain = MaskBits(mask, columns, context);
    tensor.plain_bits += plain;
    context.row = true;
    tensor.row_bits += MaskBits(mask, columns, context);
    context.column = true;
    tensor.both_bits += MaskBits(mask, columns, context);
    context.row = false;
    tensor.column_bits += MaskBits(mask, columns, context);
    const auto before = masks_.find({one.round - 1, one.site});
    if (before == masks_.end()) return;
    context.column = false;
    context.before = absl::MakeSpan(before->second).subspan(layout_.offset(t), layout_.size(t));
    tensor.before_bits += MaskBits(mask, columns, context);
    tensor.before_plain_bits += plain;
    double kept = 0, kept_before = 0, both = 0;
    for (size_t i = 0; i < mask.size(); ++i) {
      kept += mask[i];
      kept_before += context.before[i];
      both += mask[i] & context.before[i];
    }
    kept_again_ += both;
    kept_again_by_chance_ += kept * kept_before / static_cast<double>(mask.size());
  }

  void AddToRound(const DumpedDifference& one, absl::Span<const uint8_t> mask) {
    std::vector<uint16_t>& counts = rounds_[one.round];
    counts.resize(mask.size(), 0);
    for (size_t i = 0; i < mask.size(); ++i) counts[i] += mask[i];
    ++sites_[one.round];
  }

  const DifferenceSet& set_;
  const Layout& layout_;
  DensityStudy study_;
  std::unique_ptr<Codec> codecs_[4];
  std::vector<Tail> tails_;
  std::vector<float> zeros_;
  std::vector<double> energy_;
  std::map<std::pair<int64_t, int64_t>, std::vector<uint8_t>> masks_;  // by round and site
  std::map<int64_t, std::vector<uint16_t>> rounds_;
  std::map<int64_t, int64_t> sites_;
  double kept_again_ = 0, kept_again_by_chance_ = 0;
};

std::string DensityTable(const DifferenceStudy& study, const DensityStudy& density) {
  std::string text = absl::StrFormat(
      "\nk %d: kept energy; energy taken off at equal bytes by 1 bit (k %d), 2 bits (k %d), 3 bits (k %d); "
      "rms "
      "over mean\nof the kept magnitudes; bits a position by context (real code lengths)\n",
      density.k, density.equal_k[1], density.equal_k[2], density.equal_k[3]);
  absl::StrAppend(
      &text, absl::StrFormat("  %-48s %6s %6s %6s %6s %6s %7s %7s %7s %7s %7s\n", "tensor", "kept", "1 bit",
                             "2 bits", "3 bits", "tail", "plain", "row", "column", "both", "before"));
  TensorStudy all;
  const auto row = [&text](const std::string& name, const TensorStudy& t, double kept) {
    const double before = t.before_plain_bits > 0 ? t.before_bits / t.before_plain_bits * t.plain_bits : 0;
    absl::StrAppend(
        &text, absl::StrFormat("  %-48s %6.3f %6.3f %6.3f %6.3f %6.3f %7.3f %7.3f %7.3f %7.3f %7.3f\n", name,
                               t.kept_energy, t.captured[1], t.captured[2], t.captured[3], t.tail,
                               t.plain_bits / kept, t.row_bits / kept, t.column_bits / kept,
                               t.both_bits / kept, before / kept));
  };
  for (size_t i = 0; i < study.tensors.size(); ++i) {
    const TensorStudy& t = density.tensors[i];
    const double share = study.energy_share[i];
    all.kept += t.kept;
    all.kept_energy += share * t.kept_energy;
    all.tail += t.tail * study.value_share[i];
    for (int bits = 1; bits <= 3; ++bits) all.captured[bits] += share * t.captured[bits];
    for (auto field : {&TensorStudy::plain_bits, &TensorStudy::row_bits, &TensorStudy::column_bits,
                       &TensorStudy::both_bits, &TensorStudy::before_bits, &TensorStudy::before_plain_bits}) {
      all.*field += t.*field;
    }
    if (t.kept > 0) row(study.tensors[i].name, t, static_cast<double>(t.kept));
  }
  row("all (weighted by energy)", all, static_cast<double>(std::max<int64_t>(1, all.kept)));
  absl::StrAppend(
      &text, absl::StrFormat("  contributors a touched value: %.3f (by chance %.3f); kept again the next "
                             "round: %.2f times as often as by chance\n",
                             density.contributors, density.contributors_by_chance, density.kept_again));
  return text;
}

}  // namespace

absl::StatusOr<DifferenceStudy> StudyDifferences(const DifferenceSet& set, const std::vector<int64_t>& ks) {
  if (set.differences.empty())
    return absl::InvalidArgumentError(absl::StrCat(set.folder, ": no differences"));
  DifferenceStudy study;
  study.tensors = set.tensors;
  study.differences = static_cast<int64_t>(set.differences.size());
  const Layout& layout = set.layout;
  study.energy_share.assign(layout.tensors(), 0.0);
  for (int t = 0; t < layout.tensors(); ++t) {
    study.value_share.push_back(static_cast<double>(layout.size(t)) / static_cast<double>(layout.total()));
  }
  std::vector<Density> densities;
  for (int64_t k : ks) {
    if (k < 1 || k > kBlockValues)
      return absl::InvalidArgumentError(absl::StrCat("k = ", k, " is not within 1 ... 4096"));
    densities.emplace_back(set, k);
    ISTHMUS_RETURN_IF_ERROR(densities.back().SetUp());
  }
  for (const DumpedDifference& one : set.differences) {
    ISTHMUS_ASSIGN_OR_RETURN(const std::vector<float> values, LoadDifference(set, one));
    const double energy = std::max(Energy(values), 1e-300);
    for (int t = 0; t < layout.tensors(); ++t) {
      const auto part = absl::MakeSpan(values).subspan(layout.offset(t), layout.size(t));
      study.energy_share[t] += Energy(part) / energy / static_cast<double>(study.differences);
    }
    for (Density& density : densities) ISTHMUS_RETURN_IF_ERROR(density.Add(one, values));
  }
  for (Density& density : densities) study.densities.push_back(density.Finish());
  return study;
}

std::string DifferenceTable(const DifferenceStudy& study) {
  std::string text = absl::StrFormat("%d differences\n  %-48s %8s %8s\n", study.differences, "tensor",
                                     "values %", "energy %");
  for (size_t i = 0; i < study.tensors.size(); ++i) {
    absl::StrAppend(&text, absl::StrFormat("  %-48s %8.2f %8.2f\n", study.tensors[i].name,
                                           100 * study.value_share[i], 100 * study.energy_share[i]));
  }
  for (const DensityStudy& density : study.densities) absl::StrAppend(&text, DensityTable(study, density));
  return text;
}

}  // namespace isthmus
