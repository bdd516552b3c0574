#include "cli/generate/report.h"

#include <fmt/format.h>

#include "cli/text_table.h"
#include "rowtide/byte_size.h"

namespace rowtide::cli {
namespace {

constexpr double kNsPerSecond = 1e9;

Json store_json(const StoreReport& store) {
  const Counters& counters = store.counters;
  return {{"rows", counters.rows},
          {"bundles", counters.bundles},
          {"unique_rows", counters.unique_rows},
          {"hits", counters.hits},
          {"reads", counters.reads},
          {"bytes_read", counters.bytes_read},
          {"wait_seconds", static_cast<double>(counters.wait_ns) / kNsPerSecond},
          {"prefetched_rows", counters.prefetched_rows},
          {"prefetched_rows_used", counters.prefetched_rows_used},
          {"prefetch_reads", counters.prefetch_reads},
          {"prefetch_bytes_read", counters.prefetch_bytes_read},
          {"memory_bytes", counters.memory_bytes},
          {"cache_bytes", counters.cache_bytes},
          {"index_bytes", counters.index_bytes},
          {"resident_bytes", counters.resident_bytes},
          {"buffer_bytes", counters.buffer_bytes},
          {"budget_bytes", counters.budget_bytes},
          {"mode", store.mode ? Json(mode_name(*store.mode)) : Json(nullptr)}};
}

Json ubatches_json(const std::vector<UbatchRows>& ubatches) {
  Json list = Json::array();
  for (const UbatchRows& ubatch : ubatches) {
    list.push_back({{"tokens", ubatch.tokens}, {"rows", ubatch.rows}, {"hits", ubatch.hits}});
  }
  return list;
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
    sum.prefetched_rows += counters.prefetched_rows;
    sum.prefetched_rows_used += counters.prefetched_rows_used;
    sum.prefetch_reads += counters.prefetch_reads;
    sum.prefetch_bytes_read += counters.prefetch_bytes_read;
    if (!table.mode) continue;
    sum.memory_bytes = counters.memory_bytes;  // what all stores hold together, each of them says
    sum.cache_bytes = counters.cache_bytes;
    sum.index_bytes = counters.index_bytes;
    sum.resident_bytes = counters.resident_bytes;
    sum.buffer_bytes = counters.buffer_bytes;
    sum.budget_bytes = counters.budget_bytes;
  }
  return sum;
}

StoreReport store_report(const std::vector<ggml::ServedTable>& tables) {
  StoreReport report{sum_of_counters(tables), {}};
  for (const auto& table : tables) {
    if (table.mode) report.mode = table.mode;
  }
  return report;
}

Json to_json(const GenerateReport& report) {
  const Generation& generation = report.generation;
  return {{"text", generation.text},
          {"tokens", generation.tokens},
          {"ended", generation.ended},
          {"logits_sha256", generation.logits_sha256},
          {"prompt_tokens", generation.prompt_tokens},
          {"prompt_seconds", generation.prompt_seconds},
          {"prompt_ubatches", ubatches_json(report.prompt_ubatches)},
          {"generated_tokens", generation.tokens.size()},
          {"generate_seconds", generation.generate_seconds},
          {"private_bytes", report.private_bytes},
          {"table_bytes", report.table_bytes},
          {"table_resident_bytes", report.table_resident_bytes ? Json(*report.table_resident_bytes) : Json(nullptr)},
          {"store", report.store ? store_json(*report.store) : Json(nullptr)}};
}

namespace {

void print_store(const StoreReport& store, std::vector<std::vector<std::string>>& lines) {
  const Counters& counters = store.counters;
  lines.push_back({"rows asked", fmt::format("{}, {} from memory, {} of them fetched ahead", grouped(counters.rows),
                                             grouped(counters.hits), grouped(counters.prefetched_rows_used))});
  lines.push_back({"reads", fmt::format("{}, {}", grouped(counters.reads + counters.prefetch_reads),
                                        size_text(counters.bytes_read + counters.prefetch_bytes_read))});
  lines.push_back({"waiting for rows", fmt::format("{:.3f} s", static_cast<double>(counters.wait_ns) / kNsPerSecond)});
  if (!store.mode) return;
  lines.push_back({"store's memory", fmt::format("{} of {}, mode {}", byte_size_text(counters.memory_bytes),
                                                 byte_size_text(counters.budget_bytes), mode_name(*store.mode))});
}

}  // namespace

void print(const GenerateReport& report) {
  const Generation& generation = report.generation;
  std::vector<std::vector<std::string>> lines = {
      {"prompt", speed(generation.prompt_tokens, generation.prompt_seconds)},
      {"generation", speed(generation.tokens.size(), generation.generate_seconds)}};
  if (report.store) {
    print_store(*report.store, lines);
  }
  if (report.table_bytes > 0) {
    lines.push_back({"table on disk", size_text(report.table_bytes)});
    lines.push_back(
        {"of it in memory", report.table_resident_bytes ? size_text(*report.table_resident_bytes) : "not known"});
  }
  fmt::print(stderr, "\n{}", columns(lines, 2));
}

}  // namespace rowtide::cli
