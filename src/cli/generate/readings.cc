#include "cli/generate/readings.h"

#include <algorithm>

#include "cli/bench/rows_usage.h"
#include "cli/generate/gather_timer.h"
#include "cli/generate/generation.h"
#include "cli/generate/llama_model.h"
#include "cli/generate/report.h"
#include "ggml/plugin.h"
#include "io/page_cache.h"
#include "rowtide/checkpoint.h"
#include "table/file_ranges.h"

namespace rowtide::cli {
namespace {

std::uint64_t page_cache_bytes(const std::vector<Table>& tables) {
  std::uint64_t bytes = 0;
  for (const Table& table : tables) {
    for (const io::FileRange& rows : file_ranges(table)) {
      bytes += value_of(io::resident_bytes(rows.path, rows.offset, rows.offset + rows.bytes));
    }
  }
  return bytes;
}

std::vector<llama_token> first_tokens(const LlamaModel& model, const GenerateOptions& options, std::uint32_t count) {
  std::vector<llama_token> tokens = model.tokenize(options.prompt);
  if (tokens.empty()) throw usage_failure("{}: the prompt gives no token", options.model);
  const std::uint32_t context = model.trained_context();
  const std::uint32_t room = context > options.tokens ? context - options.tokens : 1;
  tokens.resize(std::min<std::size_t>({tokens.size(), count, room}));
  return tokens;
}

class Readings {
 public:
  Readings(const GenerateOptions& options, const LlamaModel& model, LlamaContext& context, GatherTimer& timer,
           std::span<const llama_token> prompt, const std::vector<Table>& tables)
      : options_(options), model_(model), context_(context), timer_(timer), prompt_(prompt), tables_(tables) {}

  Json read(std::string_view state) {
    timer_.reset();
    context_.clear();
    const Counters before = sum_of_counters(ggml::served_tables());
    Json reading{{"state", state}};
    auto at_prompt = [&](std::size_t read) {
      if (read == prompt_.size()) add_gathers(reading, before);
    };
    const Generation generation = generate_text(model_, context_, prompt_, options_, at_prompt, [](auto) {});
    const Counters after = sum_of_counters(ggml::served_tables());
    reading["prompt_seconds"] = generation.prompt_seconds;
    reading["generate_seconds"] = generation.generate_seconds;
    reading["generated_tokens"] = generation.tokens.size();
    reading["reads"] = options_.with_store ? after.reads - before.reads : timer_.faults();
    reading["store_bytes"] = after.memory_bytes;
    reading["private_bytes"] = private_memory();
    reading["page_cache_bytes"] = page_cache_bytes(tables_);
    reading["logits_sha256"] = generation.logits_sha256;
    return reading;
  }

 private:
  void add_gathers(Json& reading, const Counters& before) const {
    const Counters now = sum_of_counters(ggml::served_tables());
    reading["gather_seconds"] = timer_.seconds();
    reading["rows"] = timer_.rows();
    const std::uint64_t missed = (now.rows - before.rows) - (now.hits - before.hits);
    reading["missed_rows"] = options_.with_store ? missed : timer_.faults();
  }

  const GenerateOptions& options_;
  const LlamaModel& model_;
  LlamaContext& context_;
  GatherTimer& timer_;
  const std::span<const llama_token> prompt_;
  const std::vector<Table>& tables_;
};

}  // namespace

Json measure_readings(const GenerateOptions& options, std::uint32_t prompt_tokens) {
  const Checkpoint checkpoint = opened(Checkpoint::open(options.model));
  std::vector<std::string> names;
  for (const Table& table : checkpoint.tables()) names.push_back(table.name);
  GatherTimer timer(names);
  start_llama(plugin_settings(options));
  const auto begun = GatherTimer::Clock::now();
  auto since_begun = [&](auto time) { return std::chrono::duration<double>(time - begun).count(); };
  LlamaModel model(options.model);
  const double load_seconds = since_begun(GatherTimer::Clock::now());
  const std::vector<llama_token> prompt = first_tokens(model, options, prompt_tokens);
  const auto context_tokens = static_cast<std::uint32_t>(prompt.size()) + options.tokens;
  LlamaContext context(model, {context_tokens, options.ubatch, options.threads, &timer});

  Readings readings(options, model, context, timer, prompt, checkpoint.tables());
  Json cold = readings.read("cold"), warm = readings.read("warm");
  if (timer.rows() == 0) {
    throw Failure(
        kExitFailed, "not_served",
        fmt::format("{}: llama.cpp computed the prompt without a gather from table {}", options.model, names[0]));
  }
  return {{"prompt_tokens", prompt.size()},
          {"load_seconds", load_seconds},
          {"first_row_seconds", since_begun(timer.first_end())},
          {"readings", Json::array({std::move(cold), std::move(warm)})}};
}

}  // namespace rowtide::cli
