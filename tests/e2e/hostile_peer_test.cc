// Peers that are of another version, damaged, or mean: each is refused by name, and the run goes on.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "compression/codec.h"
#include "daemon/base/digest.h"
#include "daemon/base/random.h"
#include "daemon/training/tensor_table.h"
#include "tests/e2e/hand_client.h"
#include "tests/e2e/run_world.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

const double kNan = std::numeric_limits<double>::quiet_NaN();

// A coordinator, the model as the run file has it, and the file's digest as a worker would tell it.
class HostilePeerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    RunShape shape;
    shape.sites = 1;
    shape.rounds = 12;
    ASSERT_TRUE(world_.StartCoordinator(shape));
    ModelShape model;
    model.width = 32;
    model.layers = 2;
    model.heads = model.kv_heads = 2;
    model.feed_forward = 64;
    model.context = 32;
    table_ = *TensorTable::ForModel(model);
    const std::string text = SampleText(16384, 1);
    world_.WriteFile("text.txt", text);
    data_digest_ = DigestOf(absl::string_view(text)).ToBytes();
  }

  std::unique_ptr<HandClient> Client() {
    return std::make_unique<HandClient>(world_.clock(), world_.address(), world_.deadline());
  }

  // The refusal of a Hello, or of the Enlist after a good one.
  Refused RefusalOf(const WorkerMessage& hello) {
    const auto client = Client();
    EXPECT_TRUE(client->Dial().ok());
    client->Send(hello);
    const Refused refused = client->Await(CoordinatorMessage::kRefused).refused();
    EXPECT_TRUE(client->AwaitClosed());
    return refused;
  }
  Refused EnlistRefusal(const std::function<void(Enlist*)>& spoil) {
    const auto client = Client();
    EXPECT_TRUE(client->Dial().ok());
    client->Send(HandClient::GoodHello("stranger"));
    const Welcome welcome = client->Await(CoordinatorMessage::kWelcome).welcome();
    WorkerMessage message;
    Enlist* enlist = message.mutable_enlist();
    enlist->set_layout_digest(welcome.layout_digest());
    enlist->set_vocabulary(256);
    enlist->set_data_digest(data_digest_);
    enlist->set_data_sequences(500);
    enlist->set_anchor_round(-1);
    spoil(enlist);
    client->Send(message);
    return client->Await(CoordinatorMessage::kRefused).refused();
  }

  // A frame of small random differences, as `spec` has it.
  std::string Frame(const std::string& spec, uint64_t seed) const {
    Random random(seed);
    const std::vector<float> anchor(table_.layout().total(), 0.0f);
    std::vector<float> parameters(anchor.size());
    for (float& p : parameters) p = static_cast<float>(random.Uniform() - 0.5) * 0.01f;
    return *(*ParseCodecSpec(spec))->Encode(table_.layout(), anchor, parameters);
  }

  static ContributionHeader HeaderOf(const Welcome& welcome, const std::string& site,
                                     const OpeningRecord& opening, const std::string& frame) {
    ContributionHeader h;
    h.set_run_id(welcome.run_id());
    *h.mutable_key() = opening.key();
    h.mutable_life()->set_site(site);
    h.mutable_life()->set_incarnation(welcome.incarnation());
    h.set_base_round(opening.key().round() - 1);
    h.set_base_digest(opening.base_digest());
    h.set_frame_digest(DigestOf(absl::string_view(frame)).ToBytes());
    h.set_frame_bytes(static_cast<int64_t>(frame.size()));
    h.set_tokens(320);
    h.set_steps(5);
    h.set_loss(4);
    h.set_tokens_per_step(64);
    return h;
  }

  // After all that, a real worker still joins and brings the run to its end.
  void ExpectTheRunGoesOn() {
    world_.StartWorker("honest");
    const RunStatus status = world_.AwaitFinished();
    EXPECT_GT(SiteOf(status, "honest").rounds_included(), 0) << status.ShortDebugString() << world_.Said();
    EXPECT_TRUE(std::isfinite(status.held_out_loss_end()));
    world_.ExpectWorkersDone();
    EXPECT_FALSE(world_.coordinator().has_ended());
  }

  RunWorld world_;
  TensorTable table_;
  std::string data_digest_;
};

TEST_F(HostilePeerTest, WhatDiffersAtJoinIsNamed) {
  WorkerMessage hello = HandClient::GoodHello("stranger");
  hello.mutable_hello()->set_protocol_version(99);
  Refused refused = RefusalOf(hello);
  EXPECT_EQ(refused.field(), "protocol_version");
  EXPECT_THAT(refused.reason(), HasSubstr("99"));
  EXPECT_FALSE(refused.may_retry());
  hello = HandClient::GoodHello("stranger");
  hello.mutable_hello()->set_run_name("else");
  EXPECT_EQ(RefusalOf(hello).field(), "run_name");
  EXPECT_EQ(RefusalOf(HandClient::GoodHello("")).field(), "site");
  EXPECT_EQ(RefusalOf(HandClient::GoodHello(std::string(100000, 's'))).field(), "site");
  WorkerMessage early;
  early.mutable_lease_request()->set_number(1);
  EXPECT_EQ(RefusalOf(early).field(), "hello");

  EXPECT_EQ(EnlistRefusal([](Enlist* e) { e->set_layout_digest(e->layout_digest() ^ 1); }).field(),
            "layout_digest");
  EXPECT_EQ(EnlistRefusal([](Enlist* e) { e->set_vocabulary(257); }).field(), "vocabulary");
  EXPECT_EQ(EnlistRefusal([](Enlist* e) { e->set_data_sequences(0); }).field(), "data");
  EXPECT_EQ(EnlistRefusal([](Enlist* e) { e->set_data_sequences(-7); }).field(), "data");
  ExpectTheRunGoesOn();
}

TEST_F(HostilePeerTest, FramesThatAreCutFlippedTooLongOrOfNoBaseAreRefusedAndCounted) {
  const auto client = Client();
  const Welcome welcome = client->Join("hand", data_digest_, 500);
  ASSERT_EQ(welcome.incarnation(), 1);
  const OpeningRecord opening = client->Await(CoordinatorMessage::kRoundOpened).round_opened().opening();
  const std::string good = Frame(opening.codec(), 1);
  const auto header = [&](const std::string& frame) { return HeaderOf(welcome, "hand", opening, frame); };
  const auto outcome = [&] {
    return client->Await(CoordinatorMessage::kContributionOutcome).contribution_outcome();
  };

  // Bytes that are not what the header says of them: never taken.
  std::string flipped = good;
  flipped[flipped.size() / 2] ^= 4;
  EXPECT_TRUE(absl::IsDataLoss(client->Upload(header(good), flipped)));
  // A frame longer than its layout allows: refused before a byte of it is held.
  ContributionHeader h = header(good);
  h.set_frame_bytes(int64_t{1} << 50);
  EXPECT_TRUE(absl::IsInvalidArgument(client->Upload(h, good)));
  h.set_frame_bytes(-1);
  EXPECT_TRUE(absl::IsInvalidArgument(client->Upload(h, good)));
  h = header(good);
  h.set_run_id("another");
  EXPECT_TRUE(absl::IsFailedPrecondition(client->Upload(h, good)));
  h = header(good);
  h.set_loss(kNan);
  EXPECT_TRUE(absl::IsInvalidArgument(client->Upload(h, good)));
  h = header(good);
  h.set_steps(-5);
  EXPECT_TRUE(absl::IsInvalidArgument(client->Upload(h, good)));
  h = header(good);
  h.set_tokens(std::numeric_limits<int64_t>::max());
  EXPECT_TRUE(absl::IsInvalidArgument(client->Upload(h, good)));

  // Whole, but not a frame: asked for once more, then refused for good.
  for (const std::string& bad :
       {good.substr(0, good.size() / 2), flipped, std::string("frame"), std::string()}) {
    EXPECT_TRUE(client->Upload(header(bad), bad).ok());
    ContributionOutcome o = outcome();
    EXPECT_FALSE(o.is_admitted());
    EXPECT_TRUE(o.is_retryable()) << o.ShortDebugString();
    EXPECT_TRUE(client->Upload(header(bad), bad).ok());
    o = outcome();
    EXPECT_FALSE(o.is_admitted());
    EXPECT_FALSE(o.is_retryable()) << o.ShortDebugString();
    EXPECT_THAT(o.reason(), HasSubstr("site hand"));
  }

  // A base that never was: refused, and the sender is told to take the anchor anew.
  const std::string baseless = Frame(opening.codec(), 2);
  h = header(baseless);
  h.set_base_digest(std::string(16, '\x5a'));
  EXPECT_TRUE(client->Upload(h, baseless).ok());
  EXPECT_THAT(client->Await(CoordinatorMessage::kResync).resync().reason(), HasSubstr("hand"));
  EXPECT_FALSE(outcome().is_admitted());

  const auto status = world_.Ask();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->contributions_refused(), 5);
  EXPECT_EQ(status->digests_deviating(), 1);
  EXPECT_EQ(status->rounds_committed(), 0);
}

TEST_F(HostilePeerTest, ASiteThatComputesWronglyIsMendedThreeTimesAndThenSentOff) {
  const auto client = Client();
  ASSERT_EQ(client->Join("hand", data_digest_, 500).incarnation(), 1);
  WorkerMessage wrong;
  wrong.mutable_caught_up()->set_state_digest(std::string(16, '\x5a'));
  client->Send(wrong);
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(client->Await(CoordinatorMessage::kResync).resync().reason(), HasSubstr("site hand"));
    client->Send(wrong);
  }
  const Refused refused = client->Await(CoordinatorMessage::kRefused).refused();
  EXPECT_EQ(refused.field(), "state_digest");
  EXPECT_THAT(refused.reason(), HasSubstr("4 times in a row"));
  EXPECT_FALSE(refused.may_retry());
  EXPECT_TRUE(client->AwaitClosed());
  const auto status = world_.Ask();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->digests_deviating(), 4);
  EXPECT_EQ(SiteOf(*status, "hand").state(), "left");
}

TEST_F(HostilePeerTest, AContributionOnABaseThatIsTooOldIsRefused) {
  const auto client = Client();
  const Welcome welcome = client->Join("hand", data_digest_, 500);
  OpeningRecord first;
  for (int round = 1; round <= 6; ++round) {
    const OpeningRecord opening = client->Await(CoordinatorMessage::kRoundOpened).round_opened().opening();
    ASSERT_EQ(opening.key().round(), round) << world_.Said();
    if (round == 1) first = opening;
    const std::string frame = Frame(opening.codec(), static_cast<uint64_t>(round));
    if (round == 6) {
      ContributionHeader h = HeaderOf(welcome, "hand", opening, frame);
      h.set_base_digest(first.base_digest());
      h.set_base_round(0);
      EXPECT_TRUE(client->Upload(h, frame).ok());
      const auto outcome = client->Await(CoordinatorMessage::kContributionOutcome).contribution_outcome();
      EXPECT_FALSE(outcome.is_admitted());
      EXPECT_FALSE(outcome.is_retryable());
      EXPECT_THAT(outcome.reason(), HasSubstr("old")) << outcome.ShortDebugString();
      break;
    }
    EXPECT_TRUE(client->Upload(HeaderOf(welcome, "hand", opening, frame), frame).ok());
    EXPECT_EQ(client->Await(CoordinatorMessage::kRoundCommitted).round_committed().record().key().round(),
              round);
  }
  const auto status = world_.Ask();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->rounds_committed(), 5);
  EXPECT_EQ(status->contributions_refused(), 1);
}

TEST_F(HostilePeerTest, NonsenseInEveryMessageHarmsNobody) {
  const auto client = Client();
  const Welcome welcome = client->Join("hand", data_digest_, 500);
  client->Await(CoordinatorMessage::kRoundOpened);
  for (int64_t number : {int64_t{-1}, int64_t{0}, std::numeric_limits<int64_t>::max()}) {
    WorkerMessage m;
    m.mutable_lease_request()->set_number(number);
    m.mutable_lease_request()->set_sequences(number);
    client->Send(m);
    m.mutable_anchor_applied()->set_round(number);
    m.mutable_anchor_applied()->set_state_digest("x");
    client->Send(m);
    m.mutable_evaluation_done()->set_round(number);
    m.mutable_evaluation_done()->set_scope(WHOLE);
    m.mutable_evaluation_done()->set_loss(kNan);
    m.mutable_evaluation_done()->set_tokens(number);
    client->Send(m);
    m.mutable_forfeited()->set_square_sum(kNan);
    m.mutable_forfeited()->set_steps(number);
    m.mutable_forfeited()->set_reason(std::string("\xff\xfe", 2));
    TrainedSpan* span = m.mutable_forfeited()->add_trained();
    span->set_lease(number);
    span->set_begin(number);
    span->set_end(-number);
    client->Send(m);
    SiteProgress* progress = m.mutable_heartbeat()->mutable_progress();
    progress->set_steps_per_second(number < 0 ? kNan : -1e300);
    progress->set_inner_steps(number);
    progress->set_upload_bytes_per_second(1e-300);
    client->Send(m);
    client->Send(WorkerMessage());
  }
  Life life;
  life.set_site("hand");
  life.set_incarnation(1);
  BlobName name;
  name.kind = SNAPSHOT;
  name.round = 77;
  EXPECT_TRUE(absl::IsNotFound(client->Fetch(welcome.run_id(), life, name).status()));
  EXPECT_FALSE(client->Fetch("another run", life, name).ok());
  name.kind = BLOB_KIND_UNSPECIFIED;
  name.round = -5;
  EXPECT_FALSE(client->Fetch(welcome.run_id(), life, name).ok());
  name.kind = SNAPSHOT;
  name.round = 0;
  const auto snapshot = client->Fetch(welcome.run_id(), life, name);
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  EXPECT_GT(snapshot->size(), table_.layout().total() * 4);
  WorkerMessage leaving;
  leaving.mutable_leaving()->set_reason("enough");
  client->Send(leaving);
  EXPECT_TRUE(client->AwaitClosed());
  ExpectTheRunGoesOn();
  // What people look at can be read.
  const auto asked = world_.Start({"status", world_.url(), "--json"});
  EXPECT_EQ(asked->Wait(), 0) << asked->output();
  EXPECT_FALSE(absl::StrContains(asked->standard_output(), "NaN")) << asked->output();
  const auto status = world_.Ask();
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_GE(status->forfeited_steps(), 0);
}

TEST_F(HostilePeerTest, GarbageOnThePortHarmsNobody) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(world_.address().port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    // Some begin as a client of the right kind would.
    std::string bytes = seed % 2 == 0 ? "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" : "";
    Random random(seed);
    for (int i = 0; i < 20000; ++i) bytes.push_back(static_cast<char>(random.Next()));
    for (size_t sent = 0; sent < bytes.size();) {
      const ssize_t n = send(fd, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;  // it has heard enough
      sent += static_cast<size_t>(n);
    }
    close(fd);
  }
  ExpectTheRunGoesOn();
}

}  // namespace
}  // namespace isthmus
