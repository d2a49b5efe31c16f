// What any Transport must do, run on the fake and on the real one alike.
//
// A test binary defines a harness, instantiates TransportConformanceTest with it and links this library:
//   INSTANTIATE_TEST_SUITE_P(Sim, TransportConformanceTest, testing::Values(&MakeSimHarness));
#ifndef ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_CONFORMANCE_H_
#define ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_CONFORMANCE_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/exchange/transport.h"
#include "daemon/exchange/transport_harness.h"
#include "daemon/exchange/transport_recording.h"
#include "gtest/gtest.h"

namespace isthmus {

using HarnessFactory = std::unique_ptr<TransportHarness> (*)();

// The suite. Each implementation instantiates it with its own harness.
class TransportConformanceTest : public testing::TestWithParam<HarnessFactory> {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A started hub; a link of site "alpha"; a session between them.
  void StartHub();
  void MakeLink();
  void OpenSession();
  void Dial(absl::Duration patience = absl::Seconds(5));
  void SendHeartbeat(int64_t token);
  // Uploads and waits for the outcome.
  absl::Status Upload(const ContributionHeader& header, const std::string& frame,
                      absl::Duration patience = absl::Seconds(60));
  absl::StatusOr<std::string> Fetch(int64_t round, absl::Duration patience = absl::Seconds(60));
  bool Until(std::function<bool()> condition) { return harness_->Until(std::move(condition)); }

  std::unique_ptr<TransportHarness> harness_;
  RecordingWorker worker_;
  RecordingCoordinator coordinator_;
  std::unique_ptr<Hub> hub_;
  std::unique_ptr<WorkerLink> link_;
};

}  // namespace isthmus

#endif  // ISTHMUS_DAEMON_EXCHANGE_TRANSPORT_CONFORMANCE_H_
