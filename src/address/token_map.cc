#include "address/token_map.h"

#include "base/error.h"

namespace rowtide {

Result<void> check_token_map(const TokenMap& map, std::int64_t compressed_vocab_size) {
  if (!map) return {};
  std::int64_t count = 0;
  for (std::size_t id = 0; id < map->size(); ++id) {
    const std::int32_t compressed = (*map)[id];
    if (compressed < 0 || compressed > count) {
      return make_error(ErrorCode::kMalformed,
                        "the token map gives token {} the compressed id {}, but the next new one is {}: it is no "
                        "vocabulary compression",
                        id, compressed, count);
    }
    if (compressed == count) ++count;
  }
  if (count == compressed_vocab_size) return {};
  return make_error(ErrorCode::kMismatch,
                    "the token map has {} compressed ids, but the model's tables are hashed for {} "
                    "(engram_compressed_vocab_size): give the map, or the tokenizer.json, of this very model",
                    count, compressed_vocab_size);
}

}  // namespace rowtide
