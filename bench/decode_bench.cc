// Time to decode a row of the released model (160 values), by row format, output and instruction set: a bundle of
// eight rows side by side in one call, and a row a call. The bytes stay in the CPU's first cache.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "table/row_decoders.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kRowValues = 160;
constexpr std::uint64_t kBundleRows = 8;

template <class Value>
void decode_rows(benchmark::State& state, RowFormat format, RowDecoder<Value> decode, std::uint64_t rows_a_call) {
  const auto bytes = static_cast<std::size_t>(*row_bytes(format, kRowValues));
  std::mt19937 random(1);
  std::vector<std::byte> raw(kBundleRows * bytes);
  for (std::byte& byte : raw) byte = static_cast<std::byte>(random());
  std::vector<Value> out(kBundleRows * kRowValues);
  for (auto _ : state) {
    for (std::uint64_t row = 0; row < kBundleRows; row += rows_a_call) {
      decode({format, kRowValues}, raw.data() + row * bytes, rows_a_call, out.data() + row * kRowValues);
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  state.counters["s_a_row"] = Counter(kBundleRows, Counter::kIsIterationInvariantRate | Counter::kInvert);
}

template <class Value>
void add(const RowDecoders& set, std::size_t format_index, const char* output) {
  const auto format = static_cast<RowFormat>(format_index);
  for (const std::uint64_t rows : {kBundleRows, std::uint64_t{1}}) {
    const std::string name =
        fmt::format("{}/{}/{}/{}", row_format_name(format), output, set.instruction_set, rows == 1 ? "row" : "bundle");
    benchmark::RegisterBenchmark(name.c_str(), decode_rows<Value>, format, row_decoder<Value>(set, format), rows);
  }
}

}  // namespace
}  // namespace rowtide

int main(int argc, char** argv) {
  for (std::size_t format = 0; format < rowtide::kRowFormats; ++format) {
    for (const rowtide::RowDecoders* set : rowtide::row_decoders()) {
      rowtide::add<float>(*set, format, "f32");
      rowtide::add<std::uint16_t>(*set, format, "bf16");
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
