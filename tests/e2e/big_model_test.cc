// A model whose frames and updates are larger than any message: all is streamed, with nothing set for it.
#include <gtest/gtest.h>

#include "tests/e2e/run_world.h"

namespace isthmus {
namespace {

TEST(BigModelTest, FramesOfManyMegabytesPassWithDefaultSettings) {
  RunWorld world;
  RunShape shape;
  shape.rounds = 1;
  shape.steps = 1;
  shape.sites = 1;
  // 21 million parameters in an embedding table, and very little work.
  shape.model = "vocabulary: 82000 width: 256 layers: 1 heads: 2 feed_forward: 32 context: 8";
  shape.more = "exchange { contribution_codec: \"dense(bits=24)\" }\n";
  ASSERT_TRUE(world.StartCoordinator(shape));
  world.WriteFile("text.txt", SampleText(2048, 1));
  world.StartWorker("a");
  const RunStatus status = world.AwaitFinished();
  world.ExpectWorkersDone();
  EXPECT_GT(status.parameters(), 20'000'000);
  EXPECT_EQ(status.rounds_committed(), 1);
  ASSERT_EQ(status.commits_size(), 1);
  EXPECT_EQ(status.commits(0).included(), 1);
  EXPECT_GT(status.commits(0).bytes_up(), 50'000'000) << status.ShortDebugString();
  EXPECT_GT(status.commits(0).bytes_down(), 50'000'000) << status.ShortDebugString();
  EXPECT_EQ(status.digests_deviating(), 0);
  EXPECT_EQ(SiteOf(status, "a").incarnation(), 1) << "busy is not dead\n" << world.Said();
}

}  // namespace
}  // namespace isthmus
