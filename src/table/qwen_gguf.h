// The n-gram table of a Qwen3.8 model in GGUF form (architecture qwen4exp).
//
// The tensor per_layer_token_embd.weight [row width, rows] and the keys, each after "qwen4exp.":
//   ple.layers             the one decoder layer that reads it, 0-based (an array, as the format allows several)
//   ple.ngram_size         the highest order N; ple.heads_per_ngram heads for each of the orders 2..N
//   ple.eos_token_id       and ple.image_token_id, which may be missing
//   ple.layer_multipliers, ple.head_vocab_sizes, ple.head_offsets   the addressing constants
//   embedding_length_per_layer_input   the row width
//   vocab_size             may be missing: then the rows of token_embd.weight, or else tokenizer.ggml.tokens
// Neither seed nor base is stored: the released ones are tried (seed 1234, first table of the model), the base is the
// first head's size, and every constant that follows must equal the stored one.
#pragma once

#include <string_view>
#include <vector>

#include "checkpoint/gguf.h"
#include "rowtide/result.h"
#include "rowtide/table.h"

namespace rowtide {

inline constexpr std::string_view kQwenArchitecture = "qwen4exp";

/// The table of a checkpoint of that architecture; none if it has neither the keys nor the tensor.
/// kMalformed, kUnsupported (row format) or kMismatch (constants), naming file, tensor or key, index and value.
Result<std::vector<Table>> find_qwen_tables(const checkpoint::Gguf& gguf);

}  // namespace rowtide
