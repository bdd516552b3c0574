// The per-layer embeddings of Gemma 3n and Gemma 4 in GGUF form (architectures gemma3n, gemma4): the tensor
// per_layer_token_embd.weight [layers * values a layer, vocabulary], a row for each token id.
#pragma once

#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"
#include "rowtide/result.h"
#include "rowtide/table.h"

namespace rowtide {

/// Whether models of that architecture may have such a table.
bool is_gemma_architecture(std::string_view architecture);

/// The table; none where there is no such tensor, and none, with a warning in the log, where its type is not served:
/// the engine reads it then.
Result<std::vector<Table>> find_gemma_tables(const checkpoint::Gguf& gguf);

}  // namespace rowtide
