#include "daemon/training/torch_top_k.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compression/codec.h"
#include "daemon/base/random.h"

namespace isthmus {
namespace {

TEST(TorchTopKTest, KeepsWhatTheCodecKeeps) {
  Random random(7);
  std::vector<float> anchor(3 * 4096), parameters(anchor.size());
  for (float& v : anchor) v = static_cast<float>(random.Uniform() - 0.5);
  for (float& v : parameters) v = static_cast<float>(random.Uniform() - 0.5);

  const auto kept = TorchTopK(anchor, parameters, 64);
  ASSERT_TRUE(kept.ok()) << kept.status();

  const Layout layout({static_cast<int64_t>(anchor.size())}, 1);
  const auto codec = std::move(ParseCodecSpec("topk(k=64)")).value();
  const auto frame = codec->Decode(layout, *codec->Encode(layout, anchor, parameters));
  ASSERT_TRUE(frame.ok()) << frame.status();
  const DecodedTensor& tensor = frame->tensors[0];
  ASSERT_EQ(kept->positions.size(), tensor.positions.size());
  for (size_t i = 0; i < tensor.positions.size(); ++i) {
    const size_t at = i / 64 * 4096 + static_cast<size_t>(kept->positions[i]);
    EXPECT_EQ(at, tensor.positions[i]);
    EXPECT_EQ(kept->values[i], anchor[at] - parameters[at]);
    EXPECT_EQ(kept->values[i] < 0, tensor.mantissas[i] < 0);
  }
}

TEST(TorchTopKTest, RefusesWhatIsNoWholeNumberOfBlocks) {
  const std::vector<float> values(4097);
  EXPECT_EQ(TorchTopK(values, values, 64).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TorchTopK(values, absl::MakeConstSpan(values).first(4096), 64).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(TorchTopK({}, {}, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace isthmus
