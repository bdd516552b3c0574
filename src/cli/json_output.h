// JSON on standard output. Keys keep the order in which they were put in.
#pragma once

#include <nlohmann/json.hpp>

namespace rowtide::cli {

using Json = nlohmann::ordered_json;

/// Prints one document and a newline. Bytes that are no UTF-8 become U+FFFD.
void print_json(const Json& document);

}  // namespace rowtide::cli
