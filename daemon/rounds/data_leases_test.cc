#include "daemon/rounds/data_leases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace isthmus {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const SiteLife kA{"a", 1}, kB{"b", 1};
const Digest kFrame{1, 1}, kFrame2{1, 2};

DataRange Next(DataLeases* leases, const SiteLife& life, int64_t wanted) {
  const absl::StatusOr<DataLease> lease = leases->Next(life, wanted);
  EXPECT_TRUE(lease.ok()) << lease.status();
  return lease.ok() ? lease->range : DataRange{};
}

TEST(DataLeases, GivesDisjointRangesOfThePassInOrder) {
  DataLeases leases(DataMode::kShared, 100);
  const absl::StatusOr<DataLease> first = leases.Next(kA, 40);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(first->number, 1);
  EXPECT_EQ(first->life, kA);
  EXPECT_EQ(first->range, (DataRange{0, 0, 40}));
  EXPECT_EQ(Next(&leases, kB, 40), (DataRange{0, 40, 80}));
  EXPECT_EQ(leases.Next(kA, 5)->number, 2);
  EXPECT_EQ(leases.Counts().outstanding, 85);
}

TEST(DataLeases, ShortensTheLastLeaseOfAPassAndBeginsTheNext) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 90);
  EXPECT_EQ(Next(&leases, kA, 40), (DataRange{0, 90, 100}));
  EXPECT_EQ(Next(&leases, kB, 40), (DataRange{1, 0, 40}));
  EXPECT_EQ(leases.Counts().pass, 1);
}

TEST(DataLeases, HoldsTheWantedNumberBetweenOneAndTheWholePass) {
  DataLeases leases(DataMode::kShared, 10);
  EXPECT_EQ(Next(&leases, kA, 0), (DataRange{0, 0, 1}));
  EXPECT_EQ(Next(&leases, kA, INT64_MAX), (DataRange{0, 1, 10}));
}

TEST(DataLeases, FindsALeaseAgainWhenItsAnswerGotLost) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 10);
  ASSERT_TRUE(leases.Find(kA, 1).has_value());
  EXPECT_EQ(leases.Find(kA, 1)->range, (DataRange{0, 0, 10}));
  EXPECT_FALSE(leases.Find(kA, 2).has_value());
  EXPECT_FALSE(leases.Find(kB, 1).has_value());
}

TEST(DataLeases, CountsWhatContributionsSpeakFor) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 40);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 25}}).ok());
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 25}}).ok()) << "sent twice";
  const LeaseCounts counts = leases.Counts();
  EXPECT_EQ(counts.trained_once, 25);
  EXPECT_EQ(counts.trained_again, 0);
  EXPECT_EQ(counts.outstanding, 15);
  EXPECT_EQ(counts.waiting, 0);
}

TEST(DataLeases, RefusesRangesThatAreNotAnUnusedPartOfTheLeaseAndChangesNothing) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 40);
  Next(&leases, kB, 40);
  const std::vector<std::vector<TrainedRange>> bad = {{{1, 0, 41}},
                                                      {{1, -1, 5}},
                                                      {{1, 5, 5}},
                                                      {{1, 9, 3}},
                                                      {{2, 0, 5}},
                                                      {{1, 40, 50}},
                                                      {{1, 0, 10}, {1, 9, 12}}};
  for (const auto& ranges : bad) {
    const absl::Status status = leases.Contributed(kA, kFrame, ranges);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("a/1 reports ["));
  }
  EXPECT_EQ(leases.Contributed(kA, {}, {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(leases.Contributed({"c", 1}, kFrame, {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(leases.Counts().outstanding, 80);
  EXPECT_EQ(leases.Counts().trained_once, 0);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 10}, {1, 10, 40}}).ok());
}

TEST(DataLeases, GivesTheUnusedRestOfADeadSiteOutAgainFirst) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 40);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 10}}).ok());
  leases.Committed("a", kFrame);
  EXPECT_EQ(leases.SiteGone(kA), 30);
  EXPECT_EQ(leases.SiteGone(kA), 0);
  EXPECT_EQ(leases.Counts().waiting, 30);
  EXPECT_EQ(Next(&leases, kB, 20), (DataRange{0, 10, 30}));
  EXPECT_EQ(Next(&leases, kB, 20), (DataRange{0, 30, 40}));
  EXPECT_EQ(Next(&leases, kB, 20), (DataRange{0, 40, 60}));
  EXPECT_EQ(leases.Next(kA, 1).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(leases.Contributed(kA, kFrame2, {}).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Next(&leases, {"a", 2}, 5), (DataRange{0, 60, 65}));
}

TEST(DataLeases, KeepsTheRangesOfADroppedFrameWithTheSiteThatCarriesThem) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 40);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 10}}).ok());
  leases.Dropped("a", kFrame);
  EXPECT_EQ(leases.Counts().waiting, 0);
  // The next frame speaks for them too.
  EXPECT_TRUE(leases.Contributed(kA, kFrame2, {{1, 10, 20}}).ok());
  leases.Committed("a", kFrame2);
  EXPECT_EQ(leases.SiteGone(kA), 20) << "only what was never trained";
}

TEST(DataLeases, GivesBackWhatADeadSiteCarried) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 40);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 10}}).ok());
  leases.Dropped("a", kFrame);
  EXPECT_EQ(leases.SiteGone(kA), 40);
  EXPECT_EQ(Next(&leases, kB, 40), (DataRange{0, 0, 40}));
  EXPECT_TRUE(leases.Contributed(kB, kFrame2, {{1, 0, 40}}).ok());
  EXPECT_EQ(leases.Counts().trained_once, 40);
  EXPECT_EQ(leases.Counts().trained_again, 10);
}

TEST(DataLeases, WaitsForTheOutcomeOfADeadSitesFrame) {
  for (bool is_committed : {true, false}) {
    DataLeases leases(DataMode::kShared, 100);
    Next(&leases, kA, 40);
    EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 10}}).ok());
    EXPECT_EQ(leases.SiteGone(kA), 30);
    if (is_committed)
      leases.Committed("a", kFrame);
    else
      leases.Dropped("a", kFrame);
    EXPECT_EQ(leases.Counts().waiting, is_committed ? 30 : 40);
  }
}

TEST(DataLeases, GivesForfeitedRangesOutAgainButNotThoseOfAFrameThatStillCommits) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 60);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 10}}).ok());
  leases.Dropped("a", kFrame);
  EXPECT_TRUE(leases.Contributed(kA, kFrame2, {{1, 10, 20}}).ok());  // speaks for [0, 20)
  // Twenty-five more were trained when a NaN appeared. Ranges that are not its own are ignored.
  EXPECT_EQ(leases.Forfeited(kA, {{1, 20, 45}, {1, 0, 5}, {9, 0, 5}}), 25);
  EXPECT_EQ(leases.Counts().waiting, 25);
  EXPECT_EQ(leases.Counts().trained_once, 45) << "trained, if in vain";
  EXPECT_EQ(leases.Counts().outstanding, 15);
  leases.Dropped("a", kFrame2);
  EXPECT_EQ(leases.Counts().waiting, 45) << "the site was reset, so it does not carry them";
  EXPECT_EQ(Next(&leases, kB, 100), (DataRange{0, 0, 45}));
}

TEST(DataLeases, SettlesTheFramesOfAllLivesOfASiteAndOfNoOther) {
  DataLeases leases(DataMode::kShared, 100);
  Next(&leases, kA, 10);
  Next(&leases, kB, 10);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 10}}).ok());
  EXPECT_TRUE(leases.Contributed(kB, kFrame, {{1, 10, 20}}).ok());
  leases.SiteGone(kA);
  leases.Committed("a", kFrame);
  leases.Dropped("a", kFrame);
  leases.Committed("nobody", kFrame);
  EXPECT_EQ(leases.Counts().waiting, 0);
  leases.SiteGone(kB);
  leases.Dropped("b", kFrame);
  EXPECT_EQ(leases.Counts().waiting, 10);
}

TEST(DataLeases, LetsASiteHoldSixtyFourOpenLeases) {
  DataLeases leases(DataMode::kShared, 1000);
  for (int i = 0; i < 64; ++i) Next(&leases, kA, 1);
  EXPECT_EQ(leases.Next(kA, 1).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(leases.Contributed(kA, kFrame, {{1, 0, 1}}).ok());
  EXPECT_EQ(leases.Next(kA, 1)->number, 65);
}

TEST(DataLeases, GivesEachSiteItsOwnPassesWhenDataIsPerSite) {
  DataLeases leases(DataMode::kPerSite, 0);
  EXPECT_EQ(leases.Next(kA, 5).status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(leases.AddSite("a", 10).ok());
  EXPECT_TRUE(leases.AddSite("b", 100).ok());
  EXPECT_TRUE(leases.AddSite("a", 10).ok()) << "came back";
  EXPECT_EQ(leases.AddSite("a", 11).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(leases.AddSite("c", 0).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Next(&leases, kA, 8), (DataRange{0, 0, 8}));
  EXPECT_EQ(Next(&leases, kB, 8), (DataRange{0, 0, 8}));
  EXPECT_EQ(Next(&leases, kA, 8), (DataRange{0, 8, 10}));
  EXPECT_EQ(Next(&leases, kA, 8), (DataRange{1, 0, 8}));
  leases.SiteGone(kA);
  EXPECT_EQ(Next(&leases, kB, 8), (DataRange{0, 8, 16})) << "not the data of a";
  EXPECT_EQ(Next(&leases, {"a", 2}, 20), (DataRange{0, 0, 10}));
  EXPECT_EQ(leases.Counts().pass, 0);
}

TEST(DataLeases, AcceptsOnlyTheRunsNumberOfSequencesWhenDataIsShared) {
  DataLeases leases(DataMode::kShared, 100);
  EXPECT_TRUE(leases.AddSite("a", 100).ok());
  const absl::Status status = leases.AddSite("b", 99);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "site b has 99 sequences of data, the run 100");
}

TEST(DataLeases, RefusesRecordsThatContradictEachOther) {
  using Kind = LeaseRecord::Kind;
  const LeaseRecord space{Kind::kSpace, {}, 0, 2, 50, 100, {}};
  const LeaseRecord last{Kind::kLastLease, kA, 3, 0, 0, 0, {}};
  const LeaseRecord unused{Kind::kUnused, kA, 1, 2, 0, 10, {}};
  EXPECT_TRUE(DataLeases::Import(DataMode::kShared, {space, last, unused}).ok());
  LeaseRecord beyond = unused, reversed = unused, ahead = unused, unknown = unused, overlap = unused,
              no_frame = unused, odd = unused;
  beyond.end = 101;
  reversed.begin = 11;
  ahead.pass = 3;
  unknown.number = 4;
  overlap.number = 2;
  no_frame.kind = Kind::kTrained;
  no_frame.frame = kFrame;
  odd.kind = static_cast<Kind>(99);
  for (const LeaseRecord& bad : {beyond, reversed, ahead, unknown, overlap, no_frame, odd}) {
    const auto leases = DataLeases::Import(DataMode::kShared, {space, last, unused, bad});
    EXPECT_EQ(leases.status().code(), absl::StatusCode::kDataLoss) << bad.begin << " " << bad.number;
  }
  EXPECT_FALSE(DataLeases::Import(DataMode::kShared, {}).ok());
  EXPECT_FALSE(DataLeases::Import(DataMode::kShared, {space, space}).ok());
  EXPECT_FALSE(DataLeases::Import(DataMode::kShared, {space, unused}).ok());
  EXPECT_FALSE(DataLeases::Import(DataMode::kPerSite, {space}).ok());
  EXPECT_TRUE(DataLeases::Import(DataMode::kPerSite, {}).ok());
}

TEST(DataLeases, HasNothingOutstandingAtFirst) {
  EXPECT_THAT(DataLeases(DataMode::kShared, 5).Outstanding(), IsEmpty());
}

}  // namespace
}  // namespace isthmus
