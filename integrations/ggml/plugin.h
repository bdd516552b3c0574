// The ggml backend plug-in, seen by a program that links it in instead of loading it from a file.
#pragma once

#include <ggml-backend.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ggml/settings.h"
#include "rowtide/addressing.h"
#include "rowtide/store.h"

namespace rowtide::ggml {

/// The registration to hand to ggml_backend_register() before a model is loaded. One ACCEL device, which
/// claims GET_ROWS on n-gram tables and leaves everything else alone. The settings of the first call hold.
ggml_backend_reg_t registration(Settings settings);

/// One table that the plug-in serves in this process.
struct ServedTable {
  std::string name;          // of the tensor
  std::string source;        // path of the file, or "memory" for a table that is gathered from memory
  std::string method;        // Store::method(), or "gather in memory"
  std::optional<Mode> mode;  // Store::mode(); nothing for a table that is gathered from memory
  Counters counters;         // since its first gather
};

/// What the plug-in serves in this process now: a table is there from its first gather until the last
/// context that uses it is freed. Any thread.
std::vector<ServedTable> served_tables();

/// Why the last gather in this process failed, if one did: the host is only told that. Any thread.
std::optional<Error> last_failure();

/// Store::prefetch() of the tables called `name`, for a program that knows which rows it will ask for: at once where
/// one is served, and when it is first gathered from for those to come. Any thread.
void prefetch(const std::string& name, std::span<const RowId> ids);

}  // namespace rowtide::ggml
