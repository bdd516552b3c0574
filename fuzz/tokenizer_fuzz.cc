// tokenizer.json from untrusted bytes, up to the compressed vocabulary. The input is the file.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "address/vocab_compression.h"
#include "checkpoint/tokenizer_json.h"

namespace {

using namespace rowtide;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  const auto file = io::memory_file("fuzz.json", {begin, begin + size});
  auto pieces = checkpoint::read_tokenizer_pieces(*file);
  if (!pieces) {
    require(!pieces.error().message.empty());
    return 0;
  }
  auto map = compress_vocabulary(*pieces);
  require(map.ok() && (*map)->size() == pieces->size());
  const std::int32_t last = (*map)->empty() ? -1 : *std::ranges::max_element(**map);
  require(check_token_map(*map, last + 1).ok());
  return 0;
}
