// What holds for the gRPC transport alone: sockets, ports, plain text, pace, damage on the wire.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "absl/types/optional.h"
#include "daemon/exchange/transport_recording.h"
#include "daemon/rpc/grpc_harness.h"
#include "daemon/rpc/status_client.h"
#include "daemon/rpc/status_conversion.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

class GrpcTransportTest : public testing::Test {
 protected:
  void TearDown() override {
    harness_.OnLoop([this] {
      links_.clear();
      link_.reset();
      hub_.reset();
    });
  }
  void StartHub() {
    harness_.OnLoop([this] {
      hub_ = harness_.MakeHub();
      ASSERT_TRUE(hub_->Start(&coordinator_).ok());
    });
  }
  void OpenSession() {
    StartHub();
    harness_.OnLoop([this] {
      link_ = harness_.MakeLink("alpha");
      link_->Dial(&worker_, harness_.SteadyNow() + absl::Seconds(10));
    });
    ASSERT_TRUE(harness_.Until([this] { return worker_.opened == 1; }));
  }
  absl::Status Upload(const std::string& frame) {
    auto outcome = std::make_shared<absl::optional<absl::Status>>();
    harness_.OnLoop([&] {
      link_->Upload(HeaderOf(frame, "alpha", 1), std::make_shared<const std::string>(frame),
                    harness_.SteadyNow() + absl::Seconds(60),
                    [outcome](absl::Status status) { *outcome = status; });
    });
    if (!harness_.Until([outcome] { return outcome->has_value(); })) return absl::UnknownError("no outcome");
    return **outcome;
  }
  TransferCount CountOf(const WorkerLink& link) {
    TransferCount count;
    harness_.OnLoop([&] { count = link.transferred(); });
    return count;
  }
  TransferCount CountOf(const Hub& hub) {
    TransferCount count;
    harness_.OnLoop([&] { count = hub.transferred(); });
    return count;
  }

  RecordingWorker worker_;
  RecordingCoordinator coordinator_;
  GrpcHarness harness_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<WorkerLink> link_;
  std::vector<std::unique_ptr<WorkerLink>> links_;
};

TEST_F(GrpcTransportTest, BothSidesCountWhatWentOverTheSockets) {
  OpenSession();
  const std::string frame = MakeBytes(10000000, 1);
  ASSERT_TRUE(Upload(frame).ok());
  const TransferCount up = CountOf(*link_), in = CountOf(*hub_);
  EXPECT_GE(up.bytes_out, 10000000);
  EXPECT_LE(up.bytes_out, 10500000);
  EXPECT_GE(in.bytes_in, 10000000);
  EXPECT_LE(in.bytes_in, 10500000);
  EXPECT_LT(up.bytes_in, 100000);
  EXPECT_EQ(up.classes.up(TrafficBytes::CONTRIBUTION), 10000000);
  EXPECT_EQ(in.classes.up(TrafficBytes::CONTRIBUTION), 10000000);
  EXPECT_GT(up.classes.up(TrafficBytes::CONTROL), 0) << "the header at least";

  harness_.OnLoop([&] { coordinator_.blobs[1] = std::make_shared<StringBlob>(frame); });
  auto fetched = std::make_shared<bool>(false);
  harness_.OnLoop([&] {
    link_->Fetch("run-1", Life(), {SNAPSHOT, 1, 0}, harness_.SteadyNow() + absl::Seconds(60),
                 [fetched](absl::StatusOr<std::string> blob) { *fetched = blob.ok(); });
  });
  ASSERT_TRUE(harness_.Until([fetched] { return *fetched; }));
  const TransferCount down = CountOf(*link_), out = CountOf(*hub_);
  EXPECT_GE(down.bytes_in - up.bytes_in, 10000000);
  EXPECT_LE(down.bytes_in - up.bytes_in, 10500000);
  EXPECT_GE(out.bytes_out - in.bytes_out, 10000000);
  EXPECT_LE(out.bytes_out - in.bytes_out, 10500000);
  EXPECT_EQ(down.classes.down(TrafficBytes::SNAPSHOT), 10000000);
  EXPECT_EQ(out.classes.down(TrafficBytes::SNAPSHOT), 10000000);
  EXPECT_EQ(out.classes.down(TrafficBytes::UPDATE), 0);
  // The classes are the totals but for what the transport adds.
  for (const TransferCount& count : {down, out}) {
    const int64_t classes = count.classes.all_up() + count.classes.all_down();
    EXPECT_LE(classes, count.bytes_in + count.bytes_out);
    EXPECT_GE(1.02 * classes, count.bytes_in + count.bytes_out);
  }
}

TEST_F(GrpcTransportTest, WhatALinkMovedStaysCountedWhenItIsGone) {
  OpenSession();
  ASSERT_TRUE(Upload(MakeBytes(3000000, 1)).ok());
  const int64_t before = CountOf(*hub_).bytes_in;
  harness_.OnLoop([this] { link_.reset(); });
  ASSERT_TRUE(harness_.Until([this] { return coordinator_.closed.size() == 1; }));
  EXPECT_GE(CountOf(*hub_).bytes_in, before);
}

TEST_F(GrpcTransportTest, ATakenPortIsUnavailableAndNamed) {
  StartHub();
  absl::Status second;
  std::string address;
  harness_.OnLoop([&] {
    std::unique_ptr<Hub> hub = harness_.MakeHub();
    second = hub->Start(&coordinator_);
    address = "127.0.0.1:" + std::to_string(static_cast<GrpcHub*>(hub_.get())->port());
  });
  EXPECT_TRUE(absl::IsUnavailable(second)) << second;
  EXPECT_TRUE(absl::StrContains(second.message(), address)) << second;
  EXPECT_TRUE(absl::StrContains(second.message(), "Address already in use")) << second;
}

TEST_F(GrpcTransportTest, BeyondLoopbackPlainTextMustBeSaidAloud) {
  harness_.OnLoop([this] {
    GrpcHubOptions options;
    options.listen = {"0.0.0.0", 0};
    const absl::Status listening = GrpcHub(harness_.loop(), options).Start(&coordinator_);
    EXPECT_EQ(listening.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(listening.message(), "say --insecure")) << listening;
    options.rpc.is_insecure_allowed = true;
    EXPECT_TRUE(GrpcHub(harness_.loop(), options).Start(&coordinator_).ok());

    GrpcLinkOptions dialling;
    dialling.coordinator = {"coord.example.org", 7};
    const absl::Status refused = GrpcLink::Create(harness_.loop(), dialling).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition);
    EXPECT_TRUE(absl::StrContains(refused.message(), "coord.example.org:7")) << refused;
    dialling.rpc.is_insecure_allowed = true;
    EXPECT_TRUE(GrpcLink::Create(harness_.loop(), dialling).ok());
  });
}

TEST_F(GrpcTransportTest, ABitTurnedOnTheWireIsFoundAndTheFrameSentAgain) {
  OpenSession();
  const std::string frame = MakeBytes(4000000, 2);
  harness_.OnLoop([&] { harness_.relay()->FlipOnceAfter(frame.size() / 2); });
  const absl::Status done = Upload(frame);
  ASSERT_TRUE(done.ok()) << done;
  ASSERT_EQ(coordinator_.frames.size(), 1u);
  EXPECT_TRUE(*coordinator_.frames[0].second == frame);
  EXPECT_EQ(coordinator_.offers, 2);
}

TEST_F(GrpcTransportTest, DataHasAConnectionOfItsOwn) {
  OpenSession();
  const std::string frame = MakeBytes(4000000, 3);
  harness_.OnLoop([&] { harness_.BreakUploadOnce(frame.size()); });
  ASSERT_TRUE(Upload(frame).ok());
  EXPECT_EQ(coordinator_.offers, 2) << "the data connection broke";
  EXPECT_TRUE(worker_.closed.empty()) << "and the session did not";
  EXPECT_TRUE(coordinator_.closed.empty());
}

TEST_F(GrpcTransportTest, ASessionWhoseConnectionIsCutEndsUnavailableOnBothSides) {
  OpenSession();
  harness_.relay()->CutAll();
  ASSERT_TRUE(
      harness_.Until([this] { return worker_.closed.size() == 1 && coordinator_.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(worker_.closed[0])) << worker_.closed[0];
  EXPECT_TRUE(absl::IsUnavailable(coordinator_.closed[0].second)) << coordinator_.closed[0].second;
}

TEST_F(GrpcTransportTest, AnIdleSessionIsPingedAndStays) {
  harness_.hub_options.rpc.keepalive_interval = harness_.link_options.rpc.keepalive_interval =
      absl::Milliseconds(50);
  OpenSession();
  const int64_t before = CountOf(*link_).bytes_out;
  bool is_later = false;
  harness_.loop()->RunAfter(absl::Milliseconds(1500), [&] { is_later = true; });
  ASSERT_TRUE(harness_.Until([&] { return is_later; }));
  EXPECT_GE(CountOf(*link_).bytes_out - before, 10 * 17) << "a ping is 17 bytes";
  EXPECT_TRUE(worker_.closed.empty()) << worker_.closed[0];
  EXPECT_TRUE(coordinator_.closed.empty()) << coordinator_.closed[0].second;
}

TEST_F(GrpcTransportTest, AConnectionThatGoesQuietIsGivenUpByBothSides) {
  for (RpcOptions* rpc : {&harness_.hub_options.rpc, &harness_.link_options.rpc}) {
    rpc->keepalive_interval = absl::Milliseconds(100);
    rpc->keepalive_timeout = absl::Milliseconds(200);
  }
  OpenSession();
  harness_.relay()->Freeze();
  ASSERT_TRUE(
      harness_.Until([this] { return worker_.closed.size() == 1 && coordinator_.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(worker_.closed[0])) << worker_.closed[0];
  EXPECT_TRUE(absl::IsUnavailable(coordinator_.closed[0].second)) << coordinator_.closed[0].second;
}

TEST_F(GrpcTransportTest, UploadsKeepToTheirBudget) {
  harness_.link_options.upload_bytes_per_second = 4e6;
  OpenSession();
  const absl::Time begin = harness_.SteadyNow();
  ASSERT_TRUE(Upload(MakeBytes(3000000, 4)).ok());
  // A twentieth of a second's worth goes at once, the other 2.8 million bytes take 0.7 seconds.
  EXPECT_GE(harness_.SteadyNow() - begin, absl::Milliseconds(680));
}

TEST_F(GrpcTransportTest, FetchesOfAllSitesKeepToTheHubsBudgetTogether) {
  harness_.hub_options.data_bytes_per_second = 4e6;
  StartHub();
  auto done = std::make_shared<int>(0);
  const absl::Time begin = harness_.SteadyNow();
  harness_.OnLoop([&] {
    coordinator_.blobs[1] = std::make_shared<StringBlob>(MakeBytes(1000000, 5));
    for (int i = 0; i < 3; ++i) {
      links_.push_back(harness_.MakeLink("site"));
      links_.back()->Fetch("run-1", Life(), {UPDATE, 1, 0}, harness_.SteadyNow() + absl::Seconds(60),
                           [done](absl::StatusOr<std::string> blob) { *done += blob.ok(); });
    }
  });
  ASSERT_TRUE(harness_.Until([done] { return *done == 3; }));
  EXPECT_GE(harness_.SteadyNow() - begin, absl::Milliseconds(480));
}

// Counts how many are between their first and their last piece.
class CountedBlob : public BlobSource {
 public:
  explicit CountedBlob(std::atomic<int>* reading, std::atomic<int>* most) : reading_(reading), most_(most) {}
  int64_t size() const override { return 20 * 262144; }
  absl::StatusOr<std::string> Read(int64_t offset, int64_t bytes) const override {
    if (offset == 0) {
      const int now = ++*reading_;
      if (now > *most_) most_->store(now);
    }
    if (offset + bytes == size()) --*reading_;
    return std::string(bytes, 'x');
  }

 private:
  std::atomic<int>* const reading_;
  std::atomic<int>* const most_;
};

TEST_F(GrpcTransportTest, ManySnapshotsAtOnceWaitTheirTurnAndAllArrive) {
  harness_.hub_options.most_snapshots_under_way = 2;
  StartHub();
  std::atomic<int> reading{0}, most{0};
  auto done = std::make_shared<int>(0);
  harness_.OnLoop([&] {
    for (int i = 0; i < 8; ++i) {
      coordinator_.blobs[i] = std::make_shared<CountedBlob>(&reading, &most);
      links_.push_back(harness_.MakeLink("site"));
      links_.back()->Fetch("run-1", Life(), {SNAPSHOT, i, 0}, harness_.SteadyNow() + absl::Seconds(60),
                           [done](absl::StatusOr<std::string> blob) { *done += blob.ok(); });
    }
  });
  ASSERT_TRUE(harness_.Until([done] { return *done == 8; }));
  EXPECT_EQ(most, 2);
}

TEST_F(GrpcTransportTest, AWorkerThatDiesWhileItsSnapshotWaitsGivesUpItsTurn) {
  harness_.hub_options.most_snapshots_under_way = 1;
  harness_.hub_options.data_bytes_per_second = 4e6;
  StartHub();
  auto done = std::make_shared<int>(0);
  harness_.OnLoop([&] {
    coordinator_.blobs[1] = std::make_shared<StringBlob>(MakeBytes(2000000, 6));
    for (int i = 0; i < 3; ++i) {
      links_.push_back(harness_.MakeLink("site"));
      links_.back()->Fetch("run-1", Life(), {SNAPSHOT, 1, 0}, harness_.SteadyNow() + absl::Seconds(60),
                           [done](absl::StatusOr<std::string> blob) { *done += blob.ok(); });
    }
  });
  ASSERT_TRUE(harness_.Until([this] { return coordinator_.fetches.size() == 3; }));
  harness_.OnLoop([this] {
    links_[0].reset();
    links_[1].reset();
  });
  EXPECT_TRUE(harness_.Until([done] { return *done == 1; }));
}

// Accepts connections and never says a word.
class MuteListener {
 public:
  MuteListener() : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    EXPECT_EQ(listen(fd_, 8), 0);
    getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }
  ~MuteListener() { close(fd_); }
  int port() const { return port_; }

 private:
  const int fd_;
  int port_ = 0;
};

TEST_F(GrpcTransportTest, APeerThatNeverAnswersEndsEveryCallByItsDeadline) {
  MuteListener mute;
  absl::optional<absl::Status> uploaded, fetched;
  harness_.OnLoop([&] {
    GrpcLinkOptions options;
    options.coordinator = {"127.0.0.1", mute.port()};
    link_ = *GrpcLink::Create(harness_.loop(), options);
    const absl::Time deadline = harness_.SteadyNow() + absl::Milliseconds(400);
    link_->Dial(&worker_, deadline);
    const std::string frame = "frame";
    link_->Upload(HeaderOf(frame, "alpha", 1), std::make_shared<const std::string>(frame), deadline,
                  [&](absl::Status status) { uploaded = status; });
    link_->Fetch("run-1", Life(), {UPDATE, 1, 0}, deadline,
                 [&](absl::StatusOr<std::string> blob) { fetched = blob.status(); });
  });
  ASSERT_TRUE(harness_.Until(
      [&] { return worker_.closed.size() == 1 && uploaded.has_value() && fetched.has_value(); }));
  EXPECT_TRUE(absl::IsUnavailable(worker_.closed[0])) << worker_.closed[0];
  EXPECT_TRUE(absl::IsDeadlineExceeded(*uploaded)) << *uploaded;
  EXPECT_TRUE(absl::IsDeadlineExceeded(*fetched)) << *fetched;
  RealClock clock;
  auto client = *StatusClient::Create(&clock, {"127.0.0.1", mute.port()}, RpcOptions());
  EXPECT_TRUE(absl::IsDeadlineExceeded(client->Ask(StatusRequest(), absl::Milliseconds(200)).status()));
}

TEST_F(GrpcTransportTest, ARefusedDialNamesTheCoordinator) {
  int port = 0;
  { port = MuteListener().port(); }
  harness_.OnLoop([&] {
    GrpcLinkOptions options;
    options.coordinator = {"127.0.0.1", port};
    link_ = *GrpcLink::Create(harness_.loop(), options);
    link_->Dial(&worker_, harness_.SteadyNow() + absl::Seconds(20));
  });
  ASSERT_TRUE(harness_.Until([this] { return worker_.closed.size() == 1; }));
  EXPECT_TRUE(absl::IsUnavailable(worker_.closed[0]));
  EXPECT_TRUE(absl::StrContains(worker_.closed[0].message(), "127.0.0.1:" + std::to_string(port)));
  EXPECT_TRUE(absl::StrContains(worker_.closed[0].message(), "Connection refused")) << worker_.closed[0];
}

TEST_F(GrpcTransportTest, AWatcherDialsAgainWhenTheHubComesBack) {
  StartHub();
  harness_.OnLoop([this] { coordinator_.status.set_round(1); });
  RealClock clock;
  auto client = *StatusClient::Create(&clock, {"127.0.0.1", harness_.relay()->port()}, RpcOptions());
  std::vector<int64_t> rounds;
  int losses = 0;
  client->Watch(
      StatusRequest(),
      [&](const RunStatus& status) {
        rounds.push_back(status.round());
        if (rounds.size() == 1) {
          harness_.OnLoop([this] {
            hub_.reset();
            coordinator_.status.set_round(2);
            hub_ = harness_.MakeHub();
            ASSERT_TRUE(hub_->Start(&coordinator_).ok());
          });
        }
        return rounds.size() < 2;
      },
      [&](const absl::Status& status) {
        EXPECT_TRUE(absl::StrContains(status.message(), "coordinator 127.0.0.1:")) << status;
        return ++losses < 20;
      });
  EXPECT_EQ(rounds, (std::vector<int64_t>{1, 2}));
  EXPECT_GE(losses, 1);
}

TEST_F(GrpcTransportTest, AStoppedWatcherReturns) {
  StartHub();
  RealClock clock;
  auto client = *StatusClient::Create(&clock, {"127.0.0.1", harness_.relay()->port()}, RpcOptions());
  int seen = 0;
  client->Watch(
      StatusRequest(),
      [&](const RunStatus&) {
        ++seen;
        client->Stop();
        return true;
      },
      [](const absl::Status&) { return true; });
  EXPECT_EQ(seen, 1);
}

TEST_F(GrpcTransportTest, LastWordsGetThroughWhenBothSidesGoAtOnce) {
  OpenSession();
  harness_.OnLoop([this] {
    CoordinatorMessage finished;
    finished.mutable_run_finished()->set_round(40);
    hub_->Send(coordinator_.sessions[0], finished);
    hub_->Stop();
  });
  ASSERT_TRUE(harness_.Until([this] { return worker_.closed.size() == 1; }));
  ASSERT_EQ(worker_.messages.size(), 1u);
  EXPECT_EQ(worker_.messages[0].run_finished().round(), 40);
}

TEST_F(GrpcTransportTest, TheHealthServiceSaysServing) {
  StartHub();
  int port = 0;
  harness_.OnLoop([&] { port = static_cast<GrpcHub*>(hub_.get())->port(); });
  auto channel = grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  context.set_deadline(GrpcDeadline(absl::Seconds(10)));
  // The health service's messages come with no package: an empty request, and in the answer field 1, SERVING
  // (1).
  const grpc::Slice empty("", 0);
  const grpc::ByteBuffer request(&empty, 1);
  grpc::ByteBuffer answer;
  grpc::Status status;
  absl::Notification done;
  grpc::GenericStub(channel).UnaryCall(&context, "/grpc.health.v1.Health/Check", grpc::StubOptions(),
                                       &request, &answer, [&](grpc::Status result) {
                                         status = result;
                                         done.Notify();
                                       });
  done.WaitForNotification();
  ASSERT_TRUE(status.ok()) << status.error_message();
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(answer.Dump(&slices).ok());
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  EXPECT_EQ(bytes, std::string("\x08\x01", 2));
}

}  // namespace
}  // namespace isthmus
