// ReadQueue over an io_uring of its own.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "io/block_source.h"

namespace rowtide::io {

/// `descriptors[i]` is the open file that requests name as file i. kResource or kIo when the kernel
/// refuses the ring.
Result<std::unique_ptr<ReadQueue>> open_uring_queue(const std::vector<int>& descriptors, std::uint32_t depth,
                                                    std::span<std::byte> buffer);

}  // namespace rowtide::io
