// rowtide bench cache: what caches of several kinds and sizes would have served of a trace of tokens.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "cli/bench/bench.h"
#include "cli/bench/cache_policy.h"
#include "cli/bench/cache_trace.h"
#include "cli/generate/tokens.h"
#include "cli/input.h"
#include "cli/json_output.h"
#include "cli/model_config.h"
#include "cli/progress.h"
#include "cli/text_table.h"

namespace rowtide::cli {
namespace {

struct BenchCacheOptions {
  std::optional<std::string> path, family;  // one of them
  std::optional<std::string> token_map;
  std::optional<std::string> trace, text;  // one of them
  std::uint32_t row_bytes = 0;
  std::uint32_t chunk = 512;
  std::vector<std::string> policies;
  std::vector<std::uint64_t> memory_bytes;
  bool json = false;
};

bool read_options(const Arguments& arguments, BenchCacheOptions& options) {
  std::optional<std::string> policies, memory;
  ArgumentParser parser(
      "rowtide bench cache",
      "Says which share of the rows that a text asks for each kind of cache would have served from memory, by size.\n"
      "No row is read. Policies:\n"
      "  rowtide     the cache itself; takes the memory it is given\n"
      "  s3fifo      its algorithm as a model, bundle by bundle\n"
      "  lru         the bundles asked for last\n"
      "  static      the bundles asked for most in the first half of the trace, counted on the second\n"
      "  page_cache  the 4 KiB pages asked for last\n"
      "  optimum     what no cache of bundles can beat",
      "  rowtide bench cache models/tidepool.gguf --text models/heldout.txt --memory 1MiB,4MiB\n"
      "  rowtide bench cache --family qwen_ple --row-bytes 90 --trace .cache/corpora/code.i32\n"
      "  rowtide bench cache --family qwen_ple --row-bytes 90 --trace t.i32 --policy s3fifo:promote=2,optimum --json\n",
      options.json);
  parser.optional_path(options.path, "a checkpoint with a table");
  parser.optional("--family", "NAME", options.family,
                  "a family as released, as in `rowtide address`; needs --row-bytes");
  parser.optional("--token-map", "FILE", options.token_map,
                  "for an Engram family: the model's tokenizer.json, int32 compressed ids, or identity");
  parser.number("--row-bytes", options.row_bytes, 0, 65536, "bytes of a row, with --family; of IQ4_NL rows 90");
  parser.optional("--trace", "FILE", options.trace, "token ids, int32 little-endian; scripts/corpora.sh makes some");
  parser.optional("--text", "FILE", options.text, "text for the tokenizer that PATH brings; - is standard input");
  parser.optional("--policy", "LIST", policies,
                  "policies, separated by commas (all); s3fifo may have settings, as in s3fifo:small=0.1:promote=2");
  parser.optional("--memory", "LIST", memory, "sizes, separated by commas (64MiB,256MiB,1GiB,4GiB)");
  parser.number("--chunk", options.chunk, 1, 1 << 20, "tokens that are asked for together");
  parser.refused(
      "--tokenizer",
      "is not in this program, which reads no tokenizer.json: make a trace of your text with `scripts/corpora.sh "
      "trace OUT TEXT...` and give it as --trace; or give --text with a PATH, a GGUF file brings its tokenizer");
  if (!parser.parse(arguments)) return false;

  if (options.path.has_value() == options.family.has_value()) parser.fail("give one of PATH and --family");
  if (options.trace.has_value() == options.text.has_value()) parser.fail("give one of --trace and --text");
  if (options.text && !options.path) parser.fail("--text needs a PATH, whose tokenizer cuts it");
  if (options.family.has_value() != (options.row_bytes > 0)) parser.fail("--row-bytes goes with --family");
  options.policies = cache_policies();
  if (policies) {
    auto names = split_list(*policies);
    options.policies.assign(names.begin(), names.end());
    for (const std::string& name : options.policies) check_cache_policy(name);
  }
  options.memory_bytes = parse_sizes("--memory", memory.value_or("64MiB,256MiB,1GiB,4GiB"));
  return true;
}

/// The table whose rows are asked for. Of several, the first.
Table find_table(const BenchCacheOptions& options) {
  const std::string token_map = options.token_map.value_or("");
  Table table;
  if (options.family) {
    AddressedTable addressed = tables_of_family(*options.family, token_map).front();
    table.name = addressed.name;
    table.rows = addressed.addressing->row_count();
    table.row_bytes = options.row_bytes;
    table.components = {{"values", table.row_bytes, {{.path = {}, .rows = table.rows}}}};
    table.addressing = addressed.addressing;
  } else {
    table = tables_of_checkpoint(*options.path, token_map).front();
    check_addressed(*options.path, table.addressing);
  }
  check_token_map_belongs(options.token_map, *table.addressing);
  return table;
}

std::vector<std::int32_t> find_tokens(const BenchCacheOptions& options) {
  if (options.trace) return read_token_trace(*options.trace);
#ifdef ROWTIDE_HAS_LLAMA
  std::vector<std::int32_t> tokens = tokens_of(*options.path, read_utf8(*options.text));
  if (tokens.empty()) throw usage_failure("--text: the text is empty");
  return tokens;
#else
  throw usage_failure("--text: this program was built without llama.cpp; run `make build`, or give a --trace");
#endif
}

/// Hit shares: a line for each policy, a column for each size.
using Curves = std::vector<std::vector<double>>;

/// No policy does better with more than holds all that the trace asks for, and models take memory by the size they are
/// given.
std::uint64_t enough_for_all(const std::string& policy, const BundleTrace& trace, const Table& table) {
  constexpr std::uint64_t kPageBytes = 4096, kEntryBytes = 128, kAtLeast = 64 << 20;
  const std::uint64_t row_bytes = policy == "page_cache" ? 2 * (table.row_bytes + kPageBytes) : table.row_bytes;
  return kAtLeast + 2 * trace.distinct() * (trace.rows_per_bundle() * row_bytes + kEntryBytes);
}

Curves measure(const BenchCacheOptions& options, const BundleTrace& trace, const Table& table) {
  Progress progress("caches");
  Curves curves(options.policies.size());
  double steps = static_cast<double>(options.policies.size() * options.memory_bytes.size()), done = 0;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    for (std::uint64_t bytes : options.memory_bytes) {
      const std::uint64_t used = std::min(bytes, enough_for_all(options.policies[i], trace, table));
      auto policy = make_cache_policy(options.policies[i], {trace, table, used});
      curves[i].push_back(hit_share(trace, *policy));
      progress.update(++done / steps);
    }
  }
  return curves;
}

std::string short_size(std::uint64_t bytes) {
  if (bytes % (1 << 30) == 0) return fmt::format("{} GiB", bytes >> 30);
  if (bytes % (1 << 20) == 0) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} bytes", grouped(bytes));
}

void print(const BenchCacheOptions& options, const BundleTrace& trace, const Curves& curves) {
  fmt::print("{} lookups of {} rows in batches of {} tokens; {} distinct\n", grouped(trace.lookups()),
             trace.rows_per_bundle(), options.chunk, grouped(trace.distinct()));
  std::vector<std::vector<std::string>> lines = {{"hit share"}};
  for (std::uint64_t bytes : options.memory_bytes) lines.front().push_back(short_size(bytes));
  for (std::size_t i = 0; i < curves.size(); ++i) {
    auto& line = lines.emplace_back(1, options.policies[i]);
    for (double share : curves[i]) line.push_back(fmt::format("{:.4f}", share));
  }
  fmt::print("{}", columns(lines, 2));
}

Json to_json(const BenchCacheOptions& options, const Table& table, const BundleTrace& trace, const Curves& curves) {
  Json policies = Json::array();
  for (std::size_t i = 0; i < curves.size(); ++i) {
    Json points = Json::array();
    for (std::size_t j = 0; j < curves[i].size(); ++j) {
      points.push_back({{"memory_bytes", options.memory_bytes[j]}, {"hit_share", curves[i][j]}});
    }
    policies.push_back({{"name", options.policies[i]}, {"points", std::move(points)}});
  }
  return {{"trace", options.trace ? *options.trace : *options.text},
          {"table", table.name},
          {"row_bytes", table.row_bytes},
          {"chunk", options.chunk},
          {"lookups", trace.lookups()},
          {"rows_per_lookup", trace.rows_per_bundle()},
          {"distinct", trace.distinct()},
          {"policies", std::move(policies)}};
}

}  // namespace

ExitCode run_bench_cache(const Arguments& arguments) {
  BenchCacheOptions options;
  if (!read_options(arguments, options)) return kExitDone;
  Table table = find_table(options);
  BundleTrace trace(*table.addressing, find_tokens(options), options.chunk);
  Curves curves = measure(options, trace, table);
  if (options.json) {
    print_json(to_json(options, table, trace, curves));
  } else {
    print(options, trace, curves);
  }
  return kExitDone;
}

}  // namespace rowtide::cli
