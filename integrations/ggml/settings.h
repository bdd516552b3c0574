// What the environment tells the plug-in.
#pragma once

#include <string>

#include "rowtide/log.h"
#include "rowtide/result.h"
#include "rowtide/store.h"

namespace rowtide::ggml {

struct Settings {
  std::string table_pattern;             // ROWTIDE_TABLES: glob over tensor names; empty: the known n-gram tables
  LogLevel log_level = LogLevel::kInfo;  // ROWTIDE_LOG
  StoreOptions store;                    // ROWTIDE_MEMORY, ROWTIDE_MODE
};

/// Reads the environment. A value that cannot be used is an error, never a silent default.
Result<Settings> read_settings();

/// kUsage for a budget that no table could be served within, or that the mode has no use for.
Result<void> check_store_options(const StoreOptions& options);

/// Whether a tensor called `name` with rows of `row_values` numbers is an n-gram table to serve.
bool is_table(const Settings& settings, const char* name, long row_values);

}  // namespace rowtide::ggml
