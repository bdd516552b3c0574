// rowtide bench rows: our paths and the other methods on the same file, in one run.
#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/bench/rows_measure.h"
#include "cli/bench/rows_options.h"
#include "cli/bench/rows_report.h"
#include "cli/bench/rows_source.h"
#include "cli/bench/rows_trace.h"
#include "cli/bench/rows_usage.h"
#include "cli/json_output.h"
#include "cli/progress.h"

namespace rowtide::cli {
namespace {

/// Tasks that wanted a core in the last minute: what disturbs a measurement.
double load_of_last_minute() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : -1;
}

struct BenchRuns {
  std::vector<MethodRuns> all;  // batch by batch, method by method
  Json skipped = Json::array();
};

/// Every method once for each batch size, repeat by repeat; which comes first changes with the repeat.
BenchRuns run_all(const BenchRowsOptions& options, const std::vector<std::size_t>& batches, RowsBench& bench) {
  BenchRuns runs;
  for (const std::size_t batch : batches) {
    for (const std::string& method : options.methods) runs.all.push_back({method, batch, {}});
  }
  std::vector<std::string> left_out;
  Progress progress("measuring");
  const std::size_t methods = options.methods.size();
  const std::size_t total = options.repeat * runs.all.size();
  std::size_t done = 0;
  for (std::uint32_t repeat = 0; repeat < options.repeat; ++repeat) {
    for (std::size_t batch = 0; batch < batches.size(); ++batch) {
      for (std::size_t i = 0; i < methods; ++i, ++done) {
        progress.update(static_cast<double>(done) / static_cast<double>(total));
        MethodRuns& method = runs.all[batch * methods + (i + repeat) % methods];
        if (std::find(left_out.begin(), left_out.end(), method.method) != left_out.end()) continue;
        try {
          method.runs.push_back(bench.measure(method.method, method.batch));
        } catch (const Failure& failure) {
          if (failure.code() != "unsupported" || method.method == "rowtide") throw;
          left_out.push_back(method.method);
          runs.skipped.push_back({{"method", method.method}, {"reason", failure.what()}});
        }
      }
    }
  }
  return runs;
}

}  // namespace

ExitCode run_bench_rows(const Arguments& arguments) {
  BenchRowsOptions options;
  if (!read_bench_rows_options(arguments, options)) return kExitDone;
  BenchSource source = open_bench_source(options);
  const BenchTraceMaker trace(options, source.table);
  RowsBench bench(options, source, trace);
  const double load_before = load_of_last_minute();
  const BenchRuns runs = run_all(options, trace.batches(), bench);

  Json report{{"file", source.paths().front()},
              {"device", source.device},
              {"block", source.block_bytes},
              {"rows", source.table.rows},
              {"row_bytes", source.table.row_bytes},
              {"trace", options.trace_name},
              {"state", options.state_name},
              {"repeat", options.repeat},
              {"memory_bytes", options.memory_bytes == 0 ? Json() : Json(options.memory_bytes)},
              {"cold_share_left", bench.cold_share()},
              {"load_average_before", load_before},
              {"load_average_after", load_of_last_minute()}};
  report["results"] = results_json(options, source, runs.all);
  report["ratios"] = ratios_json(runs.all);
  report["skipped"] = runs.skipped;
  report["process"] = {{"peak_rss_bytes", process_memory("VmHWM")}, {"private_bytes", bench.private_bytes()}};
  if (options.json) {
    print_json(report);
  } else {
    fmt::print("{}", report_text(report));
  }
  return kExitDone;
}

}  // namespace rowtide::cli
