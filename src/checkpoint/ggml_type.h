// The element types a GGUF tensor can have: number, name and block geometry (ggml 0.25 and 0.26).
#pragma once

#include <cstdint>
#include <string_view>

namespace rowtide::checkpoint {

struct GgmlType {
  std::uint32_t number;        // as stored
  std::string_view name;       // as ggml prints it
  std::uint32_t block_values;  // values encoded together; a row holds a whole number of blocks
  std::uint32_t block_bytes;
};

/// The type that `number` stands for; null for one that ggml never had, or has removed.
const GgmlType* find_ggml_type(std::uint32_t number);

}  // namespace rowtide::checkpoint
