#include "cli/try_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/failure.h"
#include "cli/own_process.h"
#include "cli/progress.h"
#include "io/page_cache.h"
#include "table/file_ranges.h"

namespace rowtide::cli {
namespace {

constexpr double kSecondsForAll = 50;  // so that what loading takes fits the minute too
constexpr TryPlan kPilot{64, 4}, kLeast{64, 4}, kMost{1024, 32};

Json measure(const TryOptions& options, std::string_view method, const TryPlan& plan) {
  Arguments arguments{"try", options.model, "--child", std::string(method)};
  auto add = [&](const char* name, auto value) {
    arguments.emplace_back(name);
    arguments.push_back(fmt::format("{}", value));
  };
  add("--tokens", plan.prompt_tokens);
  add("-n", plan.generated_tokens);
  add("--threads", options.threads);
  add("--ubatch", options.ubatch);
  if (options.memory_bytes != 0) add("--memory", options.memory_bytes);
  return run_own_process(std::move(arguments), options.prompt);
}

/// The greatest share of a table that stays in the page cache.
double make_tables_cold(const std::vector<Table>& tables) {
  double share = 0;
  for (const Table& table : tables) {
    for (const io::FileRange& rows : file_ranges(table)) {
      share = std::max(share, value_of(io::make_cold(rows.path, rows.offset, rows.offset + rows.bytes)));
    }
  }
  return share;
}

double rate(std::uint64_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }

TryRun run_of(const std::string& method, const Json& measured, const Json& reading, double resident_share) {
  TryRun run;
  run.method = method;
  run.state = reading["state"];
  run.prompt_tokens = measured["prompt_tokens"];
  run.generated_tokens = reading["generated_tokens"];
  run.gather_seconds = reading["gather_seconds"];
  run.first_row_seconds = measured["first_row_seconds"];
  run.prompt_tok_s = rate(run.prompt_tokens, reading["prompt_seconds"]);
  run.decode_tok_s = rate(run.generated_tokens, reading["generate_seconds"]);
  run.rows = reading["rows"];
  run.missed_rows = reading["missed_rows"];
  run.reads = reading["reads"];
  run.store_bytes = reading["store_bytes"];
  run.page_cache_bytes = reading["page_cache_bytes"];
  run.private_bytes = reading["private_bytes"];
  run.resident_share_before = resident_share;
  run.logits_sha256 = reading["logits_sha256"];
  return run;
}

}  // namespace

TryPlan plan_try(const TryOptions& options) {
  const TryPlan asked{options.prompt_tokens, options.generated_tokens};
  if (asked.prompt_tokens != 0 && asked.generated_tokens != 0) return asked;
  const Json pilot = measure(options, "rowtide", kPilot);
  const Json& warm = pilot["readings"][1];
  const double runs = 2 * (options.repeat + 1);  // and each reads twice
  const double seconds = std::max(0.0, kSecondsForAll / runs - pilot["load_seconds"].get<double>()) / 2;
  auto fitting = [](double share, double per_second, std::uint32_t least, std::uint32_t most) {
    return static_cast<std::uint32_t>(std::clamp<double>(share * per_second, least, most));
  };
  constexpr double kPromptShare = 0.8;
  const double prompt_rate = rate(pilot["prompt_tokens"], warm["prompt_seconds"]);
  const double decode_rate = rate(warm["generated_tokens"], warm["generate_seconds"]);
  TryPlan plan;
  plan.generated_tokens =
      fitting((1 - kPromptShare) * seconds, decode_rate, kLeast.generated_tokens, kMost.generated_tokens);
  plan.prompt_tokens = fitting(kPromptShare * seconds, prompt_rate, kLeast.prompt_tokens, kMost.prompt_tokens);
  if (asked.prompt_tokens != 0) plan.prompt_tokens = asked.prompt_tokens;
  if (asked.generated_tokens != 0) plan.generated_tokens = asked.generated_tokens;
  return plan;
}

std::vector<TryRun> run_try_plan(const TryOptions& options, const TryPlan& plan, const std::vector<Table>& tables) {
  std::vector<TryRun> runs;
  std::array<std::string, 2> methods{"stock", "rowtide"};
  Progress progress("measuring");
  double made = 0;
  for (std::uint32_t round = 0; round <= options.repeat; ++round) {
    for (const std::string& method : methods) {
      const double share = make_tables_cold(tables);
      const Json measured = measure(options, method, plan);
      progress.update(++made / (2.0 * (options.repeat + 1)));
      if (round == 0) continue;
      for (const Json& reading : measured["readings"]) runs.push_back(run_of(method, measured, reading, share));
    }
    std::swap(methods[0], methods[1]);
  }
  return runs;
}

}  // namespace rowtide::cli
