// Inner-training speed at the demo's shape: run with --benchmark_filter, see items_per_second (tokens).
#include <benchmark/benchmark.h>

#include "daemon/base/random.h"
#include "daemon/training/torch_trainer.h"

namespace isthmus {
namespace {

void BM_Step(benchmark::State& state) {
  const ModelShape shape;
  const std::vector<float> initial = TensorTable::ForModel(shape).value().InitialValues(1);
  const auto trainer = TorchTrainer::Create(shape, {}, {}, initial).value();
  Batch batch{state.range(0), shape.context, {}};
  Random random(1);
  for (int64_t i = 0; i < batch.sequences * (batch.length + 1); ++i)
    batch.tokens.push_back(random.Below(256));
  for (auto _ : state) benchmark::DoNotOptimize(trainer->Step(batch, 1e-4));
  state.SetItemsProcessed(state.iterations() * batch.sequences * batch.length);
}
BENCHMARK(BM_Step)->Arg(1)->Arg(4)->Arg(16);

void BM_Evaluate(benchmark::State& state) {
  const ModelShape shape;
  const std::vector<float> initial = TensorTable::ForModel(shape).value().InitialValues(1);
  const auto trainer = TorchTrainer::Create(shape, {}, {}, initial).value();
  Batch batch{64, shape.context, std::vector<int32_t>(64 * (shape.context + 1), 7)};
  for (auto _ : state) benchmark::DoNotOptimize(trainer->Evaluate(initial, batch));
  state.SetItemsProcessed(state.iterations() * batch.sequences * batch.length);
}
BENCHMARK(BM_Evaluate);

}  // namespace
}  // namespace isthmus

BENCHMARK_MAIN();
