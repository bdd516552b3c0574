// rowtide try: llama.cpp by itself against llama.cpp with Rowtide, on the user's machine and model.

#include <fmt/format.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include <csignal>
#include <limits>
#include <optional>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/text_table.h"
#include "cli/try_runs.h"
#include "cli/try_verdict.h"
#include "rowtide/byte_size.h"
#include "rowtide/checkpoint.h"
#ifdef ROWTIDE_HAS_LLAMA
#include "cli/generate/readings.h"
#endif

namespace rowtide::cli {
namespace {

constexpr const char* kTryDescription =
    "Reads a prompt with the embedded llama.cpp, by itself (stock) and with Rowtide, and compares, in about a "
    "minute.\n\n"
    "Each measurement is a process of its own. Before it the table is evicted from the page cache and found evicted\n"
    "(cold); then the same prompt is read once more (warm). Gather is the time that the rows of the prompt take, by\n"
    "the same callback of llama.cpp for both. Stock and Rowtide take turns; a first run of each is not counted. Of\n"
    "two figures whose spreads overlap, neither wins. What the page cache held of the table is gone\nafterwards.";

constexpr const char* kTryExamples =
    "  rowtide try models/tidepool.gguf\n"
    "  rowtide try Qwen3.8-Flash-Next-Q4.gguf --memory 4GiB --threads 8\n"
    "  rowtide try model.gguf --prompt-file chapter.txt --tokens 4000 --repeat 5 --json\n";

struct TryArguments {
  TryOptions options;
  std::optional<std::string> prompt_file, child;
  bool json = false;
};

bool read_arguments(const Arguments& arguments, TryArguments& given) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();
  ArgumentParser parser("rowtide try", kTryDescription, kTryExamples, given.json);
  parser.required("MODEL", " ", given.options.model, "a GGUF model with a table; of a split set the first file");
  parser.optional("--prompt-file", "FILE", given.prompt_file,
                  "the text to read, - is standard input; else one of ours");
  parser.byte_size("--memory", given.options.memory_bytes, "memory for Rowtide");
  parser.number("--tokens", given.options.prompt_tokens, 0, kMost, "tokens of it to read; 0: what a minute allows");
  parser.number("-n", given.options.generated_tokens, 0, kMost, "tokens to generate; 0: what a minute allows");
  parser.number("--repeat", given.options.repeat, 2, 100, "measurements of each kind");
  parser.number("--threads", given.options.threads, 1, 512, "threads that compute");
  parser.number("--ubatch", given.options.ubatch, 1, 65536, "prompt tokens that are computed together");
  parser.hidden("--child", given.child);
  if (!parser.parse(arguments)) return false;
  if (given.child) ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody waits for what it measures any more
  given.options.prompt = given.child ? read_text("-") : given.prompt_file ? read_utf8(*given.prompt_file) : kTryPrompt;
  if (given.options.prompt.empty()) throw usage_failure("the prompt is empty");
  return true;
}

#ifdef ROWTIDE_HAS_LLAMA

ExitCode measure_as_child(const TryArguments& given) {
  GenerateOptions options;
  options.model = given.options.model;
  options.prompt = given.options.prompt;
  options.tokens = given.options.generated_tokens;
  options.threads = given.options.threads;
  options.ubatch = given.options.ubatch;
  options.with_store = *given.child == "rowtide";
  if (options.with_store) options.memory_bytes = given.options.memory_bytes;
  print_json(measure_readings(options, given.options.prompt_tokens));
  return kExitDone;
}

double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

ExitCode try_model(const TryArguments& given) {
  const Checkpoint checkpoint = opened(Checkpoint::open(given.options.model));
  if (checkpoint.tables().empty()) {
    throw Failure(
        kExitRefused, "unsupported",
        fmt::format("{}: holds no conditional-memory table, so there is nothing to compare", checkpoint.path()));
  }
  const double load = load_average();
  const TryPlan plan = plan_try(given.options);
  const std::vector<TryRun> runs = run_try_plan(given.options, plan, checkpoint.tables());
  const bool same = same_output(runs);
  if (given.json) {
    print_json({{"same_output", same},
                {"runs", runs_json(runs)},
                {"verdict", verdict(runs)},
                {"ratios", ratios_json(runs)},
                {"model", checkpoint.path()},
                {"table_bytes", checkpoint.bytes_table()},
                {"prompt_tokens", runs.front().prompt_tokens},
                {"generated_tokens", runs.front().generated_tokens},
                {"ubatch", given.options.ubatch},
                {"threads", given.options.threads},
                {"repeat", given.options.repeat},
                {"load_average_before", load}});
  } else {
    fmt::print(
        "{}: a table of {}; {} tokens of prompt, {} generated; {} times each; load average before: {:.1f}\n\n{}\n{}\n",
        checkpoint.path(), byte_size_text(checkpoint.bytes_table()), grouped(runs.front().prompt_tokens),
        runs.front().generated_tokens, given.options.repeat, load, table_text(runs), verdict(runs));
  }
  return same ? kExitDone : kExitNotSo;
}

#endif

}  // namespace

ExitCode run_try(const Arguments& arguments) {
  TryArguments given;
  if (!read_arguments(arguments, given)) return kExitDone;
#ifdef ROWTIDE_HAS_LLAMA
  return given.child ? measure_as_child(given) : try_model(given);
#else
  throw usage_failure("rowtide try: this program was built without llama.cpp; run `make build`, which sets it up");
#endif
}

}  // namespace rowtide::cli
