#include "daemon/exchange/transport_conformance.h"

#include "absl/types/optional.h"

namespace isthmus {

void TransportConformanceTest::SetUp() { harness_ = GetParam()(); }

void TransportConformanceTest::TearDown() {
  harness_->OnLoop([this] {
    link_.reset();
    hub_.reset();
  });
  harness_.reset();
}

void TransportConformanceTest::StartHub() {
  absl::Status started;
  harness_->OnLoop([&] {
    hub_ = harness_->MakeHub();
    started = hub_->Start(&coordinator_);
  });
  ASSERT_TRUE(started.ok()) << started;
}

void TransportConformanceTest::MakeLink() {
  harness_->OnLoop([this] { link_ = harness_->MakeLink("alpha"); });
}

void TransportConformanceTest::Dial(absl::Duration patience) {
  harness_->OnLoop([&] { link_->Dial(&worker_, harness_->SteadyNow() + patience); });
}

void TransportConformanceTest::OpenSession() {
  StartHub();
  MakeLink();
  Dial();
  ASSERT_TRUE(Until([this] { return worker_.opened == 1 && coordinator_.sessions.size() == 1; }));
}

void TransportConformanceTest::SendHeartbeat(int64_t token) {
  WorkerMessage message;
  message.mutable_heartbeat()->set_token(token);
  link_->Send(message);
}

absl::Status TransportConformanceTest::Upload(const ContributionHeader& header, const std::string& frame,
                                              absl::Duration patience) {
  auto outcome = std::make_shared<absl::optional<absl::Status>>();
  harness_->OnLoop([&] {
    link_->Upload(header, std::make_shared<const std::string>(frame), harness_->SteadyNow() + patience,
                  [outcome](absl::Status status) { *outcome = std::move(status); });
  });
  if (!Until([outcome] { return outcome->has_value(); })) return absl::UnknownError("no outcome");
  return **outcome;
}

absl::StatusOr<std::string> TransportConformanceTest::Fetch(int64_t round, absl::Duration patience) {
  auto outcome = std::make_shared<absl::optional<absl::StatusOr<std::string>>>();
  Life life;
  life.set_site("alpha");
  life.set_incarnation(1);
  harness_->OnLoop([&] {
    link_->Fetch("run-1", life, {UPDATE, round, 0}, harness_->SteadyNow() + patience,
                 [outcome](absl::StatusOr<std::string> blob) { *outcome = std::move(blob); });
  });
  if (!Until([outcome] { return outcome->has_value(); })) return absl::UnknownError("no outcome");
  return **outcome;
}

TEST_P(TransportConformanceTest, MessagesArriveInOrderBothWays) {
  OpenSession();
  harness_->OnLoop([this] {
    for (int i = 0; i < 100; ++i) {
      SendHeartbeat(i);
      CoordinatorMessage echo;
      echo.mutable_heartbeat_echo()->set_token(1000 + i);
      hub_->Send(coordinator_.sessions[0], echo);
    }
  });
  ASSERT_TRUE(
      Until([this] { return coordinator_.messages.size() == 100 && worker_.messages.size() == 100; }));
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(coordinator_.messages[i].first, coordinator_.sessions[0]);
    EXPECT_EQ(coordinator_.messages[i].second.heartbeat().token(), i);
    EXPECT_EQ(worker_.messages[i].heartbeat_echo().token(), 1000 + i);
  }
}

TEST_P(TransportConformanceTest, ControlMessagesAboveFourMegabytesPass) {
  OpenSession();
  const std::string reason = MakeBytes(5000000, 1);
  std::string hex(reason);
  for (char& c : hex) c = 'a' + (static_cast<unsigned char>(c) & 15);
  harness_->OnLoop([&] {
    WorkerMessage up;
    up.mutable_leaving()->set_reason(hex);
    link_->Send(up);
    CoordinatorMessage down;
    down.mutable_evicted()->set_reason(hex);
    hub_->Send(coordinator_.sessions[0], down);
  });
  ASSERT_TRUE(Until([this] { return coordinator_.messages.size() == 1 && worker_.messages.size() == 1; }));
  EXPECT_TRUE(coordinator_.messages[0].second.leaving().reason() == hex);
  EXPECT_TRUE(worker_.messages[0].evicted().reason() == hex);
}

TEST_P(TransportConformanceTest, WhatWasSentBeforeAnOrderlyCloseArrivesFromTheWorker) {
  OpenSession();
  harness_->OnLoop([this] {
    for (int i = 0; i < 20; ++i) SendHeartbeat(i);
    link_->Close();
  });
  ASSERT_TRUE(Until([this] { return coordinator_.closed.size() == 1; }));
  EXPECT_EQ(coordinator_.messages.size(), 20u);
  EXPECT_EQ(coordinator_.closed[0].first, coordinator_.sessions[0]);
  EXPECT_TRUE(coordinator_.closed[0].second.ok()) << coordinator_.closed[0].second;
  EXPECT_TRUE(worker_.closed.empty()) << "Close calls nothing back";
}

TEST_P(TransportConformanceTest, WhatWasSentBeforeAnOrderlyCloseArrivesFromTheHub) {
  OpenSession();
  harness_->OnLoop([this] {
    for (int i = 0; i < 20; ++i) {
      CoordinatorMessage echo;
      echo.mutable_heartbeat_echo()->set_token(i);
      hub_->Send(coordinator_.sessions[0], echo);
    }
    hub_->CloseSession(coordinator_.sessions[0]);
    hub_->Send(coordinator_.sessions[0], CoordinatorMessage());
  });
  ASSERT_TRUE(Until([this] { return worker_.closed.size() == 1 && coordinator_.closed.size() == 1; }));
  EXPECT_EQ(worker_.messages.size(), 20u);
  EXPECT_TRUE(absl::IsUnavailable(worker_.closed[0])) << worker_.closed[0];
  EXPECT_TRUE(coordinator_.closed[0].second.ok()) << coordinator_.closed[0].second;
}

TEST_P(TransportConformanceTest, ALinkMayDialAgainAfterClose) {
  OpenSession();
  harness_->OnLoop([this] { link_->Close(); });
  Dial();
  ASSERT_TRUE(Until([this] { return worker_.opened == 2 && coordinator_.sessions.size() == 2; }));
  EXPECT_NE(coordinator_.sessions[0], coordinator_.sessions[1]);
}

TEST_P(TransportConformanceTest, DiallingAnOpenSessionChangesNothing) {
  OpenSession();
  Dial();
  harness_->OnLoop([this] { SendHeartbeat(7); });
  ASSERT_TRUE(Until([this] { return coordinator_.messages.size() == 1; }));
  EXPECT_EQ(worker_.opened, 1);
  EXPECT_EQ(coordinator_.sessions.size(), 1u);
}

TEST_P(TransportConformanceTest, DiallingNobodyIsUnavailableByTheDeadline) {
  MakeLink();
  const absl::Time begin = harness_->SteadyNow();
  Dial(absl::Seconds(2));
  ASSERT_TRUE(Until([this] { return worker_.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(worker_.closed[0])) << worker_.closed[0];
  EXPECT_EQ(worker_.opened, 0);
  EXPECT_LT(harness_->SteadyNow() - begin, absl::Seconds(4));
}

TEST_P(TransportConformanceTest, MessagesToAClosedSessionAreDropped) {
  StartHub();
  MakeLink();
  harness_->OnLoop([this] {
    SendHeartbeat(1);
    hub_->Send(12345, CoordinatorMessage());
    hub_->CloseSession(12345);
  });
  Dial();
  ASSERT_TRUE(Until([this] { return worker_.opened == 1; }));
  harness_->OnLoop([this] { SendHeartbeat(2); });
  ASSERT_TRUE(Until([this] { return coordinator_.messages.size() == 1; }));
  EXPECT_EQ(coordinator_.messages[0].second.heartbeat().token(), 2);
}

TEST_P(TransportConformanceTest, AHubThatGoesAwayClosesSessionsAndTheNextOneTakesThem) {
  OpenSession();
  harness_->OnLoop([this] { hub_.reset(); });
  ASSERT_TRUE(Until([this] { return worker_.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(worker_.closed[0])) << worker_.closed[0];
  EXPECT_TRUE(coordinator_.closed.empty()) << "a hub that is gone calls nothing";
  StartHub();
  Dial();
  ASSERT_TRUE(Until([this] { return worker_.opened == 2; }));
}

TEST_P(TransportConformanceTest, AWorkerThatGoesAwayClosesItsSession) {
  OpenSession();
  harness_->OnLoop([this] { link_.reset(); });
  ASSERT_TRUE(Until([this] { return coordinator_.closed.size() == 1; }));
  EXPECT_TRUE(worker_.closed.empty());
}

TEST_P(TransportConformanceTest, FramesOfAnySizeArriveWhole) {
  StartHub();
  MakeLink();
  int round = 0;
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{262144}, int64_t{262145}, int64_t{10000000}}) {
    const std::string frame = MakeBytes(bytes, bytes);
    const absl::Status done = Upload(HeaderOf(frame, "alpha", ++round), frame);
    ASSERT_TRUE(done.ok()) << bytes << ": " << done;
    ASSERT_EQ(coordinator_.frames.size(), static_cast<size_t>(round));
    EXPECT_EQ(coordinator_.frames.back().first.key().round(), round);
    EXPECT_TRUE(*coordinator_.frames.back().second == frame) << bytes;
  }
  EXPECT_EQ(coordinator_.offers, 5);
}

TEST_P(TransportConformanceTest, AFrameThatIsNotItsDigestIsDataLoss) {
  StartHub();
  MakeLink();
  const std::string frame = MakeBytes(300000, 3);
  ContributionHeader header = HeaderOf(frame, "alpha", 1);
  header.set_frame_digest(std::string(16, 'x'));
  const absl::Status done = Upload(header, frame);
  EXPECT_TRUE(absl::IsDataLoss(done)) << done;
  EXPECT_TRUE(coordinator_.frames.empty());
}

TEST_P(TransportConformanceTest, AHeaderThatLiesAboutTheLengthIsInvalid) {
  StartHub();
  MakeLink();
  const std::string frame = MakeBytes(300000, 3);
  ContributionHeader header = HeaderOf(frame, "alpha", 1);
  header.set_frame_bytes(100);
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(header, frame)));
  header.set_frame_bytes(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(Upload(header, frame)));
  EXPECT_TRUE(coordinator_.frames.empty());
}

TEST_P(TransportConformanceTest, TheSameFrameTwiceArrivesTwice) {
  StartHub();
  MakeLink();
  const std::string frame = MakeBytes(1000, 4);
  EXPECT_TRUE(Upload(HeaderOf(frame, "alpha", 1), frame).ok());
  EXPECT_TRUE(Upload(HeaderOf(frame, "alpha", 1), frame).ok());
  EXPECT_EQ(coordinator_.frames.size(), 2u);
}

TEST_P(TransportConformanceTest, ARefusedOfferCostsNoFrameBytesAndSaysWhy) {
  StartHub();
  MakeLink();
  harness_->OnLoop([this] { coordinator_.offer_answer = absl::FailedPreconditionError("of another run"); });
  const std::string frame = MakeBytes(2000000, 5);
  const absl::Status done = Upload(HeaderOf(frame, "alpha", 1), frame);
  EXPECT_EQ(done.code(), absl::StatusCode::kFailedPrecondition) << done;
  EXPECT_EQ(done.message(), "of another run");
  EXPECT_EQ(coordinator_.offers, 1);
  int64_t out = 0;
  harness_->OnLoop([&] { out = link_->transferred().bytes_out; });
  EXPECT_LT(out, 100000);
}

TEST_P(TransportConformanceTest, AnUploadThatBrokeGoesOnWhereItStopped) {
  StartHub();
  MakeLink();
  const std::string frame = MakeBytes(10000000, 6);
  harness_->OnLoop([&] { harness_->BreakUploadOnce(frame.size()); });
  const absl::Status done = Upload(HeaderOf(frame, "alpha", 1), frame);
  ASSERT_TRUE(done.ok()) << done;
  EXPECT_EQ(coordinator_.offers, 2);
  ASSERT_EQ(coordinator_.frames.size(), 1u);
  EXPECT_TRUE(*coordinator_.frames[0].second == frame);
  int64_t in = 0;
  harness_->OnLoop([&] { in = hub_->transferred().bytes_in; });
  EXPECT_GE(in, 8000000) << "but for the last moments of the connection that broke";
  EXPECT_LT(in, 11500000) << "what the hub held was not sent again";
}

TEST_P(TransportConformanceTest, AnUploadToNobodyEndsByItsDeadline) {
  MakeLink();
  const std::string frame = MakeBytes(1000, 7);
  const absl::Status done = Upload(HeaderOf(frame, "alpha", 1), frame, absl::Seconds(1));
  EXPECT_TRUE(absl::IsUnavailable(done) || absl::IsDeadlineExceeded(done)) << done;
}

TEST_P(TransportConformanceTest, AnUploadSurvivesARestartOfTheHub) {
  MakeLink();
  const std::string frame = MakeBytes(1000000, 8);
  auto outcome = std::make_shared<absl::optional<absl::Status>>();
  harness_->OnLoop([&] {
    link_->Upload(HeaderOf(frame, "alpha", 1), std::make_shared<const std::string>(frame),
                  harness_->SteadyNow() + absl::Seconds(60),
                  [outcome](absl::Status status) { *outcome = std::move(status); });
  });
  StartHub();
  ASSERT_TRUE(Until([outcome] { return outcome->has_value(); }));
  EXPECT_TRUE((*outcome)->ok()) << **outcome;
  EXPECT_EQ(coordinator_.frames.size(), 1u);
}

TEST_P(TransportConformanceTest, BlobsOfAnySizeArriveWhole) {
  StartHub();
  MakeLink();
  int64_t round = 0;
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{262144}, int64_t{20000000}}) {
    const std::string blob = MakeBytes(bytes, bytes + 1);
    ++round;
    harness_->OnLoop([&] { coordinator_.blobs[round] = std::make_shared<StringBlob>(blob); });
    const absl::StatusOr<std::string> got = Fetch(round);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(*got == blob) << bytes;
    ASSERT_EQ(coordinator_.fetches.size(), static_cast<size_t>(round));
    EXPECT_EQ(coordinator_.fetches.back().run_id(), "run-1");
    EXPECT_EQ(coordinator_.fetches.back().life().site(), "alpha");
    EXPECT_EQ(coordinator_.fetches.back().kind(), UPDATE);
  }
}

TEST_P(TransportConformanceTest, ABlobThatIsNotThereIsNotFound) {
  StartHub();
  MakeLink();
  const absl::StatusOr<std::string> got = Fetch(9);
  EXPECT_TRUE(absl::IsNotFound(got.status())) << got.status();
  EXPECT_EQ(got.status().message(), "round 9 was pruned");
}

TEST_P(TransportConformanceTest, CloseEndsTransfersWithoutTheirCallbacks) {
  StartHub();
  MakeLink();
  auto calls = std::make_shared<int>(0);
  const std::string frame = MakeBytes(5000000, 9);
  harness_->OnLoop([&] {
    link_->Upload(HeaderOf(frame, "alpha", 1), std::make_shared<const std::string>(frame),
                  harness_->SteadyNow() + absl::Seconds(5), [calls](absl::Status) { ++*calls; });
    link_->Fetch("run-1", Life(), {UPDATE, 1, 0}, harness_->SteadyNow() + absl::Seconds(5),
                 [calls](absl::StatusOr<std::string>) { ++*calls; });
    link_->Close();
  });
  const std::string small = MakeBytes(10, 10);
  EXPECT_TRUE(Upload(HeaderOf(small, "alpha", 2), small).ok()) << "the link serves on";
  EXPECT_EQ(*calls, 0);
}

TEST_P(TransportConformanceTest, StatusIsAnsweredAndWatched) {
  StartHub();
  harness_->OnLoop([this] { coordinator_.status.set_round(41); });
  StatusRequest request;
  request.set_run_name("any");
  const absl::StatusOr<RunStatus> status = harness_->AskStatus(request);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->round(), 41);
  EXPECT_TRUE(harness_->WatchSees(42, [this] {
    RunStatus newer;
    newer.set_round(42);
    hub_->PublishStatus(newer);
  }));
}

TEST_P(TransportConformanceTest, StatusOfNobodyIsUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(harness_->AskStatus(StatusRequest()).status()));
}

TEST_P(TransportConformanceTest, ASecondHubOnTheSameAddressIsUnavailable) {
  StartHub();
  absl::Status second;
  harness_->OnLoop([&] {
    std::unique_ptr<Hub> hub = harness_->MakeHub();
    second = hub->Start(&coordinator_);
  });
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
}

}  // namespace isthmus
