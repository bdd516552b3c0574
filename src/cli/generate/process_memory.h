// The memory that this process has to itself.
#pragma once

#include <cstdint>

namespace rowtide::cli {

/// Its anonymous and shared memory in RAM (RssAnon, RssShmem), so without the pages of files. 0 where the kernel does
/// not tell.
std::uint64_t private_bytes();

}  // namespace rowtide::cli
