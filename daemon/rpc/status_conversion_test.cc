#include "daemon/rpc/status_conversion.h"

#include "gtest/gtest.h"

namespace isthmus {
namespace {

TEST(StatusConversion, EveryCodeGoesToAndFro) {
  for (int code = 1; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), "why");
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
    EXPECT_EQ(static_cast<int>(ToGrpc(status).error_code()), code);
  }
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
}

TEST(StatusConversion, LongTextsAreCutToWhatAHeaderCarries) {
  EXPECT_EQ(ToGrpc(absl::InternalError(std::string(100000, 'x'))).error_message().size(), kLongestStatusText);
}

}  // namespace
}  // namespace isthmus
