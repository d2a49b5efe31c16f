// Every operation crossed with every fault: what comes of it, and what it costs.
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"
#include "daemon/base/clock.h"
#include "daemon/base/event_loop.h"
#include "daemon/exchange/sim_transport.h"
#include "daemon/exchange/transport_recording.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

enum class Operation { kMessageUp, kMessageDown, kUpload, kFetch };

constexpr int64_t kBlobBytes = 4 * 262144;
// Request, answer and envelopes of four pieces.
constexpr int64_t kSlack = 500;

// Ten messages in one direction, or one transfer of 1 MiB at 1 MB/s and 1 ms.
class Bench {
 public:
  Bench() {
    network_.SetLinkProfile("alpha", {absl::Milliseconds(1), 1e6, 1e6});
    coordinator_.blobs[1] = std::make_shared<StringBlob>(blob_);
    hub_ = network_.MakeHub();
    EXPECT_TRUE(hub_->Start(&coordinator_).ok());
    link_ = network_.MakeLink("alpha");
    link_->Dial(&worker_, clock_.SteadyNow() + absl::Seconds(5));
    loop_.RunUntil(start_ + absl::Seconds(1));
    EXPECT_EQ(worker_.opened, 1);
  }

  void Run(Operation operation) {
    const absl::Time deadline = clock_.SteadyNow() + absl::Seconds(60);
    const absl::Time begin = clock_.SteadyNow();
    Life life;
    life.set_site("alpha");
    switch (operation) {
      case Operation::kMessageUp:
      case Operation::kMessageDown:
        for (int i = 0; i < 10; ++i) SendMessage(operation, i);
        break;
      case Operation::kUpload:
        link_->Upload(HeaderOf(blob_, "alpha", 1), std::make_shared<const std::string>(blob_), deadline,
                      [this, begin](absl::Status status) {
                        uploaded_ = std::move(status);
                        took_ = clock_.SteadyNow() - begin;
                      });
        break;
      case Operation::kFetch:
        link_->Fetch("run-1", life, {UPDATE, 1, 0}, deadline,
                     [this, begin](absl::StatusOr<std::string> blob) {
                       fetched_ = std::move(blob);
                       took_ = clock_.SteadyNow() - begin;
                     });
        break;
    }
    loop_.RunUntil(begin + absl::Minutes(2));
  }

  // The tokens that arrived, in order: "0 1 2 … 9", with "closed" when the session ended.
  std::string Arrived(Operation operation) {
    std::string all;
    if (operation == Operation::kMessageUp) {
      for (const auto& [session, message] : coordinator_.messages)
        absl::StrAppend(&all, message.heartbeat().token());
      if (!coordinator_.closed.empty()) all += " closed";
    } else {
      for (const auto& message : worker_.messages) absl::StrAppend(&all, message.heartbeat_echo().token());
      if (!worker_.closed.empty()) all += " closed";
    }
    return all;
  }

  void SendMessage(Operation operation, int64_t token) {
    if (operation == Operation::kMessageUp) {
      WorkerMessage message;
      message.mutable_heartbeat()->set_token(token);
      link_->Send(message);
    } else {
      CoordinatorMessage message;
      message.mutable_heartbeat_echo()->set_token(token);
      hub_->Send(coordinator_.sessions[0], message);
    }
  }

  FakeClock clock_;
  SimLoop loop_{&clock_};
  const absl::Time start_ = clock_.SteadyNow();
  SimNetwork network_{&loop_};
  const std::string blob_ = MakeBytes(kBlobBytes, 1);
  RecordingCoordinator coordinator_;
  RecordingWorker worker_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<WorkerLink> link_;
  absl::optional<absl::Status> uploaded_;
  absl::optional<absl::StatusOr<std::string>> fetched_;
  absl::Duration took_;
};

Fault MakeFault(FaultKind kind, FaultTarget target, FaultSide side) {
  Fault fault;
  fault.kind = kind;
  fault.target = target;
  fault.side = side;
  fault.length = absl::Seconds(3);
  return fault;
}

// Messages: the fault strikes the fourth of ten ("3").
class MessageMatrix : public testing::TestWithParam<Operation> {
 protected:
  std::string With(Fault fault) {
    fault.target = FaultTarget::kControl;
    fault.side = GetParam() == Operation::kMessageUp ? FaultSide::kUp : FaultSide::kDown;
    fault.skip = 3;
    bench_.network_.Inject(fault);
    bench_.Run(GetParam());
    EXPECT_EQ(bench_.network_.struck(fault.kind), 1);
    return bench_.Arrived(GetParam());
  }
  std::string With(FaultKind kind) { return With(MakeFault(kind, FaultTarget::kControl, FaultSide::kUp)); }
  Bench bench_;
};

TEST_P(MessageMatrix, ALostMessageBreaksTheSession) {
  // All ten went out at once: what was on the way when it broke is lost too.
  EXPECT_EQ(With(FaultKind::kRequestLost), " closed");
  EXPECT_EQ(bench_.worker_.closed.size(), 1u) << "both sides hear of it";
  EXPECT_EQ(bench_.coordinator_.closed.size(), 1u);
  EXPECT_TRUE(absl::IsUnavailable(bench_.worker_.closed[0]));
  EXPECT_TRUE(absl::IsUnavailable(bench_.coordinator_.closed[0].second));
}

TEST_P(MessageMatrix, ASilentlyLostMessageIsJustMissing) {
  Fault fault = MakeFault(FaultKind::kRequestLost, FaultTarget::kControl, FaultSide::kUp);
  fault.is_silent = true;
  EXPECT_EQ(With(fault), "012456789");
}

TEST_P(MessageMatrix, AMessageMayArriveAndTheSessionBreakBehindIt) {
  EXPECT_EQ(With(FaultKind::kReplyLost), "0123 closed");
}

TEST_P(MessageMatrix, ADelayedMessageHoldsUpTheOthersAndOrderIsKept) {
  EXPECT_EQ(With(FaultKind::kDelayed), "0123456789");
}

TEST_P(MessageMatrix, ADuplicatedMessageArrivesTwice) {
  EXPECT_EQ(With(FaultKind::kDuplicated), "01233456789");
}

TEST_P(MessageMatrix, AReorderedMessageArrivesAfterTheNext) {
  EXPECT_EQ(With(FaultKind::kReordered), "0124356789");
}

TEST_P(MessageMatrix, AReorderedMessageWithNothingBehindItArrivesLate) {
  Fault fault = MakeFault(FaultKind::kReordered, FaultTarget::kControl, FaultSide::kUp);
  bench_.network_.Inject([&] {
    fault.side = GetParam() == Operation::kMessageUp ? FaultSide::kUp : FaultSide::kDown;
    return fault;
  }());
  const absl::Time begin = bench_.clock_.SteadyNow();
  bench_.SendMessage(GetParam(), 5);
  bench_.loop_.RunUntil(begin + absl::Seconds(2));
  EXPECT_EQ(bench_.Arrived(GetParam()), "");
  bench_.loop_.RunUntil(begin + absl::Seconds(4));
  EXPECT_EQ(bench_.Arrived(GetParam()), "5");
}

TEST_P(MessageMatrix, ACloggedLinkHoldsAllMessagesThenLetsThemThrough) {
  EXPECT_EQ(With(FaultKind::kClogged), "0123456789");
}

TEST_P(MessageMatrix, ACloggedLinkMayBreakInTheEnd) {
  Fault fault = MakeFault(FaultKind::kClogged, FaultTarget::kControl, FaultSide::kUp);
  fault.is_breaking = true;
  // The timer of the break was set before the wire opens again, so nothing gets through.
  EXPECT_EQ(With(fault), " closed");
}

TEST_P(MessageMatrix, ASlowPeerGetsEverything) { EXPECT_EQ(With(FaultKind::kPeerSlow), "0123456789"); }

TEST_P(MessageMatrix, FlippedBytesBreakTheSession) { EXPECT_EQ(With(FaultKind::kBytesFlipped), " closed"); }

TEST_P(MessageMatrix, ABrokenConnectionEndsTheSession) { EXPECT_EQ(With(FaultKind::kBroken), " closed"); }

TEST_P(MessageMatrix, AWorkerThatDiesEndsTheSessionAtTheHubOnly) {
  bench_.network_.KillLink("alpha");
  bench_.Run(GetParam());
  EXPECT_EQ(bench_.Arrived(GetParam()), GetParam() == Operation::kMessageUp ? " closed" : "");
}

TEST_P(MessageMatrix, AHubThatDiesEndsTheSessionAtTheWorkerOnlyAndTheNextAccepts) {
  bench_.network_.KillHub();
  bench_.Run(GetParam());
  EXPECT_EQ(bench_.Arrived(GetParam()), GetParam() == Operation::kMessageUp ? "" : " closed");
  std::unique_ptr<Hub> next = bench_.network_.MakeHub();
  ASSERT_TRUE(next->Start(&bench_.coordinator_).ok());
  bench_.link_->Dial(&bench_.worker_, bench_.clock_.SteadyNow() + absl::Seconds(5));
  bench_.loop_.RunUntil(bench_.clock_.SteadyNow() + absl::Seconds(5));
  EXPECT_EQ(bench_.worker_.opened, 2);
  EXPECT_EQ(bench_.coordinator_.sessions.size(), 2u);
}

INSTANTIATE_TEST_SUITE_P(BothWays, MessageMatrix,
                         testing::Values(Operation::kMessageUp, Operation::kMessageDown));

// Transfers: what one fault makes of a transfer of 1 MiB.
struct TransferCase {
  Operation operation;
  FaultKind kind;
  FaultSide side;
  absl::StatusCode outcome;
  int64_t copies;           // UploadReceived calls, or FetchRequested calls
  double mebibytes;         // over the data wire in the transfer's direction
  double least_seconds;     // it took, of transmission and waiting
  bool is_flipped = false;  // the blob that arrived is damaged: its reader's digest has to find it
};

std::string NameOf(const testing::TestParamInfo<TransferCase>& info) {
  return absl::StrCat(info.param.operation == Operation::kUpload ? "upload_" : "fetch_",
                      FaultKindName(info.param.kind), info.param.side == FaultSide::kUp ? "_up" : "_down");
}

class TransferMatrix : public testing::TestWithParam<TransferCase> {
 protected:
  Bench bench_;
};

TEST_P(TransferMatrix, ComesOutAsItShould) {
  const TransferCase& c = GetParam();
  const bool is_upload = c.operation == Operation::kUpload;
  bench_.network_.Inject(MakeFault(c.kind, is_upload ? FaultTarget::kUpload : FaultTarget::kFetch, c.side));
  bench_.Run(c.operation);
  EXPECT_EQ(bench_.network_.struck(c.kind), 1);
  if (is_upload) {
    ASSERT_TRUE(bench_.uploaded_.has_value());
    EXPECT_EQ(bench_.uploaded_->code(), c.outcome) << *bench_.uploaded_;
    ASSERT_EQ(static_cast<int64_t>(bench_.coordinator_.frames.size()), c.copies);
    for (const auto& [header, frame] : bench_.coordinator_.frames) EXPECT_TRUE(*frame == bench_.blob_);
  } else {
    ASSERT_TRUE(bench_.fetched_.has_value());
    EXPECT_EQ(bench_.fetched_->status().code(), c.outcome) << bench_.fetched_->status();
    if (bench_.fetched_->ok()) {
      EXPECT_EQ(**bench_.fetched_ != bench_.blob_, c.is_flipped);
    }
    EXPECT_EQ(static_cast<int64_t>(bench_.coordinator_.fetches.size()), c.copies);
  }
  const SiteTraffic& traffic = bench_.network_.traffic("alpha");
  const int64_t moved = is_upload ? traffic.data_up : traffic.data_down;
  EXPECT_GE(moved, c.mebibytes * kBlobBytes);
  EXPECT_LE(moved, c.mebibytes * kBlobBytes + kSlack);
  EXPECT_GE(absl::ToDoubleSeconds(bench_.took_), c.least_seconds);
  EXPECT_LE(absl::ToDoubleSeconds(bench_.took_), c.least_seconds + 0.5);
}

constexpr absl::StatusCode kOk = absl::StatusCode::kOk;
constexpr FaultSide kUp = FaultSide::kUp, kDown = FaultSide::kDown;
INSTANTIATE_TEST_SUITE_P(
    Upload, TransferMatrix,
    testing::Values(
        // The answer never came: asked again after 0.2 s.
        TransferCase{Operation::kUpload, FaultKind::kRequestLost, kUp, kOk, 1, 1, 1.2},
        // The work was done and the sender told nothing: it hears UNAVAILABLE.
        TransferCase{Operation::kUpload, FaultKind::kReplyLost, kDown, absl::StatusCode::kUnavailable, 1, 1,
                     1.05},
        // The connection broke under the answer: the link itself sends it again, whole.
        TransferCase{Operation::kUpload, FaultKind::kRequestLost, kDown, kOk, 2, 2, 2.3},
        TransferCase{Operation::kUpload, FaultKind::kBroken, kDown, kOk, 2, 2, 2.3},
        TransferCase{Operation::kUpload, FaultKind::kBytesFlipped, kDown, kOk, 2, 2, 2.3},
        TransferCase{Operation::kUpload, FaultKind::kDelayed, kUp, kOk, 1, 1, 4.0},
        TransferCase{Operation::kUpload, FaultKind::kDelayed, kDown, kOk, 1, 1, 4.0},
        TransferCase{Operation::kUpload, FaultKind::kDuplicated, kUp, kOk, 2, 2, 1.05},
        TransferCase{Operation::kUpload, FaultKind::kDuplicated, kDown, kOk, 1, 1, 1.05},
        TransferCase{Operation::kUpload, FaultKind::kReordered, kUp, kOk, 1, 1, 4.0},
        TransferCase{Operation::kUpload, FaultKind::kReordered, kDown, kOk, 1, 1, 4.0},
        TransferCase{Operation::kUpload, FaultKind::kClogged, kUp, kOk, 1, 1, 4.0},
        TransferCase{Operation::kUpload, FaultKind::kClogged, kDown, kOk, 1, 1, 4.0},
        // Three seconds at a quarter of the rate: three pieces, the fourth at full rate.
        TransferCase{Operation::kUpload, FaultKind::kPeerSlow, kUp, kOk, 1, 1, 3.3},
        // The digest is wrong at the hub: sent again, whole.
        TransferCase{Operation::kUpload, FaultKind::kBytesFlipped, kUp, kOk, 1, 2, 2.3},
        // Half of it was across: only the other half is sent again, and the one piece that was on its way.
        TransferCase{Operation::kUpload, FaultKind::kBroken, kUp, kOk, 1, 1.25, 1.2}),
    NameOf);
INSTANTIATE_TEST_SUITE_P(
    Fetch, TransferMatrix,
    testing::Values(TransferCase{Operation::kFetch, FaultKind::kRequestLost, kUp, kOk, 1, 1, 1.2},
                    TransferCase{Operation::kFetch, FaultKind::kReplyLost, kDown, kOk, 2, 1, 1.2},
                    TransferCase{Operation::kFetch, FaultKind::kBroken, kUp, kOk, 1, 1, 1.2},
                    TransferCase{Operation::kFetch, FaultKind::kBroken, kDown, kOk, 2, 1.25, 1.2},
                    TransferCase{Operation::kFetch, FaultKind::kDelayed, kUp, kOk, 1, 1, 4.0},
                    TransferCase{Operation::kFetch, FaultKind::kDelayed, kDown, kOk, 1, 1, 3.25},
                    TransferCase{Operation::kFetch, FaultKind::kDuplicated, kUp, kOk, 2, 1, 1.05},
                    TransferCase{Operation::kFetch, FaultKind::kReordered, kUp, kOk, 1, 1, 4.0},
                    TransferCase{Operation::kFetch, FaultKind::kReordered, kDown, kOk, 1, 1, 3.25},
                    TransferCase{Operation::kFetch, FaultKind::kClogged, kUp, kOk, 1, 1, 4.0},
                    TransferCase{Operation::kFetch, FaultKind::kClogged, kDown, kOk, 1, 1, 3.0},
                    TransferCase{Operation::kFetch, FaultKind::kPeerSlow, kDown, kOk, 1, 1, 3.3},
                    TransferCase{Operation::kFetch, FaultKind::kBytesFlipped, kUp, kOk, 1, 1, 1.2},
                    TransferCase{Operation::kFetch, FaultKind::kBytesFlipped, kDown, kOk, 1, 1, 1.05, true}),
    NameOf);

TEST(FaultMatrix, AnUndetectedFlipReachesTheRoleWithAFrameThatIsNotItsDigest) {
  Bench bench;
  Fault fault = MakeFault(FaultKind::kBytesFlipped, FaultTarget::kUpload, FaultSide::kUp);
  fault.is_undetected = true;
  bench.network_.Inject(fault);
  bench.Run(Operation::kUpload);
  EXPECT_TRUE(bench.uploaded_->ok());
  ASSERT_EQ(bench.coordinator_.frames.size(), 1u);
  const std::string& frame = *bench.coordinator_.frames[0].second;
  ASSERT_EQ(frame.size(), bench.blob_.size());
  int different = 0;
  for (size_t i = 0; i < frame.size(); ++i) different += frame[i] != bench.blob_[i];
  EXPECT_EQ(different, 1);
}

TEST(FaultMatrix, AFrameDamagedTwiceIsDataLoss) {
  Bench bench;
  Fault fault = MakeFault(FaultKind::kBytesFlipped, FaultTarget::kUpload, FaultSide::kUp);
  fault.budget = 2;
  bench.network_.Inject(fault);
  bench.Run(Operation::kUpload);
  EXPECT_TRUE(absl::IsDataLoss(*bench.uploaded_)) << *bench.uploaded_;
}

TEST(FaultMatrix, ASilentHubEndsATransferAtItsDeadlineNamingSiteAndRound) {
  for (Operation operation : {Operation::kUpload, Operation::kFetch}) {
    Bench bench;
    Fault fault = MakeFault(FaultKind::kRequestLost, FaultTarget::kAny, FaultSide::kUp);
    fault.is_silent = true;
    bench.network_.Inject(fault);
    bench.Run(operation);
    const absl::Status status = operation == Operation::kUpload ? *bench.uploaded_ : bench.fetched_->status();
    EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
    EXPECT_NE(status.message().find("site 'alpha'"), std::string::npos) << status;
    EXPECT_NE(status.message().find("round 1"), std::string::npos) << status;
    EXPECT_EQ(bench.took_, absl::Seconds(60));
  }
}

TEST(FaultMatrix, AHubThatRestartsMidTransferGetsAllOfAFrameAndTheRestOfAFetch) {
  for (Operation operation : {Operation::kUpload, Operation::kFetch}) {
    Bench bench;
    std::unique_ptr<Hub> next;
    bench.loop_.RunAfter(absl::Milliseconds(600), [&] {
      bench.hub_.reset();
      next = bench.network_.MakeHub();
      ASSERT_TRUE(next->Start(&bench.coordinator_).ok());
    });
    bench.Run(operation);
    if (operation == Operation::kUpload) {
      EXPECT_TRUE(bench.uploaded_->ok()) << *bench.uploaded_;
      ASSERT_EQ(bench.coordinator_.frames.size(), 1u);
      EXPECT_TRUE(*bench.coordinator_.frames[0].second == bench.blob_);
    } else {
      ASSERT_TRUE(bench.fetched_->ok()) << bench.fetched_->status();
      EXPECT_TRUE(**bench.fetched_ == bench.blob_);
      EXPECT_LE(bench.network_.traffic("alpha").data_down, kBlobBytes * 5 / 4 + kSlack);
    }
  }
}

TEST(FaultMatrix, AWorkerThatDiesMidTransferLeavesNothingRunning) {
  for (Operation operation : {Operation::kUpload, Operation::kFetch}) {
    Bench bench;
    bench.loop_.RunAfter(absl::Milliseconds(600), [&] { bench.link_.reset(); });
    bench.Run(operation);
    EXPECT_FALSE(bench.uploaded_.has_value());
    EXPECT_FALSE(bench.fetched_.has_value());
    EXPECT_TRUE(bench.coordinator_.frames.empty());
    EXPECT_EQ(bench.coordinator_.closed.size(), 1u);
  }
}

TEST(FaultMatrix, NetworkLinksAndHubsMayDieInAnyOrderWithCallbacksQueued) {
  for (int order = 0; order < 3; ++order) {
    FakeClock clock;
    SimLoop loop(&clock);
    auto network = std::make_unique<SimNetwork>(&loop);
    RecordingCoordinator coordinator;
    RecordingWorker worker;
    std::unique_ptr<Hub> hub = network->MakeHub();
    ASSERT_TRUE(hub->Start(&coordinator).ok());
    std::unique_ptr<WorkerLink> link = network->MakeLink("alpha");
    link->Dial(&worker, clock.SteadyNow() + absl::Seconds(5));
    loop.RunUntil(clock.SteadyNow() + absl::Seconds(1));
    const std::string frame = MakeBytes(1000000, 2);
    link->Upload(HeaderOf(frame, "alpha", 1), std::make_shared<const std::string>(frame),
                 clock.SteadyNow() + absl::Seconds(5), [](absl::Status) { FAIL(); });
    WorkerMessage message;
    message.mutable_heartbeat()->set_token(1);
    link->Send(message);
    if (order == 0) network.reset();
    if (order == 1) hub.reset();
    link.reset();
    hub.reset();
    network.reset();
    loop.RunUntil(clock.SteadyNow() + absl::Minutes(1));
    EXPECT_TRUE(coordinator.frames.empty());
  }
}

TEST(FaultMatrix, TheSameSeedReplaysTheSameRun) {
  auto run = [](uint64_t seed) {
    Bench bench;
    for (FaultKind kind : {FaultKind::kRequestLost, FaultKind::kBroken, FaultKind::kBytesFlipped}) {
      Fault fault = MakeFault(kind, FaultTarget::kAny, FaultSide::kUp);
      fault.seed = seed;
      fault.probability = 0.3;
      fault.budget = 100;
      bench.network_.Inject(fault);
    }
    bench.Run(Operation::kUpload);
    return absl::StrCat(bench.uploaded_->ToString(), " ", absl::FormatDuration(bench.took_), " ",
                        bench.network_.traffic("alpha").data_up);
  };
  EXPECT_EQ(run(1), run(1));
}

}  // namespace
}  // namespace isthmus
