#include "table/token_map_file.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "address/vocab_compression.h"
#include "base/error.h"
#include "checkpoint/lfs_pointer.h"
#include "checkpoint/tokenizer_json.h"

namespace rowtide {
namespace {

bool begins_as_json(const io::File& file) {
  std::array<std::byte, 64> start{};
  const std::size_t bytes = std::min<std::uint64_t>(file.bytes(), start.size());
  if (!file.read(0, std::span(start).first(bytes))) return false;
  for (const std::byte byte : start) {
    const auto character = std::to_integer<char>(byte);
    if (character != ' ' && character != '\t' && character != '\n' && character != '\r') return character == '{';
  }
  return false;
}

Result<TokenMap> read_numbers(const io::File& file) {
  if (auto itself = checkpoint::refuse_lfs_pointer(file); !itself) return itself.error();
  const std::uint64_t count = file.bytes() / sizeof(std::int32_t);
  if (count == 0 || file.bytes() % sizeof(std::int32_t) != 0 || count > checkpoint::kTokenizerIdsMax) {
    return make_error(ErrorCode::kMalformed,
                      "{}: is no token map; give a tokenizer.json, or at most {} int32 numbers, little-endian",
                      file.path(), checkpoint::kTokenizerIdsMax);
  }
  auto map = std::make_shared<std::vector<std::int32_t>>(count);
  if (auto read = file.read(0, std::as_writable_bytes(std::span(*map))); !read) return read.error();
  return TokenMap(std::move(map));
}

}  // namespace

Result<TokenMap> read_token_map(const std::string& path, const io::FileOpener& open) {
  if (path == kIdentityMap) return TokenMap();
  auto file = open(path);
  if (!file) return file.error();
  if (!path.ends_with(".json") && !begins_as_json(**file)) return read_numbers(**file);
  auto pieces = checkpoint::read_tokenizer_pieces(**file);
  if (!pieces) return pieces.error();
  return compress_vocabulary(*pieces);
}

TokenMapSource token_map_source(std::string given, std::string config_path, io::FileOpener open) {
  return [given = std::move(given), config_path = std::move(config_path),
          open = std::move(open)]() -> Result<std::optional<TokenMap>> {
    const bool own = given.empty();
    const std::string folder = config_path.substr(0, config_path.rfind('/') + 1);
    auto map = read_token_map(own ? folder + "tokenizer.json" : given, open);
    if (map) return std::optional<TokenMap>(*std::move(map));
    if (own && map.error().code == ErrorCode::kNotFound) return std::optional<TokenMap>();
    return map.error();
  };
}

}  // namespace rowtide
