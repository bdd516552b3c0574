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

/// Measures `methods`, once for each batch size, repeat by repeat; which comes first changes with the repeat.
class Runs {
 public:
  Runs(const BenchRowsOptions& options, const std::vector<std::size_t>& batches, RowsBench& bench)
      : options_(options),
        batches_(batches),
        bench_(bench),
        total_(options.methods.size() * batches.size() * options.repeat) {
    for (const std::size_t batch : batches) {
      for (const std::string& method : options.methods) all_.push_back({method, batch, {}});
    }
  }

  void measure(const std::vector<std::string>& methods) {
    for (std::uint32_t repeat = 0; repeat < options_.repeat; ++repeat) {
      for (const std::size_t batch : batches_) {
        for (std::size_t i = 0; i < methods.size(); ++i) {
          progress_.update(static_cast<double>(done_++) / static_cast<double>(total_));
          // The other direction every second time, so that no method always follows the same.
          const std::size_t turn = repeat % 2 == 0 ? i : methods.size() - 1 - i;
          measure_once(runs_of(methods[(turn + repeat) % methods.size()], batch));
        }
      }
    }
  }

  /// One measurement for nothing: the first to read after a pause, or after the file was written, finds a slow drive.
  void wake_drive() {
    MethodRuns ignored{options_.methods.front(), batches_.front(), {}};
    measure_once(ignored);
  }

  const std::vector<MethodRuns>& all() const { return all_; }  // batch by batch
  const Json& skipped() const { return skipped_; }

 private:
  MethodRuns& runs_of(const std::string& method, std::size_t batch) {
    return *std::find_if(all_.begin(), all_.end(),
                         [&](const MethodRuns& runs) { return runs.method == method && runs.batch == batch; });
  }

  void measure_once(MethodRuns& method) {
    constexpr double kTooSlowSeconds = 5;  // then once is enough
    if (std::find(left_out_.begin(), left_out_.end(), method.method) != left_out_.end()) return;
    if (options_.rows == 0 && !method.runs.empty() && method.runs.back().seconds > kTooSlowSeconds) return;
    try {
      method.runs.push_back(bench_.measure(method.method, method.batch));
    } catch (const Failure& failure) {
      if (failure.code() != "unsupported" || method.method == "rowtide") throw;
      left_out_.push_back(method.method);
      skipped_.push_back({{"method", method.method}, {"reason", failure.what()}});
    }
  }

  const BenchRowsOptions& options_;
  const std::vector<std::size_t>& batches_;
  RowsBench& bench_;
  std::size_t total_, done_ = 0;
  std::vector<MethodRuns> all_;
  std::vector<std::string> left_out_;
  Json skipped_ = Json::array();
  Progress progress_{"measuring"};
};

/// A plain mapping reads far around each row. What lies below a virtual disk then knows blocks that others are yet to
/// ask for, so it comes after all repeats of the others.
void measure_all(const BenchRowsOptions& options, Runs& runs) {
  std::vector<std::string> first, last;
  for (const std::string& method : options.methods) (method == "mmap" ? last : first).push_back(method);
  runs.wake_drive();
  runs.measure(first);
  runs.measure(last);
}

}  // namespace

ExitCode run_bench_rows(const Arguments& arguments) {
  BenchRowsOptions options;
  if (!read_bench_rows_options(arguments, options)) return kExitDone;
  BenchSource source = open_bench_source(options);
  const BenchTraceMaker trace(options, source.table);
  RowsBench bench(options, source, trace);
  const double load_before = load_of_last_minute();
  const std::vector<std::size_t> batches = trace.batches();
  Runs runs(options, batches, bench);
  measure_all(options, runs);

  Json report{{"file", source.synthetic ? "made in " + options.folder : source.paths().front()},
              {"device", source.device},
              {"block", source.block_bytes},
              {"read_ahead_bytes", source.read_ahead_bytes ? Json(*source.read_ahead_bytes) : Json()},
              {"rows", source.table.rows},
              {"row_bytes", source.table.row_bytes},
              {"trace", options.trace_name},
              {"state", options.state_name},
              {"repeat", options.repeat},
              {"cold_share_left", bench.cold_share()},
              {"load_average_before", load_before},
              {"load_average_after", load_of_last_minute()}};
  report["results"] = results_json(options, source, runs.all());
  report["ratios"] = ratios_json(runs.all());
  report["skipped"] = runs.skipped();
  const auto& use = bench.rowtide_use();
  if (!use.way.empty()) {
    report["rowtide"] = {{"reads_by", use.way}, {"budget_bytes", use.budget_bytes}, {"memory_bytes", use.memory_bytes}};
  }
  report["process"] = {{"peak_rss_bytes", process_memory("VmHWM")}, {"private_bytes", use.private_bytes}};
  if (options.json) {
    print_json(report);
  } else {
    fmt::print("{}", report_text(report));
  }
  return kExitDone;
}

}  // namespace rowtide::cli
