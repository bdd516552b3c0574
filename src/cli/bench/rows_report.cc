#include "cli/bench/rows_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/text_table.h"

namespace rowtide::cli {
namespace {

/// Ascending.
std::vector<double> figures(const MethodRuns& method,
                            const std::function<std::optional<double>(const Measurement&)>& of) {
  std::vector<double> values;
  for (const Measurement& run : method.runs) {
    if (const auto value = of(run)) values.push_back(*value);
  }
  std::sort(values.begin(), values.end());
  return values;
}

double at_share(const std::vector<double>& ascending, double share) {
  return ascending[static_cast<std::size_t>(std::lround(share * static_cast<double>(ascending.size() - 1)))];
}

double median(const std::vector<double>& ascending) {
  const std::size_t middle = ascending.size() / 2;
  return ascending.size() % 2 == 1 ? ascending[middle] : (ascending[middle - 1] + ascending[middle]) / 2;
}

Json median_or_null(const std::vector<double>& ascending) {
  return ascending.empty() ? Json() : Json(median(ascending));
}

std::optional<double> rows_per_s(const Measurement& run) {
  if (run.rows == 0) return std::nullopt;
  return static_cast<double>(run.rows) / run.seconds;
}

std::optional<double> reads_per_s(const Measurement& run) {
  if (!run.reads) return std::nullopt;
  return static_cast<double>(*run.reads) / run.seconds;
}

/// What a method is judged by: fio knows no rows.
std::optional<double> rate(const Measurement& run) { return run.rows > 0 ? rows_per_s(run) : reads_per_s(run); }

std::optional<double> cpu_us(const Measurement& run) {
  const std::uint64_t count = run.rows > 0 ? run.rows : run.reads.value_or(0);
  if (count == 0) return std::nullopt;
  return 1e6 * run.cpu_seconds / static_cast<double>(count);
}

Json sum_or_null(const MethodRuns& method, const std::function<std::optional<std::uint64_t>(const Measurement&)>& of) {
  std::optional<std::uint64_t> sum;
  for (const Measurement& run : method.runs) {
    if (const auto value = of(run)) sum = sum.value_or(0) + *value;
  }
  return sum ? Json(*sum) : Json();
}

void add_percentiles(const MethodRuns& method, Json& result) {
  std::vector<double> times;
  for (const Measurement& run : method.runs) times.insert(times.end(), run.batch_us.begin(), run.batch_us.end());
  std::sort(times.begin(), times.end());
  const std::pair<const char*, double> shares[] = {{"p50_us", 0.5}, {"p90_us", 0.9}, {"p99_us", 0.99}};
  for (const auto& [key, share] : shares) result[key] = times.empty() ? Json() : Json(at_share(times, share));
}

/// fio and the plain reader know no warm rows; a copy in memory knows no cold ones.
std::string state_of(const BenchRowsOptions& options, const std::string& method) {
  if (method == "fio" || method == "uring64") return "cold";
  if (method == "memcpy" && options.state != BenchState::kResident) return "warm";
  return options.state_name;
}

Json result_json(const BenchRowsOptions& options, const BenchSource& source, const MethodRuns& method) {
  const auto rates = figures(method, rate);
  const auto count = [&](auto of) { return sum_or_null(method, of); };
  Json result{{"method", method.method}, {"state", state_of(options, method.method)}, {"batch_rows", method.batch}};
  result["rows_per_s"] = median_or_null(figures(method, rows_per_s));
  result["reads_per_s"] = median_or_null(figures(method, reads_per_s));
  result["least"] = rates.front();
  result["most"] = rates.back();
  result["spread"] = (rates.back() - rates.front()) / median(rates);
  add_percentiles(method, result);
  result["cpu_us_per_row"] = median_or_null(figures(method, cpu_us));
  result["hit_share"] = median_or_null(figures(method, [](const Measurement& run) { return run.hit_share; }));
  result["runs"] = method.runs.size();
  result["batches"] = count([](const Measurement& run) { return std::optional(run.batches); });
  result["rows"] = count([](const Measurement& run) { return std::optional(run.rows); });
  result["unique_rows"] = count([](const Measurement& run) { return std::optional(run.unique_rows); });
  result["reads"] = count([](const Measurement& run) { return run.reads; });
  result["bytes_read"] = count([](const Measurement& run) { return run.bytes_read; });
  result["blocks_needed"] = count([](const Measurement& run) { return std::optional(run.blocks_needed); });
  const Json& bytes = result["bytes_read"];
  result["blocks_read"] = bytes.is_null() ? Json() : Json(bytes.get<std::uint64_t>() / source.block_bytes);
  const bool is_cold = options.state == BenchState::kCold || options.state == BenchState::kMixed;
  result["blocks_read_before"] =
      is_cold ? count([](const Measurement& run) { return std::optional(run.blocks_before); }) : Json();
  result["wait_seconds"] = median_or_null(figures(method, [](const Measurement& run) { return run.wait_seconds; }));
  result["switches"] = count([](const Measurement& run) { return run.switches; });
  const auto syscalls = figures(method, [](const Measurement& run) -> std::optional<double> {
    if (!run.syscalls_of_a_batch) return std::nullopt;
    return static_cast<double>(*run.syscalls_of_a_batch);
  });
  result["syscalls_per_batch"] = median_or_null(syscalls);
  return result;
}

Json ratio_json(const MethodRuns& ours, const MethodRuns& theirs) {
  const bool by_reads = theirs.runs.front().rows == 0;
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(ours.runs.size(), theirs.runs.size()); ++i) {
    const auto ours_rate = by_reads ? reads_per_s(ours.runs[i]) : rows_per_s(ours.runs[i]);
    const auto theirs_rate = rate(theirs.runs[i]);
    if (ours_rate && theirs_rate) ratios.push_back(*ours_rate / *theirs_rate);
  }
  std::sort(ratios.begin(), ratios.end());
  if (ratios.empty()) return {};
  const bool one_run = ratios.size() == 1;
  const char* verdict = one_run                ? "one run"
                        : ratios.front() > 1.0 ? "faster"
                        : ratios.back() < 1.0  ? "slower"
                                               : "within the spread";
  return {{"of", by_reads ? "reads_per_s" : "rows_per_s"},
          {"ratio", median(ratios)},
          {"least", ratios.front()},
          {"most", ratios.back()},
          {"verdict", verdict}};
}

const MethodRuns* rowtide_of(const std::vector<MethodRuns>& all, std::size_t batch) {
  for (const MethodRuns& method : all) {
    if (method.method == "rowtide" && method.batch == batch && !method.runs.empty()) return &method;
  }
  return nullptr;
}

std::string cell(const Json& value, const char* format) {
  return value.is_null() ? "-" : fmt::format(fmt::runtime(format), value.get<double>());
}

std::string rate_cell(const Json& value) {
  return value.is_null() ? "-" : grouped(static_cast<std::uint64_t>(std::llround(value.get<double>())));
}

std::vector<std::string> report_line(const Json& result, const Json& ratios) {
  const auto batch = std::to_string(result["batch_rows"].get<std::size_t>());
  const auto method = result["method"].get<std::string>();
  std::string against = "-";
  if (ratios.contains(batch) && ratios[batch].contains(method)) {
    const Json& ratio = ratios[batch][method];
    against = fmt::format("{:.2f} ({:.2f} to {:.2f}) {}", ratio["ratio"].get<double>(), ratio["least"].get<double>(),
                          ratio["most"].get<double>(), ratio["verdict"].get<std::string>());
  }
  const Json& read = result["blocks_read"];
  const double needed = result["blocks_needed"].get<double>();
  return {batch,
          method,
          result["state"].get<std::string>(),
          rate_cell(result["rows_per_s"]),
          rate_cell(result["reads_per_s"]),
          fmt::format("{:.0f} %", 100 * result["spread"].get<double>()),
          cell(result["p50_us"], "{:.1f}"),
          cell(result["p99_us"], "{:.1f}"),
          cell(result["cpu_us_per_row"], "{:.2f}"),
          cell(result["hit_share"], "{:.3f}"),
          read.is_null() || needed == 0 ? "-" : fmt::format("{:.2f}", read.get<double>() / needed),
          against};
}

}  // namespace

Json results_json(const BenchRowsOptions& options, const BenchSource& source, const std::vector<MethodRuns>& all) {
  Json results = Json::array();
  for (const MethodRuns& method : all) {
    if (!method.runs.empty()) results.push_back(result_json(options, source, method));
  }
  return results;
}

Json ratios_json(const std::vector<MethodRuns>& all) {
  Json ratios = Json::object();
  for (const MethodRuns& theirs : all) {
    const MethodRuns* ours = rowtide_of(all, theirs.batch);
    if (ours == nullptr || &theirs == ours || theirs.runs.empty()) continue;
    if (Json ratio = ratio_json(*ours, theirs); !ratio.is_null()) {
      ratios[std::to_string(theirs.batch)][theirs.method] = std::move(ratio);
    }
  }
  return ratios;
}

std::string report_text(const Json& report) {
  std::string text = fmt::format(
      "{}: {} rows of {} bytes, on {}, {}-byte blocks\n"
      "trace {}, state {}, repeats {}, load average {:.1f} before and {:.1f} after\n\n",
      report["file"].get<std::string>(), grouped(report["rows"].get<std::uint64_t>()),
      report["row_bytes"].get<std::uint64_t>(), report["device"].get<std::string>(),
      report["block"].get<std::uint32_t>(), report["trace"].get<std::string>(), report["state"].get<std::string>(),
      report["repeat"].get<std::uint32_t>(), report["load_average_before"].get<double>(),
      report["load_average_after"].get<double>());
  std::vector<std::vector<std::string>> lines{{"batch", "method", "state", "rows/s", "reads/s", "spread", "p50 us",
                                               "p99 us", "cpu us/row", "hits", "blocks read/needed",
                                               "rowtide against it"}};
  for (const Json& result : report["results"]) lines.push_back(report_line(result, report["ratios"]));
  text += columns(lines, 0);
  for (const Json& skipped : report["skipped"]) {
    text +=
        fmt::format("{} is left out: {}\n", skipped["method"].get<std::string>(), skipped["reason"].get<std::string>());
  }
  const Json& process = report["process"];
  text += fmt::format("\nthis process at its peak: {}\n", size_text(process["peak_rss_bytes"].get<std::uint64_t>()));
  return text;
}

}  // namespace rowtide::cli
