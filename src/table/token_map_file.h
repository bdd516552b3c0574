// The vocabulary compression that a file holds: a tokenizer.json, from which it is made, or the map itself as int32
// numbers, little-endian, by token id. A file *.json is always taken for the former.
#pragma once

#include <string>

#include "address/token_map.h"
#include "io/file.h"
#include "rowtide/result.h"
#include "table/model_family.h"

namespace rowtide {

inline constexpr std::string_view kIdentityMap = "identity";

/// The map in the file `path`, or the identity for kIdentityMap. Errors: as of opening the file; those of
/// read_tokenizer_pieces(); kMalformed for a file that is neither. Whether a map is a model's, its user checks.
Result<TokenMap> read_token_map(const std::string& path, const io::FileOpener& open);

/// For a model whose config.json is `config_path`: the map `given`, or if that is empty the one of the tokenizer.json
/// beside the configuration, or nothing where there is none.
TokenMapSource token_map_source(std::string given, std::string config_path, io::FileOpener open);

}  // namespace rowtide
