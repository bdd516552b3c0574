// rowtide bench: finds the benchmark and runs it.

#include "cli/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/nearest.h"
#include "cli/command.h"

namespace rowtide::cli {
namespace {

const std::vector<Command> kBenches = {
    {"rows", "gathers of rows by Rowtide and by other methods, cold and warm", run_bench_rows},
    {"cache", "hit shares of caches of several kinds and sizes, by a trace of tokens", run_bench_cache},
};

void print_benches() {
  fmt::print(
      "Measures on this machine, in one run, what is to be compared.\n\n"
      "Usage: rowtide bench WHAT [OPTIONS]\n\nWhat:\n");
  for (const Command& bench : kBenches) fmt::print("  {:<12}{}\n", bench.name, bench.summary);
  fmt::print(
      "\nOptions:\n"
      "  {:<12}this help; after WHAT, that benchmark's\n"
      "  {:<12}after WHAT: one JSON document on standard output and nothing else there\n\n{}\n",
      "--help, -h", kJsonFlag,
      help_footer("  rowtide bench rows --help\n"
                  "  rowtide bench cache --help\n"));
}

}  // namespace

ExitCode run_bench(const Arguments& arguments) {
  std::string name = arguments.empty() ? "" : arguments.front();
  if (name == "--help" || name == "-h") {
    print_benches();
    return kExitDone;
  }
  auto bench = std::find_if(kBenches.begin(), kBenches.end(), [&](const Command& known) { return known.name == name; });
  if (bench != kBenches.end()) return bench->run(Arguments(arguments.begin() + 1, arguments.end()));
  if (name.empty() || name.starts_with('-')) throw usage_failure("say what to measure; see rowtide bench --help");
  std::vector<std::string> names;
  for (const Command& known : kBenches) names.emplace_back(known.name);
  throw usage_failure("unknown benchmark '{}'{}; see rowtide bench --help", name, suggestion(name, names));
}

}  // namespace rowtide::cli
