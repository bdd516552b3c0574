// Speed of addressing (row ids a second, one core) and of decoding rows, over the released model's shapes.
// Argument of the addressing runs: tokens per chunk; 1 is a decode step, 512 and more a prefill.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "address/qwen_ple.h"
#include "rowtide/row_format.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kRowValues = 160;

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

void decode_row_f32(benchmark::State& state, RowFormat format) {
  const auto bytes = static_cast<std::size_t>(*row_bytes(format, kRowValues));
  const std::vector<std::byte> raw(bytes, std::byte{0x35});
  std::vector<float> out(kRowValues);
  for (auto _ : state) {
    benchmark::DoNotOptimize(raw.data());
    decode_f32(format, raw.data(), kRowValues, out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(decode_row_f32, f32, RowFormat::kF32);
BENCHMARK_CAPTURE(decode_row_f32, f16, RowFormat::kF16);
BENCHMARK_CAPTURE(decode_row_f32, bf16, RowFormat::kBf16);
BENCHMARK_CAPTURE(decode_row_f32, q8_0, RowFormat::kQ8_0);
BENCHMARK_CAPTURE(decode_row_f32, q4_0, RowFormat::kQ4_0);
BENCHMARK_CAPTURE(decode_row_f32, iq4_nl, RowFormat::kIq4Nl);

void decode_row_bf16(benchmark::State& state, RowFormat format) {
  const auto bytes = static_cast<std::size_t>(*row_bytes(format, kRowValues));
  const std::vector<std::byte> raw(bytes, std::byte{0x35});
  std::vector<std::uint16_t> out(kRowValues);
  for (auto _ : state) {
    benchmark::DoNotOptimize(raw.data());
    decode_bf16(format, raw.data(), kRowValues, out.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK_CAPTURE(decode_row_bf16, bf16, RowFormat::kBf16);
BENCHMARK_CAPTURE(decode_row_bf16, iq4_nl, RowFormat::kIq4Nl);

}  // namespace
}  // namespace rowtide

BENCHMARK_MAIN();
