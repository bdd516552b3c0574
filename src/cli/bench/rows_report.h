// The measurements of `rowtide bench rows` put together: medians, spreads, ratios; for programs and for people.
#pragma once

#include <string>
#include <vector>

#include "cli/bench/rows_measure.h"
#include "cli/json_output.h"

namespace rowtide::cli {

/// All repeats of one method and batch size.
struct MethodRuns {
  std::string method;
  std::size_t batch = 0;
  std::vector<Measurement> runs;
};

/// `results[...]` and `ratios{...}` of the report. Ratios are of the same repeats, rowtide over each other method; a
/// ratio is called faster or slower only where no repeat says otherwise, and there are several.
Json results_json(const BenchRowsOptions& options, const BenchSource& source, const std::vector<MethodRuns>& all);
Json ratios_json(const std::vector<MethodRuns>& all);

/// The report as a table.
std::string report_text(const Json& report);

}  // namespace rowtide::cli
