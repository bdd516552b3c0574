#include "ggml/settings.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <array>
#include <cstdlib>

#include "rowtide/byte_size.h"

namespace rowtide::ggml {
namespace {

// Names that llama.cpp gives to n-gram tables: qwen4exp's, and Engram's in the open deepseek4 work.
constexpr std::array kKnownTables = {"per_layer_token_embd.weight", "blk.*.engram_embd.weight"};

// gemma3n and gemma4 call their per-layer embeddings per_layer_token_embd.weight too. One of their rows holds 256
// values for each of at least 26 layers; a row of an n-gram table belongs to one head and holds a few hundred.
constexpr long kNgramRowValuesMax = 1024;

Error refuse(const char* variable, const std::string& value, const char* what) {
  return {ErrorCode::kUsage, fmt::format("{} is '{}'; {}", variable, value, what)};
}

Result<void> read_store_options(StoreOptions& options) {
  if (const char* value = std::getenv("ROWTIDE_MEMORY")) {
    const auto bytes = parse_byte_size(value);
    if (!bytes || *bytes == 0)
      return refuse("ROWTIDE_MEMORY", value, "give a size such as 4GiB or 512MiB, or unset it");
    options.memory_bytes = *bytes;
  }
  if (const char* value = std::getenv("ROWTIDE_MODE")) {
    const auto mode = mode_named(value);
    if (!mode) return refuse("ROWTIDE_MODE", value, "set it to disk, cache, resident or auto, or unset it");
    options.mode = *mode;
  }
  return check_store_options(options);
}

}  // namespace

Result<Settings> read_settings() {
  Settings settings;
  if (const char* value = std::getenv("ROWTIDE_LOG")) {
    const auto level = log_level_named(value);
    if (!level) return refuse("ROWTIDE_LOG", value, "set it to error, warn, info or debug, or unset it");
    settings.log_level = *level;
  }
  if (const char* value = std::getenv("ROWTIDE_TABLES")) {
    if (*value == '\0')
      return refuse("ROWTIDE_TABLES", value, "give a name pattern such as 'blk.*.engram_embd.weight', or unset it");
    settings.table_pattern = value;
  }
  for (const char* variable : {"ROWTIDE_METRICS", "ROWTIDE_TRACE"}) {
    if (const char* value = std::getenv(variable)) {
      return refuse(variable, value, "this version has no such setting; unset it");
    }
  }
  if (auto read = read_store_options(settings.store); !read) return read.error();
  return settings;
}

Result<void> check_store_options(const StoreOptions& options) {
  if (options.memory_bytes != 0 && options.mode == Mode::kDisk) {
    return Error{ErrorCode::kUsage,
                 fmt::format("the mode disk keeps no row in memory, so a memory budget of {} would hold nothing: leave "
                             "out one of the two",
                             byte_size_text(options.memory_bytes))};
  }
  return check_options(options);
}

bool is_table(const Settings& settings, const char* name, long row_values) {
  if (!settings.table_pattern.empty()) return ::fnmatch(settings.table_pattern.c_str(), name, 0) == 0;
  if (row_values > kNgramRowValuesMax) return false;
  for (const char* pattern : kKnownTables) {
    if (::fnmatch(pattern, name, 0) == 0) return true;
  }
  return false;
}

}  // namespace rowtide::ggml
