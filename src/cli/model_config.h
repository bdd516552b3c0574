// Addressing from a model's config.json, without its checkpoint.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rowtide/addressing.h"

namespace rowtide::cli {

/// A table as far as its addressing is concerned.
struct AddressedTable {
  std::string name;
  std::uint32_t layer = 0;  // 0-based
  std::shared_ptr<const Addressing> addressing;
};

/// The tables of the family `name`, as released. Throws a Failure: a name that is not known (with the nearest one that
/// is), or one that this version does not serve.
std::vector<AddressedTable> tables_of_family(const std::string& name);

/// The tables that `text`, the content of the file `path` in Hugging Face's form, describes: one for each entry of
/// ple_layer_ids. Throws a Failure that names file and key.
std::vector<AddressedTable> tables_of_config(const std::string& path, std::string_view text);

}  // namespace rowtide::cli
