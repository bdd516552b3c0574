// fio, where it is installed: what the device gives for random reads of the same block and depth.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "cli/bench/rows_source.h"

namespace rowtide::cli {

struct FioRun {
  double reads_per_s;
  std::uint64_t reads;
  double cpu_us_per_read;
};

/// `reads` random direct reads of one block among the source's rows; 64 in flight, or, for batches of fewer rows, a
/// batch at a time, the next when all of it has come. Or why there is no figure.
std::variant<FioRun, std::string> run_fio(const BenchSource& source, std::size_t batch, std::uint64_t reads);

}  // namespace rowtide::cli
