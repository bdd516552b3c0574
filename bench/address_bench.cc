// Speed of addressing (row ids a second, one core), over the released models' shapes.
// Argument: tokens per chunk; 1 is a decode step, 512 and more a prefill.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "address/deepseek_engram.h"
#include "address/engram_demo.h"
#include "address/longcat.h"
#include "address/qwen_ple.h"
#include "address/unigram.h"

namespace rowtide {
namespace {

using Made = std::shared_ptr<const Addressing>;

/// A map of `entries` token ids to `compressed` ones, spread as a tokenizer's are: what matters is that it is looked
/// up.
TokenMap spread_map(std::int32_t entries, std::int32_t compressed) {
  std::vector<std::int32_t> map;
  for (std::int32_t id = 0; id < entries; ++id) map.push_back(id < compressed ? id : (id - compressed) * 3);
  return std::make_shared<const std::vector<std::int32_t>>(std::move(map));
}

Made qwen_ple() { return make_qwen_ple(released_qwen_ple(), *derive_qwen_ple(released_qwen_ple())); }
Made longcat() { return make_longcat(released_longcat(), *derive_longcat(released_longcat())); }
Made unigram() { return *make_unigram(released_unigram()); }

Made deepseek_engram() {
  const EngramConfig config = released_deepseek_engram();
  return *make_deepseek_engram(config, derive_engram(config)->front(), spread_map(129'280, 99'092));
}

Made engram_demo() {
  const EngramConfig config = released_engram_demo();
  return *make_engram_demo(config, derive_engram(config)->front(), spread_map(128'815, 98'627));
}

void rows(benchmark::State& state, Made (*make)()) {
  const Made addressing = make();
  const auto chunk = static_cast<std::size_t>(state.range(0));
  std::mt19937_64 random(1);
  std::vector<TokenId> tokens(chunk * 64);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 128'000);
  std::vector<RowId> ids(chunk * addressing->rows_per_token());
  History history = addressing->start();
  std::size_t at = 0;
  for (auto _ : state) {
    addressing->rows(std::span(tokens).subspan(at, chunk), history, ids);
    benchmark::DoNotOptimize(ids.data());
    benchmark::ClobberMemory();
    at = (at + chunk) % tokens.size();
  }
  const auto made = static_cast<double>(state.iterations()) * static_cast<double>(ids.size());
  state.counters["row_ids_per_s"] = benchmark::Counter(made, benchmark::Counter::kIsRate);
  state.counters["s_per_row_id"] = benchmark::Counter(made, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(rows, qwen_ple, qwen_ple)->Arg(1)->Arg(512)->Arg(8192);
BENCHMARK_CAPTURE(rows, deepseek_engram, deepseek_engram)->Arg(1)->Arg(512)->Arg(8192);
BENCHMARK_CAPTURE(rows, engram_demo, engram_demo)->Arg(1)->Arg(512)->Arg(8192);
BENCHMARK_CAPTURE(rows, longcat, longcat)->Arg(1)->Arg(512)->Arg(8192);
BENCHMARK_CAPTURE(rows, unigram, unigram)->Arg(1)->Arg(512)->Arg(8192);

void derive_qwen_ple_constants(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(derive_qwen_ple(released_qwen_ple()));
}
BENCHMARK(derive_qwen_ple_constants)->Unit(benchmark::kMicrosecond);

void derive_deepseek_engram_constants(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(derive_engram(released_deepseek_engram()));
}
BENCHMARK(derive_deepseek_engram_constants)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace rowtide

BENCHMARK_MAIN();
