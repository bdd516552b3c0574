// Addressing without a checkpoint: by a family's name, or from a model's config.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "table/model_family.h"

namespace rowtide::cli {

/// Whether a family hashes compressed ids, so that a token map belongs to it.
bool hashes_compressed_ids(std::string_view family);

/// The tables of the family `name`, as released, one for each layer that has one. `token_map` is what --token-map says,
/// empty for nothing; families that hash the tokenizer's own ids do not look at it. Throws a Failure: a name that is
/// not known (with the nearest one that is), no token map where one is needed, or one that is not the model's.
std::vector<AddressedTable> tables_of_family(const std::string& name, const std::string& token_map);

/// The tables that `text`, the content of the file `path` in Hugging Face's form, tells of; `token_map` as in
/// CheckpointOptions. Throws a Failure that names file and key.
std::vector<AddressedTable> tables_of_config(const std::string& path, std::string_view text,
                                             const std::string& token_map);

}  // namespace rowtide::cli
