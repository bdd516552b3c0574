// Text to token ids by the tokenizer that a GGUF file brings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rowtide::cli {

/// Loads nothing of the model but its vocabulary. Throws a Failure. Call it once.
std::vector<std::int32_t> tokens_of(const std::string& model, const std::string& text);

}  // namespace rowtide::cli
