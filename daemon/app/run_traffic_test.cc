#include "daemon/app/run_traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "daemon/app/run_defaults.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

std::string ErrorOf(const absl::StatusOr<std::string>& spec) {
  EXPECT_EQ(spec.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(spec.status().message());
}

TEST(RunTrafficTest, OnlyTheWordAutoOfASpecIsReplaced) {
  EXPECT_EQ(FillAutoCodec("auto", 40), "topk(k=512 )|levels(bits=1)");
  EXPECT_EQ(FillAutoCodec(" auto ", 400), "topk(k=64  )|levels(bits=1)");
  EXPECT_EQ(FillAutoCodec("topk(k= auto)|levels(bits=2)", 40), "topk(k= 512 )|levels(bits=2)");
  EXPECT_EQ(FillAutoCodec("topk(k=100)", 40), "topk(k=100)");
  EXPECT_EQ(FillAutoCodec("topk(k =auto)|levels(bits=auto)", 40), "topk(k =512 )|levels(bits=auto)");
  EXPECT_EQ(FillAutoCodec("automatic", 40), "automatic");
}

TEST(RunTrafficTest, TheDefaultsAreSparseContributionsExactUpdatesAndPlainSnapshots) {
  RunFile run;
  FillDefaults(&run);
  const TrafficCodecs codecs = ResolveTraffic(run.exchange(), 40).value();
  EXPECT_EQ(codecs.contribution, "topk(k=512,block=4096)|levels(bits=1)|gaps|zstd(1)");
  EXPECT_EQ(codecs.update, "exact");
  EXPECT_EQ(codecs.activation, "bf16|zstd(1)");
  EXPECT_EQ(codecs.activation_gradient, "bf16|zstd(1)");
  EXPECT_EQ(codecs.snapshot, "fp32");
}

TEST(RunTrafficTest, SpecsComeBackWithEverythingSpelledOut) {
  EXPECT_EQ(*ResolveUpdateCodec(" exact ", 40), "exact");
  EXPECT_EQ(*ResolveUpdateCodec("topk(k=auto)|levels(bits=2)", 400),
            "topk(k=64,block=4096)|levels(bits=2)|gaps|zstd(1)");
  for (const char* spec : {"dense", "dense(bits=8)", "mask(k=64,seed=7)"})
    EXPECT_THAT(ErrorOf(ResolveUpdateCodec(spec, 400)), HasSubstr("would make an update larger"));
  EXPECT_EQ(*ResolveSnapshotCodec(" fp32 "), "fp32");
  EXPECT_EQ(*ResolveSnapshotCodec("fp32 | zstd(3)"), "fp32|zstd(3)");
  EXPECT_EQ(*ResolveActivationCodec("fp8(group=128)"), "fp8(group=128)|zstd(1)");
  EXPECT_EQ(*ResolveActivationCodec("dense(bits=8)"), "dense(bits=8,group=64)|zstd(1)");
}

TEST(RunTrafficTest, ContributionsTakeNoCarryOnlyCodec) {
  EXPECT_EQ(
      ErrorOf(ResolveContributionCodec(" bf16", 40)),
      "codec spec \" bf16\", character 2: bf16 is a carry-only codec: contributions are summed exactly and "
      "need topk, mask or dense, or auto by itself");
}

TEST(RunTrafficTest, UpdatesAreToldOnlyWhatTheyTake) {
  constexpr char kTaken[] = ": these are topk(k=...), or exact or auto by itself";
  for (const char* name : {"bf16", "fp32", "nf4", "exakt"}) {
    EXPECT_EQ(
        ErrorOf(ResolveUpdateCodec(name, 40)),
        absl::StrCat("codec spec \"", name, "\", character 1: ", name, " is no codec of updates", kTaken));
  }
  EXPECT_EQ(ErrorOf(ResolveUpdateCodec(" nf4 (group=64)", 40)),
            absl::StrCat("codec spec \" nf4 (group=64)\", character 2: nf4 is no codec of updates", kTaken));
  EXPECT_EQ(
      ErrorOf(ResolveUpdateCodec("dense(bits=7)", 40)),
      absl::StrCat("codec spec \"dense(bits=7)\", character 1: dense would make an update larger", kTaken));
  EXPECT_THAT(ErrorOf(ResolveUpdateCodec("exact|zstd(1)", 40)), HasSubstr("or exact or auto by itself"));
  EXPECT_THAT(ErrorOf(ResolveUpdateCodec("", 40)), HasSubstr("nothing is no codec of updates"));
  EXPECT_THAT(ErrorOf(ResolveUpdateCodec("topk(k=0)", 40)), HasSubstr("character 8"));
}

TEST(RunTrafficTest, AMistypedNameIsToldWhatItsClassTakes) {
  EXPECT_THAT(
      ErrorOf(ResolveContributionCodec("tpok(k=64)", 40)),
      HasSubstr("character 1: tpok is no codec of contributions: these are summed and need topk, mask or "
                "dense, or auto by itself"));
  EXPECT_THAT(
      ErrorOf(ResolveSnapshotCodec("fp23")),
      HasSubstr("character 1: fp23 is no codec of snapshots: snapshots are what a run goes on from and "
                "take fp32 or fp32|zstd(n)"));
}

TEST(RunTrafficTest, SnapshotsTakeNoLossyCodec) {
  EXPECT_EQ(
      ErrorOf(ResolveSnapshotCodec("bf16|zstd(3)")),
      "codec spec \"bf16|zstd(3)\", character 1: bf16 loses bits: snapshots are what a run goes on from and "
      "take fp32 or fp32|zstd(n)");
  EXPECT_THAT(ErrorOf(ResolveSnapshotCodec("dense(bits=24)")), HasSubstr("dense loses bits"));
}

TEST(RunTrafficTest, WhatIsNoSpecIsPointedAt) {
  EXPECT_THAT(ErrorOf(ResolveUpdateCodec("exakt", 40)), HasSubstr("character 1"));
  EXPECT_THAT(ErrorOf(ResolveSnapshotCodec("fp32|zstd(n)")), HasSubstr("character 12"));
  EXPECT_THAT(ErrorOf(ResolveActivationCodec("fp8(grup=1)")), HasSubstr("character 5"));
  RunFile run;
  run.mutable_exchange()->set_activation_gradient_codec("fp9");
  FillDefaults(&run);
  EXPECT_THAT(std::string(ResolveTraffic(run.exchange(), 40).status().message()),
              HasSubstr("exchange.activation_gradient_codec: codec spec \"fp9\", character 1"));
}

}  // namespace
}  // namespace isthmus
