// The conformance suite on gRPC.
#include "daemon/exchange/transport_conformance.h"
#include "daemon/rpc/grpc_harness.h"
#include "gtest/gtest.h"

namespace isthmus {
namespace {

std::unique_ptr<TransportHarness> MakeGrpcHarness() { return std::make_unique<GrpcHarness>(); }

INSTANTIATE_TEST_SUITE_P(Grpc, TransportConformanceTest, testing::Values(&MakeGrpcHarness));

}  // namespace
}  // namespace isthmus
