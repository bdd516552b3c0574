// rowtide generate: the command's options. What it does with them is in generate/, which needs llama.cpp.

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cli/command.h"
#include "cli/generate/generate.h"
#include "cli/input.h"

namespace rowtide::cli {
namespace {

constexpr std::string_view kComesWithCache =
    "comes with the cache of rows, which this version does not have: the table stays on disk and no row is kept";

constexpr std::array kCacheOptions = {"--memory", "--mode"};

void refuse_cache_settings(const CLI::App& app) {
  for (const char* option : kCacheOptions) {
    if (app.count(option) > 0) throw usage_failure("{} {}; leave it out", option, kComesWithCache);
  }
  for (const char* variable : {"ROWTIDE_MEMORY", "ROWTIDE_MODE"}) {
    if (std::getenv(variable) != nullptr) throw usage_failure("{} {}; unset it", variable, kComesWithCache);
  }
}

std::string read_prompt(const CLI::Option* prompt, const CLI::Option* file) {
  if ((prompt->count() > 0) + (file->count() > 0) != 1)
    throw usage_failure("give one of -p and -f; see rowtide generate --help");
  return prompt->count() > 0 ? prompt->as<std::string>() : read_text(file->as<std::string>());
}

bool read_options(const Arguments& arguments, GenerateOptions& options) {
  constexpr auto kMost = std::numeric_limits<std::int32_t>::max();
  bool no_store = false;
  CLI::App app(
      "Continues a prompt with the embedded llama.cpp. The model's table is never loaded: its rows are read from the\n"
      "file as they are needed. Afterwards a table on standard error says how fast, and with how many reads.",
      "rowtide generate");
  app.add_option("-m,--model", options.model, "the model (required); of a split set the first file")
      ->required()
      ->option_text("GGUF");
  auto* prompt = app.add_option("-p,--prompt", "the text to continue")->option_text("PROMPT");
  auto* file = app.add_option("-f,--file", "the same from a file, as it is; - is standard input")->option_text("FILE");
  app.add_option("-n", options.tokens, "tokens to generate at most (128)")
      ->check(CLI::Range(1, kMost))
      ->option_text("N");
  app.add_option("--temp", options.temperature, "temperature; 0 (default) takes the likeliest token")
      ->check(CLI::Range(0.0, 100.0))
      ->option_text("T");
  app.add_option("--seed", options.seed, "seed of the draws at a temperature above 0 (0)")->option_text("S");
  app.add_option("--threads", options.threads, "threads that compute (1)")->check(CLI::Range(1, 512))->option_text("N");
  app.add_option("--ubatch", options.ubatch, "prompt tokens that are computed together (512)")
      ->check(CLI::Range(1, 65536))
      ->option_text("N");
  app.add_flag("--no-store", no_store, "the same libraries without Rowtide: llama.cpp reads the table itself");
  for (const char* option : kCacheOptions) app.add_option(option)->group("");  // hidden: known only to be refused
  add_json_flag(app, options.json);
  app.footer(
      help_footer("  rowtide generate -m models/tidepool.gguf -p 'The server process reads' -n 56\n"
                  "  rowtide generate -m models/tidepool.gguf -f prompt.txt --temp 0.7 --seed 7\n"
                  "  rowtide generate -m models/tidepool.gguf -p 'In those days' --no-store --json\n"));
  if (!parse(app, arguments)) return false;
  refuse_cache_settings(app);
  if (std::isnan(options.temperature)) throw usage_failure("--temp is not a number");
  options.prompt = read_prompt(prompt, file);
  if (options.prompt.empty()) throw usage_failure("the prompt is empty");
  options.with_store = !no_store;
  return true;
}

}  // namespace

ExitCode run_generate(const Arguments& arguments) {
  GenerateOptions options;
  if (!read_options(arguments, options)) return kExitDone;
#ifdef ROWTIDE_HAS_LLAMA
  return generate(options);
#else
  throw usage_failure("rowtide generate: this program was built without llama.cpp; run `make build`, which sets it up");
#endif
}

}  // namespace rowtide::cli
