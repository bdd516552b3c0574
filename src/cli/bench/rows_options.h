// What `rowtide bench rows` is asked to measure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments.h"

namespace rowtide::cli {

enum class BenchTrace { kUniform, kZipf, kDecode, kPrefill, kText };
enum class BenchState { kCold, kWarm, kResident, kMixed };

struct BenchRowsOptions {
  // One of the three.
  std::optional<std::string> path, raw;
  std::optional<std::uint64_t> synthetic_bytes;

  std::uint64_t row_bytes = 0, offset = 0;
  std::string folder = ".";
  std::vector<std::string> methods;
  std::vector<std::size_t> batches;  // empty: the trace's own
  BenchTrace trace = BenchTrace::kUniform;
  std::string trace_name = "uniform";
  std::optional<std::string> text;
  BenchState state = BenchState::kCold;
  std::string state_name = "cold";
  double warm_share = 0;           // of kMixed
  std::uint64_t memory_bytes = 0;  // 0: the library's default
  std::uint64_t rows = 0;          // of one measurement; 0: the state's own
  std::uint64_t rows_before = 0;
  std::uint32_t repeat = 3;
  bool json = false;
};

/// All method names, in the order in which they are measured first.
const std::vector<std::string>& bench_methods();

/// False when help was asked for and has been printed. Throws a usage Failure.
bool read_bench_rows_options(const Arguments& arguments, BenchRowsOptions& options);

}  // namespace rowtide::cli
