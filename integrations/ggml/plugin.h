// The ggml backend plug-in, seen by a program that links it in instead of loading it from a file.
#pragma once

#include <ggml-backend.h>

#include <string>
#include <vector>

#include "rowtide/store.h"

namespace rowtide::ggml {

/// The registration to hand to ggml_backend_register() before a model is loaded. One ACCEL device, which
/// claims GET_ROWS on n-gram tables and leaves everything else alone. nullptr, with a line of level error, when an
/// environment variable of the plug-in holds a value that cannot be used.
ggml_backend_reg_t registration();

/// One table that the plug-in serves in this process.
struct ServedTable {
  std::string name;    // of the tensor
  std::string source;  // path of the file, or "memory" for a table that is gathered from memory
  std::string method;  // Store::method(), or "gather in memory"
  Counters counters;   // since its first gather
};

/// What the plug-in serves in this process now: a table is there from its first gather until the last
/// context that uses it is freed. Any thread.
std::vector<ServedTable> served_tables();

}  // namespace rowtide::ggml
