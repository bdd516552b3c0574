// The ggml backend plug-in, seen by a program that links it in instead of loading it from a file.
#pragma once

#include <ggml-backend.h>

#include <string>
#include <vector>

#include "rowtide/store.h"

namespace rowtide::ggml {

/// The registration to hand to ggml_backend_register() before a model is loaded. One ACCEL device, which
/// claims GET_ROWS on n-gram tables and leaves everything else alone.
ggml_backend_reg_t registration();

/// One table that the plug-in serves, or has served, in this process.
struct ServedTable {
  std::string name;    // of the tensor
  std::string source;  // path of the file, or "memory" for tables that lie in no file
  std::string method;  // Store::method(); for tables in memory "gather in memory"
  Counters counters;   // since the first gather
};

/// What the plug-in has served in this process so far; empty before the first gather. Any thread.
std::vector<ServedTable> served_tables();

}  // namespace rowtide::ggml
