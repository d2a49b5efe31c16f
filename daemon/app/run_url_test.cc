#include "daemon/app/run_url.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

TEST(RunUrl, NamesHostPortAndRun) {
  const auto url = ParseRunUrl("isthmus://coord.example.org:7701/my-run_1.0");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->at.host, "coord.example.org");
  EXPECT_EQ(url->at.port, 7701);
  EXPECT_EQ(url->run_name, "my-run_1.0");
  EXPECT_EQ(url->at.ToString(), "coord.example.org:7701");
}

TEST(RunUrl, HasADefaultPortAndTakesIpv6InBrackets) {
  EXPECT_EQ(ParseRunUrl("isthmus://host/run")->at.port, kDefaultPort);
  const auto url = ParseRunUrl("isthmus://[fe80::1]:99/run");
  ASSERT_TRUE(url.ok()) << url.status();
  EXPECT_EQ(url->at.host, "fe80::1");
  EXPECT_EQ(url->at.ToString(), "[fe80::1]:99");
}

TEST(RunUrl, SaysWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "looks like isthmus://HOST:PORT/RUN"},
      {"http://host/run", "looks like isthmus://HOST:PORT/RUN"},
      {"isthmus://host:1", "the name of the run is missing"},
      {"isthmus://host:1/", "the name of the run is missing"},
      {"isthmus://host:1/a/b", "letters, digits"},
      {"isthmus:///run", "the host is missing"},
      {"isthmus://:1/run", "the host is missing"},
      {"isthmus://host:0/run", "the port is 0"},
      {"isthmus://host:99999/run", "no number from 0 to 65535"},
      {"isthmus://host:/run", "no number from 0 to 65535"},
      {"isthmus://host:x/run", "no number from 0 to 65535"},
      {"isthmus://::1:5/run", "the host is missing"},
      {"isthmus://fe80::1/run", "stands in brackets"},
      {"isthmus://[::1/run", "not closed"},
      {"isthmus://[::1]5/run", "after ']' comes ':'"},
      {"isthmus://ho st/run", "no host name has"},
  };
  for (const auto& [text, complaint] : cases) {
    const auto url = ParseRunUrl(text);
    ASSERT_EQ(url.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(url.status().message()), HasSubstr(complaint)) << text;
    EXPECT_THAT(std::string(url.status().message()), HasSubstr(text));
  }
}

TEST(HostPort, AnEmptyHostMeansAllInterfacesAndPortZeroAnyPort) {
  EXPECT_EQ(ParseHostPort(":81")->host, "0.0.0.0");
  EXPECT_EQ(ParseHostPort("127.0.0.1:0")->port, 0);
  EXPECT_EQ(ParseHostPort("host")->port, kDefaultPort);
  EXPECT_FALSE(ParseHostPort("").ok());
}

TEST(PlainText, IsAllowedOnLoopbackOnlyUnlessSaidAloud) {
  for (const char* host : {"localhost", "LOCALHOST", "127.0.0.1", "127.9.8.7", "::1"}) {
    EXPECT_TRUE(IsLoopback(host)) << host;
    EXPECT_TRUE(CheckPlainText({host, 1}, false).ok()) << host;
  }
  for (const char* host : {"0.0.0.0", "::", "10.0.0.1", "example.org", "127.example.org",
                           "127.0.0.1.evil.org", "localhost.evil.org", "127.0.0.256"}) {
    EXPECT_FALSE(IsLoopback(host)) << host;
    EXPECT_EQ(CheckPlainText({host, 1}, false).code(), absl::StatusCode::kInvalidArgument) << host;
    EXPECT_TRUE(CheckPlainText({host, 1}, true).ok()) << host;
  }
  EXPECT_THAT(std::string(CheckPlainText({"example.org", 7}, false).message()),
              AllOf(HasSubstr("example.org:7"), HasSubstr("--insecure")));
}

}  // namespace
}  // namespace isthmus
