// The tables that this process serves to ggml: one Serving a table, shared by all contexts that use it, and the sign
// by which another process can see them.
#pragma once

#include <ggml.h>

#include <atomic>
#include <memory>
#include <string>

#include "ggml/plugin.h"
#include "rowtide/store.h"

namespace rowtide::ggml {

/// A table and where its rows come from.
struct Serving {
  std::string name;
  std::string source;
  std::string method;
  std::shared_ptr<Store> store;  // empty: gathered from memory
  std::atomic<std::uint64_t> memory_rows{0}, memory_batches{0};

  ServedTable snapshot() const;
};

/// The row format of a ggml type, if it is one that rows are served in.
std::optional<RowFormat> row_format_of(ggml_type type);

/// The serving of the table `tensor`, which must have its data: made, logged and shown by the sign when it is the
/// first, shared otherwise. Errors: those of Store::open.
Result<std::shared_ptr<Serving>> serving_of(const ggml_tensor& tensor);

/// How tables that are served from now on keep their rows.
void serve_with(const StoreOptions& options);

/// Puts up the sign: a memory file named "rowtide-status" among the process's descriptors (/proc/PID/fd), whose content
/// is a JSON document with the tables served. A plug-in that the host refused leaves none.
void put_up_sign();

}  // namespace rowtide::ggml
