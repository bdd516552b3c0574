// GET_ROWS on a table, for one ggml backend instance, that is one context.
#pragma once

#include <ggml.h>

#include <memory>
#include <vector>

#include "ggml/serving.h"

namespace rowtide::ggml {

class Gatherer {
 public:
  /// Computes `node`, a GET_ROWS that supports_op claimed: rows of node.src[0] named by node.src[1], as f32. From one
  /// thread at a time. Errors: row ids outside the table, I/O.
  Result<void> gather(const ggml_tensor& node);

 private:
  /// A table as this context sees it. A context's model outlives it, so what was found once holds.
  struct Bound {
    const void* data;
    std::shared_ptr<Serving> serving;
    std::unique_ptr<Reader> reader;  // empty: gathered from memory
  };

  Result<Bound*> bind(const ggml_tensor& table);

  std::vector<Bound> bound_;
  std::vector<RowId> ids_;
};

}  // namespace rowtide::ggml
