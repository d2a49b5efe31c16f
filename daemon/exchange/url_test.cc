#include "daemon/exchange/url.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

TEST(ParseRunUrl, TakesNamesAndAddresses) {
  absl::StatusOr<RunUrl> url = ParseRunUrl("isthmus://coord.example.org:7700/my-run_1.2");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->coordinator.host, "coord.example.org");
  EXPECT_EQ(url->coordinator.port, 7700);
  EXPECT_EQ(url->run, "my-run_1.2");
  EXPECT_EQ(url->coordinator.ToString(), "coord.example.org:7700");

  url = ParseRunUrl("isthmus://[::1]:65535/a/");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->coordinator.host, "::1");
  EXPECT_EQ(url->coordinator.ToString(), "[::1]:65535");
  EXPECT_EQ(url->run, "a");
}

TEST(ParseRunUrl, SaysWhatIsWrong) {
  const struct {
    const char* text;
    const char* complaint;
  } kCases[] = {
      {"", "must begin with isthmus://"},
      {"http://host:1/run", "must begin with isthmus://"},
      {"isthmus://host:7700", "no run name"},
      {"isthmus://host:7700/", "no run name"},
      {"isthmus://host/run", "no port"},
      {"isthmus://:7700/run", "no host"},
      {"isthmus://host:/run", "port '' is not a number"},
      {"isthmus://host:7x/run", "port '7x' is not a number"},
      {"isthmus://host:+7/run", "port '+7' is not a number"},
      {"isthmus://host:65536/run", "port '65536' is not a number"},
      {"isthmus://host:99999999999/run", "is not a number"},
      {"isthmus://host:0/run", "port 0 cannot be dialled"},
      {"isthmus://::1:7700/run", "needs brackets"},
      {"isthmus://[::1:7700/run", "'[' without ']'"},
      {"isthmus://[::1]7700/run", "no ':port' after the ']'"},
      {"isthmus://[gg]:7700/run", "no IPv6 address"},
      {"isthmus://ho st:7700/run", "host has the character ' '"},
      {"isthmus://host:7700/my run", "may have only letters"},
      {"isthmus://host:7700/a/b", "may have only letters"},
  };
  for (const auto& c : kCases) {
    const absl::Status status = ParseRunUrl(c.text).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.complaint)) << c.text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.text)) << c.text;
  }
}

TEST(ParseHostPort, PortZeroPassesWhereAnyPortWillDo) {
  ASSERT_TRUE(ParseHostPort("127.0.0.1:0", true).ok());
  EXPECT_EQ(ParseHostPort("127.0.0.1:0", true)->port, 0);
  EXPECT_FALSE(ParseHostPort("127.0.0.1:0", false).ok());
}

TEST(HostPort, LoopbackIsKnownByNameAndAddressAndNotByLookingUp) {
  for (const char* host : {"localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1"}) {
    EXPECT_TRUE((HostPort{host, 1}.IsLoopback())) << host;
  }
  for (const char* host :
       {"0.0.0.0", "::", "10.0.0.1", "127.evil.example", "example.org", "localhost.example.org"}) {
    EXPECT_FALSE((HostPort{host, 1}.IsLoopback())) << host;
  }
}

}  // namespace
}  // namespace isthmus
