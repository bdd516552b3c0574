// Speed of addressing (row ids a second, one core), over the released model's shapes.
// Argument: tokens per chunk; 1 is a decode step, 512 and more a prefill.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "address/qwen_ple.h"

namespace rowtide {
namespace {

void qwen_ple_rows(benchmark::State& state) {
  const QwenPleConfig config = released_qwen_ple();
  const auto addressing = make_qwen_ple(config, *derive_qwen_ple(config));
  const auto chunk = static_cast<std::size_t>(state.range(0));
  std::mt19937_64 random(1);
  std::vector<TokenId> tokens(chunk * 64);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 248320);
  std::vector<RowId> ids(chunk * addressing->rows_per_token());
  History history = addressing->start();
  std::size_t at = 0;
  for (auto _ : state) {
    addressing->rows(std::span(tokens).subspan(at, chunk), history, ids);
    benchmark::DoNotOptimize(ids.data());
    benchmark::ClobberMemory();
    at = (at + chunk) % tokens.size();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(ids.size()));
}
BENCHMARK(qwen_ple_rows)->Arg(1)->Arg(512)->Arg(8192);

void derive_qwen_ple_constants(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(derive_qwen_ple(released_qwen_ple()));
}
BENCHMARK(derive_qwen_ple_constants)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rowtide

BENCHMARK_MAIN();
