// Calls that no worker of ours makes: each is refused, and the hub serves on.
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "daemon/exchange/partial_frames.h"
#include "daemon/exchange/transport_recording.h"
#include "daemon/rpc/grpc_harness.h"
#include "daemon/rpc/status_conversion.h"
#include "gtest/gtest.h"
#include "protos/service.grpc.pb.h"

namespace isthmus {
namespace {

class HubHostileTest : public testing::Test {
 protected:
  HubHostileTest() {
    harness_.hub_options.held_frames_bytes = 1 << 20;
    int port = 0;
    harness_.OnLoop([&] {
      coordinator_.blobs[1] = std::make_shared<StringBlob>("0123456789");
      hub_ = harness_.MakeHub();
      EXPECT_TRUE(hub_->Start(&coordinator_).ok());
      port = static_cast<GrpcHub*>(hub_.get())->port();
    });
    stub_ = Isthmus::NewStub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  }
  ~HubHostileTest() override {
    stub_.reset();
    harness_.OnLoop([this] { hub_.reset(); });
  }

  // Sends the requests one after the other, waiting for the first answer after the first; how it ends.
  grpc::StatusCode Upload(const std::vector<UploadRequest>& requests) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(absl::Seconds(20)));
    auto stream = stub_->Upload(&context);
    UploadReply reply;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (!stream->Write(requests[i])) break;
      if (i == 0 && !stream->Read(&reply)) break;
    }
    stream->WritesDone();
    while (stream->Read(&reply)) continue;
    return stream->Finish().error_code();
  }
  grpc::StatusCode Fetch(int64_t offset) {
    grpc::ClientContext context;
    context.set_deadline(GrpcDeadline(absl::Seconds(20)));
    FetchRequest request;
    request.set_kind(UPDATE);
    request.set_round(1);
    request.set_offset(offset);
    auto stream = stub_->Fetch(&context, request);
    FetchReply reply;
    while (stream->Read(&reply)) continue;
    return stream->Finish().error_code();
  }
  UploadRequest Offer(const std::string& frame) {
    UploadRequest request;
    *request.mutable_header() = HeaderOf(frame, "alpha", 1);
    return request;
  }
  static UploadRequest Piece(int64_t offset, const std::string& bytes) {
    UploadRequest request;
    request.set_offset(offset);
    request.set_piece(bytes);
    return request;
  }

  RecordingCoordinator coordinator_;
  GrpcHarness harness_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<Isthmus::Stub> stub_;
};

TEST_F(HubHostileTest, UploadsThatBreakTheRulesAreRefused) {
  const std::string frame = MakeBytes(1000, 1);
  EXPECT_EQ(Upload({Piece(0, "no header first")}), grpc::StatusCode::INVALID_ARGUMENT) << "an empty digest";
  EXPECT_EQ(Upload({Offer(frame), Piece(-1, frame)}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Offer(frame), Piece(7, frame)}), grpc::StatusCode::INVALID_ARGUMENT) << "a gap";
  EXPECT_EQ(Upload({Offer(frame), Piece(0, frame + "x")}), grpc::StatusCode::INVALID_ARGUMENT) << "too long";
  EXPECT_EQ(Upload({Offer(frame), Piece(0, std::string(5 * kPieceBytes, 'x'))}),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload({Offer(frame), Piece(0, std::string(1000, 'x'))}), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Upload({Offer(frame), Piece(0, "half")}), grpc::StatusCode::UNAVAILABLE) << "and then nothing";
  UploadRequest huge = Offer(frame);
  huge.mutable_header()->set_frame_bytes(int64_t{1} << 60);
  EXPECT_EQ(Upload({huge}), grpc::StatusCode::INVALID_ARGUMENT);
  huge.mutable_header()->set_frame_bytes(-1);
  EXPECT_EQ(Upload({huge}), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(coordinator_.frames.empty());

  EXPECT_EQ(Upload({Offer(frame), Piece(0, frame)}), grpc::StatusCode::DATA_LOSS) << "\"half\" was held";
  EXPECT_EQ(Upload({Offer(frame), Piece(0, frame)}), grpc::StatusCode::OK) << "the hub serves on";
  EXPECT_EQ(coordinator_.frames.size(), 1u);
}

TEST_F(HubHostileTest, APieceAfterTheEndIsNotTaken) {
  const std::string frame = MakeBytes(1000, 2);
  Upload({Offer(frame), Piece(0, frame), Piece(1000, "more"), Piece(0, frame)});
  EXPECT_EQ(coordinator_.frames.size(), 1u);
}

TEST_F(HubHostileTest, FetchesFromBeyondTheBlobAreRefused) {
  EXPECT_EQ(Fetch(-1), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Fetch(11), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Fetch(10), grpc::StatusCode::OK) << "nothing is missing any more";
  EXPECT_EQ(Fetch(3), grpc::StatusCode::OK);
}

TEST_F(HubHostileTest, CallersThatGoAtOnceLeaveNothingBehind) {
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext session_context, upload_context, watch_context;
    auto session = stub_->Session(&session_context);
    auto upload = stub_->Upload(&upload_context);
    upload->Write(Offer(MakeBytes(100, i)));
    auto watch = stub_->WatchStatus(&watch_context, StatusRequest());
    session_context.TryCancel();
    upload_context.TryCancel();
    watch_context.TryCancel();
    session->Finish();
    upload->Finish();
    watch->Finish();
  }
  EXPECT_TRUE(harness_.Until([this] { return coordinator_.sessions.size() == coordinator_.closed.size(); }));
}

}  // namespace
}  // namespace isthmus
