#include "gpu/apply_input.h"

#include "absl/strings/str_cat.h"

namespace isthmus {
namespace {

absl::Status Misfit(absl::string_view what, size_t has, int64_t wants) {
  return absl::InvalidArgumentError(
      absl::StrCat("apply: ", what, " of ", has, " values, ", wants, " are needed"));
}

bool PositionsFit(const std::vector<uint32_t>& positions, size_t count, int64_t size) {
  return positions.size() == count && (count == 0 || positions.back() < size);
}

bool TensorFits(const UpdateTensor& tensor, Averaging averaging, int64_t size) {
  const size_t count = tensor.sums.size();
  const size_t weights = averaging == Averaging::kContributors ? count : 0;
  switch (tensor.form) {
    case TensorForm::kAbsent:
      return count == 0;
    case TensorForm::kSparse:
      return PositionsFit(tensor.positions, count, size) && tensor.weights.size() == weights;
    case TensorForm::kDense:
      return count == static_cast<size_t>(size) && tensor.weights.size() == weights;
    case TensorForm::kRows:
      return false;
  }
  return false;
}

}  // namespace

absl::Status CheckArrays(const Layout& layout, const OuterStep& step, const ApplySizes& sizes) {
  const int64_t total = layout.total();
  const int64_t momentum = step.form == OuterForm::kNesterov ? total : 0;
  if (sizes.anchor != static_cast<size_t>(total)) return Misfit("anchor", sizes.anchor, total);
  if (sizes.momentum != static_cast<size_t>(momentum)) return Misfit("momentum", sizes.momentum, momentum);
  return absl::OkStatus();
}

absl::Status CheckUpdate(const Layout& layout, const Update& update, const OuterStep& step,
                         const ApplySizes& sizes) {
  if (absl::Status s = CheckArrays(layout, step, sizes); !s.ok()) return s;
  if (update.tensors.size() != static_cast<size_t>(layout.tensors())) {
    return absl::InvalidArgumentError(absl::StrCat("apply: update of ", update.tensors.size(),
                                                   " tensors, the layout has ", layout.tensors()));
  }
  if (update.total_weight < 1) return absl::InvalidArgumentError("apply: update without weight");
  for (int t = 0; t < layout.tensors(); ++t) {
    if (!TensorFits(update.tensors[t], update.averaging, layout.size(t))) {
      return absl::InvalidArgumentError(
          absl::StrCat("apply: update's tensor ", t, " does not fit the layout"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckOwnFrame(const Layout& layout, const OwnFrame& own, size_t parameters) {
  if (parameters != static_cast<size_t>(layout.total()))
    return Misfit("parameters", parameters, layout.total());
  if (own.frame == nullptr) return absl::OkStatus();
  const size_t tensors = static_cast<size_t>(layout.tensors());
  if (own.frame->tensors.size() != tensors || (!own.included.empty() && own.included.size() != tensors)) {
    return absl::InvalidArgumentError(absl::StrCat("apply: own frame of ", own.frame->tensors.size(),
                                                   " tensors (", own.included.size(),
                                                   " judged), the layout has ", tensors));
  }
  for (int t = 0; t < layout.tensors(); ++t) {
    const DecodedTensor& tensor = own.frame->tensors[t];
    const size_t count = tensor.mantissas.size();
    const bool fits = tensor.form == TensorForm::kSparse
                          ? PositionsFit(tensor.positions, count, layout.size(t))
                      : tensor.form == TensorForm::kDense ? count == static_cast<size_t>(layout.size(t))
                                                          : count == 0;
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat("apply: own frame's tensor ", t, " does not fit"));
  }
  return absl::OkStatus();
}

const DecodedTensor* OwnTensor(const OwnFrame& own, int tensor) {
  if (own.frame == nullptr || (!own.included.empty() && !own.included[tensor])) return nullptr;
  const DecodedTensor& found = own.frame->tensors[tensor];
  return found.form == TensorForm::kAbsent ? nullptr : &found;
}

}  // namespace isthmus
