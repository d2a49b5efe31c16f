#include "compression/sparse_merger.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "compression/bit_budget.h"
#include "compression/gap_code.h"
#include "compression/level_fit.h"
#include "compression/level_table.h"
#include "compression/sparse_blocks.h"
#include "compression/sparse_limits.h"

namespace isthmus {
namespace {

// Large enough for zstd, small beside the memory at hand. The bytes of a frame hang on it.
constexpr size_t kPieceBytes = 1 << 18;

// Most bytes that a frame of these plans takes, but for its table and its envelope.
int64_t MostBytes(const Layout& layout, absl::Span<const TensorWork> work) {
  int64_t bytes = 0;
  for (int t = 0; t < layout.tensors(); ++t) {
    const TensorPlan& plan = work[t].plan;
    const int64_t kept = MostKept(layout.size(t), plan.k);
    bytes += GapBound(kept, layout.size(t)) + PackedBytes(kept, plan.value_bits) +
             BlocksOf(layout.size(t)) * LevelsOf(plan.value_bits);
  }
  return bytes;
}

// A block is sent when its largest mean is above this: some level of it is then not 0. Exact.
double LeastSent(int exponent) { return std::ldexp(kZeroLevelBound, exponent); }

std::string RowGaps(absl::Span<const uint32_t> rows) {
  std::string gaps;
  GapWriter writer(&gaps);
  for (uint32_t row : rows) writer.Position(row);
  return gaps;
}

}  // namespace

RunMerger::RunMerger(const CodecSpec& spec, const Layout& layout, absl::Span<const TensorWork> work,
                     int64_t held_bytes, KnownTensors* known, AmendRun amend)
    : work_(work),
      most_held_(held_bytes),
      known_(known),
      amend_(std::move(amend)),
      writer_(layout, SpecText(spec), spec.zstd_level, MostBytes(layout, work)),
      bits_(&values_) {
  headers_.reserve(static_cast<size_t>(layout.tensors()));
}

bool RunMerger::Take(std::unique_ptr<Run> run, Spent* spent) {
  const int tensor = run->tensor;
  const bool ends = run->ends_tensor, by_rows = !run->rows.empty();
  const auto found = known_->find(tensor);
  const bool is_known = found != known_->end();
  const bool is_choice = !is_known && !work_[tensor].by_rows.rows.empty();
  Form* form = &forms_[by_rows];
  for (double mean : run->levels) form->largest = std::max(form->largest, mean);
  form->means.insert(form->means.end(), run->levels.begin(), run->levels.end());
  if (is_choice) Count(*run, form);
  form->held_bytes += run->Bytes();
  form->held.push_back(std::move(run));

  const int so_far = form->largest > 0 ? LevelExponent(form->largest) : kLeastExponent;
  const int exponent = is_known ? found->second.exponent : so_far;
  if (is_choice) {
    form->is_dropped |= form->held_bytes > most_held_;
    while (form->is_dropped && !form->held.empty()) {
      spent->push_back(std::move(form->held.front()));
      form->held.pop_front();
    }
  } else {
    while (!form->held.empty() && (is_known || form->held_bytes > most_held_))
      SendOldest(form, exponent, spent);
  }
  if (!ends) return true;
  if (!is_choice) return FinishTensor(tensor, by_rows, exponent, spent);
  const bool chosen = IsSmallerByRows(tensor);
  const double largest = forms_[chosen].largest;
  return FinishTensor(tensor, chosen, largest > 0 ? LevelExponent(largest) : kLeastExponent, spent);
}

// What the run comes to when each byte of gaps is coded by itself.
void RunMerger::Count(const Run& run, Form* form) const {
  for (char byte : run.gaps) ++form->counts[static_cast<uint8_t>(byte)];
  for (int kept : run.kept) {
    if (kept == 0) continue;
    form->value_bits += kept * run.plan.value_bits + kLevelBits * LevelsOf(run.plan.value_bits);
  }
}

bool RunMerger::IsSmallerByRows(int tensor) const {
  int64_t counts[256];
  std::copy_n(forms_[1].counts, 256, counts);
  for (char byte : RowGaps(work_[tensor].by_rows.rows)) ++counts[static_cast<uint8_t>(byte)];
  return SymbolCost(counts) + forms_[1].value_bits * kPartsPerBit <
         SymbolCost(forms_[0].counts) + forms_[0].value_bits * kPartsPerBit;
}

void RunMerger::SendOldest(Form* form, int exponent, Spent* spent) {
  std::unique_ptr<Run> oldest = std::move(form->held.front());
  form->held.pop_front();
  form->held_bytes -= oldest->Bytes();
  SendBlocks(*oldest, LeastSent(exponent));
  if (amend_) Amend(*oldest, exponent);
  if (gaps_.size() + values_.size() >= kPieceBytes) EndPiece();
  spent->push_back(std::move(oldest));
}

void RunMerger::Amend(const Run& run, int exponent) {
  amend_(run, exponent);
  least_amended_by_ = std::min(least_amended_by_, exponent);
  for (double mean : run.levels) {
    if (mean > 0) least_amended_ = std::min(least_amended_, mean);
  }
}

bool RunMerger::IsRight(int exponent) const {
  if (least_sent_ > 0 && least_sent_ <= LeastSent(exponent)) return false;
  // From the least level on means are rounded alike whatever the exponent.
  return least_amended_by_ >= exponent || least_amended_ >= std::ldexp(LevelValue(1), exponent);
}

// Sends those with a mean above `least`.
void RunMerger::SendBlocks(const Run& run, double least) {
  const int levels = LevelsOf(run.plan.value_bits);
  const uint64_t* word = run.codes.data();
  const double* mean = run.levels.data();
  size_t written = 0;  // bytes of run.gaps dealt with
  for (size_t block = 0; block < run.kept.size(); ++block, mean += levels) {
    const double largest = *std::max_element(mean, mean + levels);
    if (largest > least) {
      if (least_sent_ == 0 && !run.rows.empty()) gaps_ += RowGaps(run.rows);  // the tensor's first
      PutCodes(word, run.kept[block] * run.plan.value_bits);
      least_sent_ = least_sent_ == 0 ? largest : std::min(least_sent_, largest);
    } else {  // its gaps are left out
      const size_t begin = block == 0 ? 0 : run.gap_ends[block - 1];
      gaps_.append(run.gaps, written, begin - written);
      written = run.gap_ends[block];
    }
    word += CodeWords(run.kept[block], run.plan.value_bits);
  }
  gaps_.append(run.gaps, written, std::string::npos);
}

bool RunMerger::FinishTensor(int tensor, bool by_rows, int exponent, Spent* spent) {
  Form* form = &forms_[by_rows];
  while (!form->held.empty()) SendOldest(form, exponent, spent);
  if (form->is_dropped || !IsRight(exponent)) {
    (*known_)[tensor] = {by_rows, exponent};
    return false;
  }
  TensorHeader header;
  if (least_sent_ > 0) {
    const TensorWork& work = work_[tensor];
    header.form = by_rows ? TensorForm::kRows : TensorForm::kSparse;
    header.value_bits = static_cast<uint8_t>(work.plan.value_bits);
    header.k = static_cast<uint16_t>(by_rows ? work.by_rows.k : work.plan.k);
    header.exponent = static_cast<int16_t>(exponent);
    if (by_rows) header.rows = static_cast<uint32_t>(work.by_rows.rows.size());
    const double scale = std::ldexp(1.0, -exponent);  // a power of two well within double's range: exact
    for (double mean : form->means) levels_.push_back(static_cast<char>(NearestLevel(mean * scale)));
  }
  headers_.push_back(header);
  for (Form& done : forms_) {
    for (std::unique_ptr<Run>& run : done.held) spent->push_back(std::move(run));
    std::vector<double> means = std::move(done.means);
    means.clear();
    done = Form();
    done.means = std::move(means);
  }
  least_sent_ = 0;
  least_amended_by_ = kNotAmended;
  least_amended_ = kLeastAmendedOfNone;
  return true;
}

void RunMerger::PutCodes(const uint64_t* word, int bits) {
  for (int left = bits; left > 0; left -= 64, ++word) {
    bits_.Put(static_cast<uint32_t>(*word), std::min(left, 32));
    if (left > 32) bits_.Put(static_cast<uint32_t>(*word >> 32), std::min(left - 32, 32));
  }
}

void RunMerger::EndPiece() {
  writer_.Piece(gaps_, values_);
  gaps_.clear();
  values_.clear();
}

std::string RunMerger::Finish() {
  bits_.Finish();
  if (!gaps_.empty() || !values_.empty()) EndPiece();
  return writer_.Finish(levels_, headers_);
}

}  // namespace isthmus
