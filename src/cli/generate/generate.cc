#include "cli/generate/generate.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "cli/bench/rows_usage.h"
#include "cli/generate/generation.h"
#include "cli/generate/llama_model.h"
#include "cli/generate/prompt_rows.h"
#include "cli/generate/report.h"
#include "cli/generate/table_residency.h"
#include "ggml/plugin.h"
#include "rowtide/checkpoint.h"
#include "rowtide/log.h"

namespace rowtide::cli {
namespace {

/// The model's tables. Without the store, a table that Rowtide would not serve is llama.cpp's business alone.
std::vector<Table> tables_of(const GenerateOptions& options) {
  auto checkpoint = Checkpoint::open(options.model);
  if (checkpoint) return checkpoint->tables();
  ErrorCode code = checkpoint.error().code;
  if (!options.with_store && (code == ErrorCode::kUnsupported || code == ErrorCode::kMismatch)) return {};
  return opened(std::move(checkpoint)).tables();
}

/// llama.cpp goes on without a plug-in that it does not use, so nothing but the counters tells that it does.
void check_served(const GenerateOptions& options, const Table& table) {
  for (const auto& served : ggml::served_tables()) {
    if (served.counters.rows > 0) return;
  }
  throw Failure(kExitFailed, "not_served",
                fmt::format("{}: the prompt was computed without one row of table {} from the store; see that "
                            "ROWTIDE_TABLES, if it is set, matches that name, or give --no-store",
                            options.model, table.name));
}

void print_piece(std::string_view piece) {
  if (std::fwrite(piece.data(), 1, piece.size(), stdout) == piece.size() && std::fflush(stdout) == 0) return;
  throw Failure(kExitFailed, "io", "standard output cannot be written, so generation stopped");
}

std::optional<std::uint64_t> resident_bytes(const std::vector<Table>& tables) {
  std::optional<std::uint64_t> sum;
  for (const Table& table : tables) {
    if (auto bytes = resident_table_bytes(table)) sum = sum.value_or(0) + *bytes;
  }
  return sum;
}

}  // namespace

ExitCode generate(const GenerateOptions& options) {
  std::vector<Table> tables = tables_of(options);
  if (tables.empty() && options.with_store) {
    log_line(LogLevel::kInfo,
             fmt::format("{}: holds no conditional-memory table, so there is nothing to serve", options.model));
  }
  start_llama(plugin_settings(options));
  LlamaModel model(options.model);
  auto sink = [&](std::string_view piece) {
    if (!options.json) print_piece(piece);
  };
  std::vector<llama_token> prompt = prompt_tokens(model, options);
  auto context_tokens = static_cast<std::uint32_t>(prompt.size()) + options.tokens;
  LlamaContext context(model, {context_tokens, options.ubatch, options.threads});
  PromptRows prompt_rows(tables, prompt, options.ubatch);
  auto prompt_sink = [&](std::size_t read) {
    if (!options.with_store) return;
    prompt_rows.advance(read);
    if (read == prompt.size() && !tables.empty()) check_served(options, tables.front());
  };

  GenerateReport report;
  report.generation = generate_text(model, context, prompt, options, prompt_sink, sink);
  report.private_bytes = private_memory();
  report.table_resident_bytes = resident_bytes(tables);
  for (const Table& table : tables) report.table_bytes += table.bytes();
  if (options.with_store) {
    report.store = store_report(ggml::served_tables());
    report.prompt_ubatches = prompt_rows.ubatches();
  }
  if (options.json) {
    print_json(to_json(report));
  } else {
    print_piece("\n");
    print(report);
  }
  return kExitDone;
}

}  // namespace rowtide::cli
