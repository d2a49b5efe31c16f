#include "daemon/app/run_data.h"

#include <fstream>

#include "daemon/app/run_defaults.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

RunFile DefaultRun() {
  RunFile run;
  FillDefaults(&run);
  return run;
}

std::string WriteTokens(const std::string& name, size_t bytes) {
  const std::string path = ::testing::TempDir() + "/" + name;
  std::ofstream(path, std::ios::binary) << std::string(bytes, '\1');
  return path;
}

TEST(RunData, ReadsTokensInTheFormOfTheRunFile) {
  RunFile run = DefaultRun();
  run.mutable_model()->set_context(10);
  const std::string path = WriteTokens("tokens", 4000);
  for (const auto& [format, tokens] :
       {std::pair(DataConfig::BYTES, 4000), {DataConfig::UINT16, 2000}, {DataConfig::UINT32, 1000}}) {
    run.mutable_data()->set_format(format);
    run.mutable_model()->set_vocabulary(int64_t{1} << 30);
    const auto data = OpenRunData(path, run);
    ASSERT_TRUE(data.ok()) << data.status();
    EXPECT_EQ((*data)->tokens(), tokens);
  }
}

TEST(RunData, RefusesTokensBeyondTheRunsVocabularyNamingTheFile) {
  RunFile run = DefaultRun();
  run.mutable_model()->set_context(10);
  run.mutable_model()->set_vocabulary(1);
  const auto data = OpenRunData(WriteTokens("tokens", 4000), run);
  EXPECT_EQ(data.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(data.status().message()), ::testing::HasSubstr("tokens"));
}

TEST(RunData, TheInnerOptimizerIsThatOfTheRunFile) {
  RunFile run = DefaultRun();
  InnerOptimizerOptions options = InnerOptimizerOf(run.inner());
  EXPECT_EQ(options.beta2, 0.99);
  EXPECT_EQ(options.clip_norm, 1.0);
  run.mutable_inner()->set_beta1(0.5);
  run.mutable_inner()->set_weight_decay(0.25);
  options = InnerOptimizerOf(run.inner());
  EXPECT_EQ(options.beta1, 0.5);
  EXPECT_EQ(options.weight_decay, 0.25);
}

}  // namespace
}  // namespace isthmus
