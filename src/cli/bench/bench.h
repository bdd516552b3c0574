// The benchmarks of `rowtide bench`, one file each.
#pragma once

#include "cli/command.h"

namespace rowtide::cli {

ExitCode run_bench_rows(const Arguments& arguments);
ExitCode run_bench_cache(const Arguments& arguments);

}  // namespace rowtide::cli
