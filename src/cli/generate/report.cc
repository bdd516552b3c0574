#include "cli/generate/report.h"

#include <fmt/format.h>

#include "cli/text_table.h"

namespace rowtide::cli {
namespace {

constexpr double kNsPerSecond = 1e9;

Json store_json(const Counters& counters) {
  return {{"rows", counters.rows},
          {"bundles", counters.bundles},
          {"unique_rows", counters.unique_rows},
          {"hits", counters.hits},
          {"reads", counters.reads},
          {"bytes_read", counters.bytes_read},
          {"wait_seconds", static_cast<double>(counters.wait_ns) / kNsPerSecond},
          {"memory_bytes", counters.memory_bytes},
          {"budget_bytes", 0},  // nothing is kept: there is no cache yet
          {"mode", "disk"}};
}

std::string speed(std::size_t tokens, double seconds) {
  double rate = seconds > 0 ? static_cast<double>(tokens) / seconds : 0;
  return fmt::format("{} tokens in {:.3f} s, {:.1f} tokens/s", grouped(tokens), seconds, rate);
}

}  // namespace

Counters sum_of_counters(const std::vector<ggml::ServedTable>& tables) {
  Counters sum;
  for (const auto& table : tables) {
    const Counters& counters = table.counters;
    sum.rows += counters.rows;
    sum.unique_rows += counters.unique_rows;
    sum.bundles += counters.bundles;
    sum.hits += counters.hits;
    sum.reads += counters.reads;
    sum.bytes_read += counters.bytes_read;
    sum.wait_ns += counters.wait_ns;
    sum.memory_bytes += counters.memory_bytes;
  }
  return sum;
}

Json to_json(const GenerateReport& report) {
  const Generation& generation = report.generation;
  return {{"text", generation.text},
          {"tokens", generation.tokens},
          {"ended", generation.ended},
          {"logits_sha256", generation.logits_sha256},
          {"prompt_tokens", generation.prompt_tokens},
          {"prompt_seconds", generation.prompt_seconds},
          {"generated_tokens", generation.tokens.size()},
          {"generate_seconds", generation.generate_seconds},
          {"table_bytes", report.table_bytes},
          {"table_resident_bytes", report.table_resident_bytes ? Json(*report.table_resident_bytes) : Json(nullptr)},
          {"store", report.store ? store_json(*report.store) : Json(nullptr)}};
}

void print(const GenerateReport& report) {
  const Generation& generation = report.generation;
  std::vector<std::vector<std::string>> lines = {
      {"prompt", speed(generation.prompt_tokens, generation.prompt_seconds)},
      {"generation", speed(generation.tokens.size(), generation.generate_seconds)}};
  if (report.store) {
    const Counters& counters = *report.store;
    lines.push_back(
        {"rows asked", fmt::format("{}, {} unique", grouped(counters.rows), grouped(counters.unique_rows))});
    lines.push_back({"reads", fmt::format("{}, {}", grouped(counters.reads), size_text(counters.bytes_read))});
    lines.push_back(
        {"waiting for rows", fmt::format("{:.3f} s", static_cast<double>(counters.wait_ns) / kNsPerSecond)});
  }
  if (report.table_bytes > 0) {
    lines.push_back({"table on disk", size_text(report.table_bytes)});
    lines.push_back(
        {"of it in memory", report.table_resident_bytes ? size_text(*report.table_resident_bytes) : "not known"});
  }
  fmt::print(stderr, "\n{}", columns(lines, 2));
}

}  // namespace rowtide::cli
