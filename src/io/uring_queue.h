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

/// What the kernel says of io_uring for this process: each is 0 where it is allowed, else an errno.
struct UringRefusals {
  int ring = 0;    // making one
  int pinned = 0;  // registering a buffer of so many bytes with it; not asked where there is no ring
};

/// Makes a ring as a reader does, registers `buffer_bytes` with it, and takes both down. Reads nothing.
UringRefusals probe_uring(std::size_t buffer_bytes);

}  // namespace rowtide::io
