// Where the tables come from that a command addresses: a checkpoint, a family's name, or a model's config.json.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "table/model_family.h"

namespace rowtide::cli {

/// The tables of the checkpoint `path`, at least one; `token_map` as in CheckpointOptions. Throws a Failure.
std::vector<Table> tables_of_checkpoint(const std::string& path, const std::string& token_map);

/// Throws a Failure where `addressing`, of a table of the model at `path`, is null: of families that hash compressed
/// ids, a model without tokenizer.json has tables without addressing.
void check_addressed(const std::string& path, const std::shared_ptr<const Addressing>& addressing);

/// Throws a usage Failure where a --token-map was given for a family that hashes the tokenizer's own ids.
void check_token_map_belongs(const std::optional<std::string>& token_map, const Addressing& addressing);

/// The tables of the family `name`, as released, one for each layer that has one. `token_map` is what --token-map says,
/// empty for nothing; families that hash the tokenizer's own ids do not look at it. Throws a Failure: a name that is
/// not known (with the nearest one that is), no token map where one is needed, or one that is not the model's.
std::vector<AddressedTable> tables_of_family(const std::string& name, const std::string& token_map);

/// The tables that `text`, the content of the file `path` in Hugging Face's form, tells of; `token_map` as in
/// CheckpointOptions. Throws a Failure that names file and key.
std::vector<AddressedTable> tables_of_config(const std::string& path, std::string_view text,
                                             const std::string& token_map);

}  // namespace rowtide::cli
