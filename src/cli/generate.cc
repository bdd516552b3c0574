// rowtide generate: the command's options. What it does with them is in generate/, which needs llama.cpp.

#include <fmt/format.h>

#include <limits>
#include <optional>

#include "cli/command.h"
#include "cli/generate/generate.h"
#include "cli/input.h"
#include "rowtide/store.h"

namespace rowtide::cli {
namespace {

bool read_options(const Arguments& arguments, GenerateOptions& options) {
  std::optional<std::string> prompt, file;
  std::string mode;
  bool no_store = false;
  ArgumentParser parser(
      "rowtide generate",
      "Continues a prompt with the embedded llama.cpp. The model's table is never loaded: its rows are read from the\n"
      "file as they are needed. Afterwards a table on standard error says how fast, and with how many reads.",
      "  rowtide generate -m models/tidepool.gguf -p 'The server process reads' -n 56\n"
      "  rowtide generate -m models/tidepool.gguf -f prompt.txt --temp 0.7 --seed 7 --memory 64MiB\n"
      "  rowtide generate -m models/tidepool.gguf -p 'In those days' --no-store --json\n",
      options.json);
  parser.required("-m,--model", "GGUF", options.model, "the model (required); of a split set the first file");
  parser.optional("-p,--prompt", "PROMPT", prompt, "the text to continue");
  parser.optional("-f,--file", "FILE", file, "the same from a file, as it is; - is standard input");
  parser.number("-n", options.tokens, 1, std::numeric_limits<std::int32_t>::max(), "tokens to generate at most");
  parser.real("--temp", options.temperature, 100, "temperature; 0 (default) takes the likeliest token");
  parser.number("--seed", options.seed, 0, std::numeric_limits<std::uint32_t>::max(),
                "seed of the draws at a temperature above 0");
  parser.number("--threads", options.threads, 1, 512, "threads that compute");
  parser.number("--ubatch", options.ubatch, 1, 65536, "prompt tokens that are computed together");
  parser.byte_size("--memory", options.memory_bytes, "memory for the table's rows, all buffers included");
  parser.choice("--mode", {"disk", "cache", "resident", "auto"}, mode,
                "keep no row in memory, those asked for (default), all, or all if they fit");
  parser.flag("--no-store", no_store, "the same libraries without Rowtide: llama.cpp reads the table itself");
  if (!parser.parse(arguments)) return false;

  if (no_store && options.memory_bytes != 0) parser.fail("--memory is the store's, which --no-store leaves out");
  if (no_store && !mode.empty()) parser.fail("--mode is the store's, which --no-store leaves out");
  options.mode = mode_named(mode);
  if (prompt.has_value() == file.has_value()) parser.fail("give one of -p and -f");
  options.prompt = prompt ? *prompt : read_utf8(*file);
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
