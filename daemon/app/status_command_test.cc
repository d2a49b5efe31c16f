#include "daemon/app/status_command.h"

#include <sstream>

#include "daemon/app/fake_status_watch.h"
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
  absl::Status Show(FakeStatusWatch* fake, bool is_terminal = false) {
    return ShowStatus(options_, fake->watch(), fake->clock, is_terminal, out_, error_);
  }

  StatusOptions options_{"isthmus://host:7/kjv"};
  std::ostringstream out_, error_;
};

TEST_F(StatusCommandTest, PrintsOnePageForTheRunOfTheUrl) {
  FakeStatusWatch fake({{{SampleStatus(), SampleFinishedStatus()}}});
  EXPECT_TRUE(Show(&fake).ok());
  EXPECT_EQ(out_.str(), StatusTable(SampleStatus(), 8));
  ASSERT_EQ(fake.requests.size(), 1);
  EXPECT_EQ(fake.requests[0].run_name(), "kjv");
}

TEST_F(StatusCommandTest, PrintsJsonThatCanBeReadBack) {
  options_.is_json = true;
  FakeStatusWatch fake({{{SampleStatus()}}});
  EXPECT_TRUE(Show(&fake).ok());
  const auto back = StatusFromJson(out_.str());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->SerializeAsString(), SampleStatus().SerializeAsString());
}

TEST_F(StatusCommandTest, WatchesUntilTheRunIsFinished) {
  options_.is_watch = true;
  FakeStatusWatch fake({{{SampleStatus()}}, {{SampleFinishedStatus(), SampleStatus()}}});
  EXPECT_TRUE(Show(&fake).ok());
  EXPECT_EQ(out_.str(), StatusTable(SampleStatus(), 8) + "\n" + StatusTable(SampleFinishedStatus(), 8));
  EXPECT_THAT(error_.str(), HasSubstr("nobody answers; trying again for 10s"));
}

TEST_F(StatusCommandTest, WatchingJsonGivesOneObjectALine) {
  options_.is_watch = options_.is_json = true;
  FakeStatusWatch fake({{{SampleStatus(), SampleFinishedStatus()}}});
  EXPECT_TRUE(Show(&fake, true).ok());
  const std::string text = out_.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  EXPECT_EQ(text[0], '{');
}

TEST_F(StatusCommandTest, RepaintsOnATerminal) {
  options_.is_watch = true;
  FakeStatusWatch fake({{{SampleFinishedStatus()}}});
  EXPECT_TRUE(Show(&fake, true).ok());
  EXPECT_EQ(out_.str(), "\x1b[H\x1b[J" + StatusTable(SampleFinishedStatus(), 8));
}

TEST_F(StatusCommandTest, GivesUpWithTheCoordinatorsAbsenceAsTheError) {
  FakeStatusWatch fake({});
  EXPECT_TRUE(absl::IsUnavailable(Show(&fake)));
  EXPECT_EQ(out_.str(), "");
}

TEST_F(StatusCommandTest, ABadUrlIsRefusedBeforeAnyCall) {
  options_.url = "host:7";
  FakeStatusWatch fake({});
  EXPECT_TRUE(absl::IsInvalidArgument(Show(&fake)));
  EXPECT_TRUE(fake.requests.empty());
}

}  // namespace
}  // namespace isthmus
