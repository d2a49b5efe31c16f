#include "daemon/app/status_command.h"

#include <sstream>

#include "daemon/app/fake_status_client.h"
#include "daemon/app/sample_status.h"
#include "daemon/app/status_json.h"
#include "daemon/app/status_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

using ::testing::HasSubstr;

class StatusCommandTest : public ::testing::Test {
 protected:
  absl::Status Show(FakeStatusClient* client, bool is_terminal = false) {
    return ShowStatus(options_, client, &clock_, is_terminal, out_, error_);
  }

  StatusOptions options_{"isthmus://host:7/kjv"};
  ImpatientClock clock_;
  std::ostringstream out_, error_;
};

TEST_F(StatusCommandTest, PrintsOnePageForTheRunOfTheUrl) {
  FakeStatusClient client({{{SampleStatus(), SampleFinishedStatus()}}});
  EXPECT_TRUE(Show(&client).ok());
  EXPECT_EQ(out_.str(), StatusTable(SampleStatus(), 8));
  ASSERT_EQ(client.requests.size(), 1);
  EXPECT_EQ(client.requests[0].run_name(), "kjv");
}

TEST_F(StatusCommandTest, PrintsJsonThatCanBeReadBack) {
  options_.is_json = true;
  FakeStatusClient client({{{SampleStatus()}}});
  EXPECT_TRUE(Show(&client).ok());
  const auto back = StatusFromJson(out_.str());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->SerializeAsString(), SampleStatus().SerializeAsString());
}

TEST_F(StatusCommandTest, WatchesUntilTheRunIsFinished) {
  options_.is_watch = true;
  FakeStatusClient client({{{SampleStatus()}}, {{SampleFinishedStatus(), SampleStatus()}}});
  EXPECT_TRUE(Show(&client).ok());
  EXPECT_EQ(out_.str(), StatusTable(SampleStatus(), 8) + "\n" + StatusTable(SampleFinishedStatus(), 8));
  EXPECT_THAT(error_.str(), HasSubstr("host:7: nobody answers; trying again for 10s"));
}

TEST_F(StatusCommandTest, WatchingJsonGivesOneObjectALine) {
  options_.is_watch = options_.is_json = true;
  FakeStatusClient client({{{SampleStatus(), SampleFinishedStatus()}}});
  EXPECT_TRUE(Show(&client, true).ok());
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text[0], '{');
}

TEST_F(StatusCommandTest, RepaintsOnATerminal) {
  options_.is_watch = true;
  FakeStatusClient client({{{SampleFinishedStatus()}}});
  EXPECT_TRUE(Show(&client, true).ok());
  EXPECT_EQ(out_.str(), "\x1b[H\x1b[J" + StatusTable(SampleFinishedStatus(), 8));
}

TEST_F(StatusCommandTest, GivesUpWithTheCoordinatorsAbsenceAsTheError) {
  FakeStatusClient client({});
  EXPECT_TRUE(absl::IsUnavailable(Show(&client)));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(StatusCommandTest, ABadUrlIsRefusedBeforeAnyCall) {
  options_.url = "host:7";
  FakeStatusClient client({});
  EXPECT_TRUE(absl::IsInvalidArgument(Show(&client)));
  EXPECT_TRUE(client.requests.empty());
}

}  // namespace
}  // namespace isthmus
