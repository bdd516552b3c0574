// The gather of a cold prefill in llama.cpp, stock against the plug-in: the time of the one GET_ROWS node on the n-gram
// table, taken for both in the same way by an evaluation callback that has the node computed alone.
//
// Every measurement is a process of its own (this program again, as --child), on a file that was evicted and found
// cold. Stock and plug-in take turns. Both must give the same logits.
#include <dlfcn.h>
#include <ggml-backend.h>
#include <llama.h>
#include <sys/resource.h>
#include <CLI/CLI.hpp>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/sha256.h"
#include "ggml/plugin.h"
#include "io/page_cache.h"
#include "rowtide/checkpoint.h"
#include "samples.h"

namespace rowtide::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr const char* kTable = "per_layer_token_embd.weight";

struct Options {
  std::string model, text = ROWTIDE_SOURCE_DIR "/models/heldout.txt", child;
  std::uint32_t tokens = 4000, ubatch = 512;
  int repeat = 5;
  bool as_json = false;
};

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

[[noreturn]] void fail(const std::string& message) {
  fmt::print(stderr, "gather_bench: {}\n", message);
  std::exit(4);
}

/// Times the gather of one graph at a time: every node up to it is computed alone, the rest as always.
class GatherTimer {
 public:
  void next_graph() { passed_ = false; }
  double total_seconds() const { return total_seconds_; }
  std::uint64_t rows() const { return rows_; }
  Clock::time_point first_end() const { return first_end_; }

  static bool on_node(ggml_tensor* node, bool asks, void* self) {
    return static_cast<GatherTimer*>(self)->on_node(node, asks);
  }

 private:
  bool on_node(const ggml_tensor* node, bool asks) {
    const bool is_gather = node->op == GGML_OP_GET_ROWS && std::string_view(node->src[0]->name) == kTable;
    if (asks) {
      if (is_gather) begin_ = Clock::now();
      return !passed_;
    }
    if (is_gather) {
      const auto end = Clock::now();
      if (rows_ == 0) first_end_ = end;
      total_seconds_ += seconds(end - begin_);
      rows_ += static_cast<std::uint64_t>(node->ne[1]);
      passed_ = true;
    }
    return true;
  }

  bool passed_ = false;
  double total_seconds_ = 0;
  std::uint64_t rows_ = 0;
  Clock::time_point begin_, first_end_;
};

/// The number behind `name:` in a file of /proc/self, in its own unit.
std::uint64_t proc_number(const char* file, std::string_view name) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(name)) return std::stoull(line.substr(name.size() + 1));
  }
  fail(fmt::format("{}: has no {}", file, name));
}

/// Loads llama.cpp's CPU back end from beside its library, after the plug-in where that is to serve.
void start_llama(bool with_plugin) {
  llama_log_set(
      [](ggml_log_level level, const char* text, void*) {
        if (level == GGML_LOG_LEVEL_ERROR) std::fputs(text, stderr);
      },
      nullptr);
  unsetenv("GGML_BACKEND_PATH");
  if (with_plugin) ggml_backend_register(ggml::registration());
  Dl_info library{};
  if (dladdr(reinterpret_cast<void*>(&ggml_backend_load_all), &library) == 0) fail("where is libggml?");
  ggml_backend_load_all_from_path(std::filesystem::path(library.dli_fname).parent_path().c_str());
  llama_backend_init();
}

llama_model* load(const std::string& path) {
  ggml_backend_dev_t no_devices[] = {nullptr};
  llama_model_params params = llama_model_default_params();
  params.devices = no_devices;
  params.lazy_mode = LLAMA_LAZY_MODE_ON;
  llama_model* const model = llama_model_load_from_file(path.c_str(), params);
  if (model == nullptr) fail(fmt::format("{}: llama.cpp cannot load it", path));
  return model;
}

llama_context* new_context(llama_model* model, const Options& options, GatherTimer& timer) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = options.tokens;
  params.n_batch = params.n_ubatch = options.ubatch;
  params.n_threads = params.n_threads_batch = 1;
  params.cb_eval = GatherTimer::on_node;
  params.cb_eval_user_data = &timer;
  llama_context* const context = llama_init_from_model(model, params);
  if (context == nullptr) fail("llama.cpp cannot make a context");
  return context;
}

std::vector<llama_token> tokenize(const llama_model* model, const Options& options) {
  constexpr std::size_t kBytesPerToken = 8;  // more than text needs; the rest of a long text is not looked at
  std::ifstream stream(options.text, std::ios::binary);
  std::string text(kBytesPerToken * options.tokens, '\0');
  text.resize(static_cast<std::size_t>(stream.read(text.data(), static_cast<std::streamsize>(text.size())).gcount()));
  std::vector<llama_token> tokens(text.size());
  const auto count = llama_tokenize(llama_model_get_vocab(model), text.data(), static_cast<std::int32_t>(text.size()),
                                    tokens.data(), static_cast<std::int32_t>(tokens.size()), false, false);
  if (count < static_cast<std::int32_t>(options.tokens)) {
    fail(fmt::format("{}: gives {} tokens, not {}", options.text, count, options.tokens));
  }
  tokens.resize(options.tokens);
  return tokens;
}

/// Reads the tokens ubatch by ubatch; the digest of the logits after each.
std::string prefill(llama_context* context, std::vector<llama_token> tokens, std::uint32_t ubatch, GatherTimer& timer) {
  const auto vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(llama_get_model(context)));
  Sha256 digest;
  for (std::size_t at = 0; at < tokens.size(); at += ubatch) {
    timer.next_graph();
    const auto count = std::min<std::size_t>(ubatch, tokens.size() - at);
    if (llama_decode(context, llama_batch_get_one(&tokens[at], static_cast<std::int32_t>(count))) != 0) {
      fail(fmt::format("computing tokens {} to {} failed", at, at + count - 1));
    }
    const std::span<const float> logits(llama_get_logits_ith(context, -1), static_cast<std::size_t>(vocabulary));
    for (const float logit : logits) {
      if (!std::isfinite(logit)) fail(fmt::format("a logit after token {} is not finite", at + count - 1));
    }
    digest.update(std::as_bytes(logits));
  }
  return digest.finish_hex();
}

json table_counters() {
  json counters = json::array();
  for (const auto& table : ggml::served_tables()) {
    counters.push_back({{"source", table.source},
                        {"method", table.method},
                        {"rows", table.counters.rows},
                        {"unique_rows", table.counters.unique_rows},
                        {"reads", table.counters.reads},
                        {"bytes_read", table.counters.bytes_read},
                        {"memory_bytes", table.counters.memory_bytes}});
  }
  return counters;
}

/// One measurement, in a process of its own: a JSON document on standard output.
int measure(const Options& options) {
  start_llama(options.child == "rowtide");
  GatherTimer timer;
  const auto opened = Clock::now();
  llama_model* const model = load(options.model);
  const auto loaded = Clock::now();
  llama_context* const context = new_context(model, options, timer);
  const auto tokens = tokenize(model, options);
  const auto begun = Clock::now();
  const auto digest = prefill(context, tokens, options.ubatch, timer);
  const auto ended = Clock::now();
  if (timer.rows() == 0) fail(fmt::format("the graph has no gather of {}", kTable));
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const json report{{"gather_seconds", timer.total_seconds()},
                    {"rows", timer.rows()},
                    {"load_seconds", seconds(loaded - opened)},
                    {"first_row_seconds", seconds(timer.first_end() - opened)},
                    {"prefill_seconds", seconds(ended - begun)},
                    {"logits_sha256", digest},
                    {"major_faults", usage.ru_majflt},
                    {"peak_rss_bytes", 1024 * proc_number("/proc/self/status", "VmHWM")},
                    {"private_bytes", 1024 * proc_number("/proc/self/status", "RssAnon")},
                    {"bytes_written", proc_number("/proc/self/io", "write_bytes")},
                    {"tables", table_counters()}};
  std::cout << report.dump() << '\n';
  llama_free(context);
  llama_model_free(model);
  return 0;
}

/// Runs this program as a child and adds what it says to what the page cache held before and after.
json run_child(const Options& options, const std::string& method, std::uint64_t table_offset) {
  const auto share = io::make_cold(options.model);
  if (!share) fail(share.error().message);
  const std::string command = fmt::format("'{}' '{}' --text '{}' --tokens {} --ubatch {} --child {}",
                                          std::filesystem::read_symlink("/proc/self/exe").string(), options.model,
                                          options.text, options.tokens, options.ubatch, method);
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) fail("cannot start a child");
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
  if (pclose(pipe) != 0) fail(fmt::format("the child `{}` failed", command));
  json report = json::parse(output);
  const auto cached = io::resident_bytes(options.model, table_offset);
  if (!cached) fail(cached.error().message);
  report["method"] = method;
  report["resident_share_before"] = *share;
  report["table_page_cache_bytes_after"] = *cached;
  return report;
}

void print_run(const json& run) {
  fmt::print(stderr,
             "{:>8}: gather {:6.3f} s, {:5.1f} us a row, {:6} major faults, first row after {:.3f} s, peak RSS "
             "{} MiB, resident before {:.2f} %\n",
             run["method"].get<std::string>(), run["gather_seconds"].get<double>(),
             1e6 * run["gather_seconds"].get<double>() / run["rows"].get<double>(), run["major_faults"].get<long>(),
             run["first_row_seconds"].get<double>(), run["peak_rss_bytes"].get<std::uint64_t>() >> 20,
             100 * run["resident_share_before"].get<double>());
}

json summary(const json& runs, const std::string& method, std::uint64_t dense_bytes) {
  Samples gather, load, first_row, prefill, beside;
  std::uint64_t written = 0;
  for (const auto& run : runs) {
    if (run["method"] != method) continue;
    gather.add(run["gather_seconds"]);
    load.add(run["load_seconds"]);
    first_row.add(run["first_row_seconds"]);
    prefill.add(run["prefill_seconds"]);
    beside.add(run["peak_rss_bytes"].get<double>() - static_cast<double>(dense_bytes));
    written = std::max(written, run["bytes_written"].get<std::uint64_t>());
  }
  return {{"gather_seconds", gather.json()},
          {"load_seconds", load.json()},
          {"first_row_seconds", first_row.json()},
          {"prefill_seconds", prefill.json()},
          {"peak_rss_beside_weights_bytes", beside.json()},
          {"bytes_written", written}};
}

int compare(const Options& options) {
  const auto checkpoint = Checkpoint::open(options.model);
  if (!checkpoint) fail(checkpoint.error().message);
  if (checkpoint->tables().empty()) fail(fmt::format("{}: has no n-gram table", options.model));
  const Extent& extent = checkpoint->tables().front().extents.front();
  const double load = load_average();
  json runs = json::array();
  for (int i = 0; i < options.repeat; ++i) {
    for (const char* method : {"stock", "rowtide"}) {
      runs.push_back(run_child(options, method, extent.offset));
      print_run(runs.back());
    }
  }
  bool same = true;
  for (const auto& run : runs) same = same && run["logits_sha256"] == runs[0]["logits_sha256"];
  json report{{"model", options.model},
              {"table_rows", extent.rows},
              {"weights_bytes", checkpoint->bytes_rest()},
              {"tokens", options.tokens},
              {"ubatch", options.ubatch},
              {"repeat", options.repeat},
              {"state", "cold"},
              {"load_average_before", load},
              {"stock", summary(runs, "stock", checkpoint->bytes_rest())},
              {"rowtide", summary(runs, "rowtide", checkpoint->bytes_rest())},
              {"same_logits", same}};
  const double ratio = report["rowtide"]["gather_seconds"]["median"].get<double>() /
                       report["stock"]["gather_seconds"]["median"].get<double>();
  report["gather_ratio"] = ratio;
  report["runs"] = std::move(runs);
  if (options.as_json) {
    std::cout << report.dump(2) << '\n';
  } else {
    for (const char* method : {"stock", "rowtide"}) {
      const auto& gather = report[method]["gather_seconds"];
      fmt::print("{:>8}: gather median {:.3f} s ({:.3f} to {:.3f})\n", method, gather["median"].get<double>(),
                 gather["least"].get<double>(), gather["most"].get<double>());
    }
    fmt::print("ratio {:.3f}; logits {}; load average before {:.1f}\n", ratio, same ? "equal" : "DIFFER", load);
  }
  return same ? 0 : 1;
}

}  // namespace
}  // namespace rowtide::bench

int main(int argc, char** argv) {
  CLI::App app{"The gather of a cold prefill in llama.cpp, stock against the plug-in."};
  rowtide::bench::Options options;
  app.add_option("MODEL", options.model, "a qwen4exp GGUF file, for instance one that make_table wrote")->required();
  app.add_option("--text", options.text, "the text to read");
  app.add_option("--tokens", options.tokens, "how many of its tokens")->check(CLI::Range(1, 1'000'000));
  app.add_option("--ubatch", options.ubatch, "tokens of one graph")->check(CLI::Range(1, 8192));
  app.add_option("--repeat", options.repeat, "measurements of each kind")->check(CLI::Range(1, 1000));
  app.add_flag("--json", options.as_json, "one JSON document on standard output");
  app.add_option("--child", options.child, "one measurement of this kind, for the program's own use")
      ->check(CLI::IsMember({"stock", "rowtide"}))
      ->group("");
  CLI11_PARSE(app, argc, argv);
  return options.child.empty() ? rowtide::bench::compare(options) : rowtide::bench::measure(options);
}
