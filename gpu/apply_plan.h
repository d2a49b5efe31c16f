// An update and an own frame as the flat arrays the apply kernel takes.
#ifndef ISTHMUS_GPU_APPLY_PLAN_H_
#define ISTHMUS_GPU_APPLY_PLAN_H_

#include <cstdint>
#include <vector>

#include "gpu/apply_kernel.h"
#include "gpu/device_ops.h"

namespace isthmus {

// One tensor's touched values: what update and own frame name, joined. Owns the arrays its args point to.
class ApplyPlan {
 public:
  // `own` may be null. Inputs must fit (CheckUpdate, CheckOwnFrame) and may go once this returns.
  ApplyPlan(const Update& update, int tensor, int64_t size, const OuterStep& step, const DecodedTensor* own);
  ApplyPlan(const ApplyPlan&) = delete;
  ApplyPlan& operator=(const ApplyPlan&) = delete;

  // The kernel's arguments but for anchor, momentum and parameters; valid as long as this lives.
  ApplyTensorArgs Args() const;

 private:
  void JoinPositions(const UpdateTensor& update, const DecodedTensor* own);
  void FillDense(const UpdateTensor& update, int64_t size, const DecodedTensor* own);
  void FillSparse(const UpdateTensor& update, const DecodedTensor* own);

  ApplyTensorArgs args_;  // numbers only
  bool dense_ = false, has_sums_ = false, has_weights_ = false, has_own_ = false;
  std::vector<uint32_t> positions_;
  std::vector<int64_t> sums_;
  std::vector<int32_t> weights_, own_;
};

}  // namespace isthmus

#endif  // ISTHMUS_GPU_APPLY_PLAN_H_
