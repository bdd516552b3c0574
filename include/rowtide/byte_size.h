// Amounts of memory as people write them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "rowtide/result.h"

namespace rowtide {

/// "4GiB", "4G", "512 MiB", "1.5g", "4294967296": a number and a unit in either case. B or none: bytes;
/// K, M, G, T and KiB, MiB, GiB, TiB: powers of 1024; KB, MB, GB, TB: powers of 1000. A fraction may have
/// six digits; what it leaves of a byte is dropped. kUsage, with a sentence that shows the text, for
/// anything else, a sign or more than 64 bits included.
Result<std::uint64_t> parse_byte_size(std::string_view text);

/// "26.822 GiB", "22.4 MiB", "61440 bytes".
std::string byte_size_text(std::uint64_t bytes);

}  // namespace rowtide
