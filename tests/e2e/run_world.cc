#include "tests/e2e/run_world.h"

#include <ftw.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "daemon/base/random.h"
#include "daemon/rpc/status_client.h"

namespace isthmus {
namespace {

constexpr char kProgram[] = "daemon/app/isthmus";
constexpr absl::string_view kListening = "listening on ";

// The last lines of a text.
std::string TailOf(const std::string& text, size_t most_lines) {
  std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines.size() > most_lines) lines.erase(lines.begin(), lines.end() - most_lines);
  std::string tail;
  for (const std::string& line : lines) absl::StrAppend(&tail, "  ", line, "\n");
  return tail;
}

int RemoveEntry(const char* path, const struct stat*, int, struct FTW*) { return remove(path); }

}  // namespace

std::string RunText(const RunShape& shape) {
  return absl::StrCat("name: \"", shape.name, "\"\nseed: 1\nmodel { ", shape.model,
                      " }\ndata { mode: SHARED format: BYTES sequences_per_step: 2 }\nrounds {\n",
                      "  inner_steps_per_round: ", shape.steps, "\n  total_rounds: ", shape.rounds,
                      "\n  start_sites: ", shape.sites, "\n  longest_round { seconds: 30 }\n",
                      shape.rounds_more, "\n}\nevaluation { every_rounds: 4 }\n",
                      "membership { heartbeat { nanos: 200000000 } suspect_after { ", shape.suspect_after,
                      " } }\n", shape.more);
}

std::string SampleText(int64_t bytes, uint64_t seed) {
  static constexpr const char* kWords[] = {"and", "the", "of",   "light", "river", "stone", "went",
                                           "out", "to",  "city", "king",  "said",  "upon",  "day"};
  Random random(seed);
  std::string text;
  while (static_cast<int64_t>(text.size()) < bytes) {
    absl::StrAppend(&text, kWords[random.Next() % 14], random.Next() % 12 == 0 ? ".\n" : " ");
  }
  text.resize(bytes);
  return text;
}

RunWorld::RunWorld(absl::Duration patience) : deadline_(clock_.SteadyNow() + patience) {
  const char* base = getenv("TEST_TMPDIR");
  std::string pattern = absl::StrCat(base != nullptr ? base : "/tmp", "/e2e-XXXXXX");
  EXPECT_NE(mkdtemp(pattern.data()), nullptr);
  folder_ = pattern;
}

RunWorld::~RunWorld() {
  workers_.clear();
  coordinator_.reset();
  nftw(folder_.c_str(), RemoveEntry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

std::string RunWorld::PathOf(absl::string_view name) const { return absl::StrCat(folder_, "/", name); }

void RunWorld::WriteFile(absl::string_view name, absl::string_view bytes) const {
  std::ofstream file(PathOf(name), std::ios::binary | std::ios::trunc);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.flush()) << name;
}

std::string RunWorld::ReadFile(absl::string_view name) const {
  std::ifstream file(PathOf(name), std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

std::unique_ptr<Spawned> RunWorld::Start(Arguments arguments,
                                         std::map<std::string, std::string> environment) {
  arguments.insert(arguments.begin(), kProgram);
  environment.insert({"OMP_NUM_THREADS", "1"});
  for (const char* name : {"PATH", "OPENBLAS_CORETYPE", "LD_LIBRARY_PATH"}) {
    if (const char* value = getenv(name)) environment.insert({name, value});
  }
  return std::make_unique<Spawned>(std::move(arguments), environment, &clock_, deadline_);
}

bool RunWorld::StartCoordinator(const RunShape& shape, const Arguments& more) {
  run_name_ = shape.name;
  WriteFile("run.textproto", RunText(shape));
  Arguments arguments = {"coordinator", PathOf("run.textproto"), "--listen",
                         "127.0.0.1:0", "--state-dir",           PathOf("state")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  coordinator_ = Start(arguments);
  return AwaitListening();
}

bool RunWorld::RestartCoordinator(const Arguments& more) {
  coordinator_.reset();
  Arguments arguments = {"coordinator",       PathOf("run.textproto"), "--listen",
                         address_.ToString(), "--state-dir",           PathOf("state")};
  arguments.insert(arguments.end(), more.begin(), more.end());
  coordinator_ = Start(arguments);
  return AwaitListening();
}

bool RunWorld::AwaitListening() {
  const int at = coordinator_->AwaitLine(kListening);
  const std::string line = coordinator_->line(at);
  const auto address = ParseHostPort(absl::StripPrefix(line, kListening), /*may_be_any=*/false);
  EXPECT_TRUE(address.ok()) << "the coordinator does not listen:\n" << coordinator_->output();
  if (!address.ok()) return false;
  address_ = *address;
  return true;
}

std::string RunWorld::url() const { return absl::StrCat("isthmus://", address_.ToString(), "/", run_name_); }

Spawned& RunWorld::StartWorker(const std::string& site, const Arguments& more) {
  if (access(PathOf("text.txt").c_str(), R_OK) != 0) WriteFile("text.txt", SampleText(16384, 1));
  workers_[site].reset();
  Arguments arguments = {"worker", url(), "--site", site};
  if (std::find(more.begin(), more.end(), "--data") == more.end()) {
    arguments.insert(arguments.end(), {"--data", PathOf("text.txt")});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  workers_[site] = Start(arguments);
  return *workers_[site];
}

absl::StatusOr<RunStatus> RunWorld::Ask(bool all_commits) {
  const auto client = StatusClient::Create(&clock_, address_, RpcOptions());
  if (!client.ok()) return client.status();
  StatusRequest request;
  request.set_run_name(run_name_);
  request.set_all_commits(all_commits);
  return (*client)->Ask(request, deadline_ - clock_.SteadyNow());
}

RunStatus RunWorld::Await(absl::string_view what, const std::function<bool(const RunStatus&)>& is_it) {
  const auto client = StatusClient::Create(&clock_, address_, RpcOptions());
  if (!client.ok()) {
    ADD_FAILURE() << client.status();
    return {};
  }
  StatusRequest request;
  request.set_run_name(run_name_);
  RunStatus last;
  bool is_found = false;
  const auto is_late = [&] { return clock_.SteadyNow() >= deadline_ || coordinator_->has_ended(); };
  (*client)->Watch(
      request,
      [&](const RunStatus& status) {
        last = status;
        is_found = is_it(status);
        return !is_found && !is_late();
      },
      [&](const absl::Status&) { return !is_late(); });
  EXPECT_TRUE(is_found) << "waited in vain for: " << what << "\nthe run stood at:\n"
                        << last.ShortDebugString() << "\n"
                        << Said();
  return last;
}

RunStatus RunWorld::AwaitRounds(int64_t committed) {
  return Await(absl::StrCat(committed, " committed rounds"),
               [&](const RunStatus& s) { return s.rounds_committed() >= committed; });
}

RunStatus RunWorld::AwaitFinished() {
  return Await("the end of the run", [](const RunStatus& s) { return s.phase() == "FINISHED"; });
}

void RunWorld::ExpectWorkersDone() {
  for (const auto& [site, worker] : workers_) {
    EXPECT_EQ(worker->Wait(), 0) << site << " said:\n" << TailOf(worker->output(), 20);
  }
}

std::string RunWorld::Said() const {
  std::string all;
  if (coordinator_ != nullptr) absl::StrAppend(&all, "coordinator:\n", TailOf(coordinator_->output(), 30));
  for (const auto& [site, worker] : workers_) {
    absl::StrAppend(&all, site, ":\n", TailOf(worker->output(), 15));
  }
  return all;
}

SiteStatus SiteOf(const RunStatus& status, absl::string_view site) {
  for (const SiteStatus& s : status.sites()) {
    if (s.site() == site) return s;
  }
  return {};
}

}  // namespace isthmus
