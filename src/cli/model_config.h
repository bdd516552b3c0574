// Addressing from a model's config.json, without its checkpoint.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "table/model_family.h"

namespace rowtide::cli {

/// The tables of the family `name`, as released. Throws a Failure: a name that is not known (with the nearest one that
/// is), or one that this version does not serve.
std::vector<AddressedTable> tables_of_family(const std::string& name);

/// The tables that `text`, the content of the file `path` in Hugging Face's form, tells of; `token_map` as in
/// CheckpointOptions. Throws a Failure that names file and key.
std::vector<AddressedTable> tables_of_config(const std::string& path, std::string_view text,
                                             const std::string& token_map);

}  // namespace rowtide::cli
