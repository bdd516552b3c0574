// Block reads: many aligned reads in flight at once. This is all the store knows of the disk.
//
// A BlockSource is a set of files opened one way (io_uring or pread pool, direct or buffered). Each
// Reader owns one ReadQueue of it. Other implementations of the two interfaces inject faults
// (tests/fault) or simulate a device (bench).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/in_flight_limit.h"
#include "rowtide/result.h"

namespace rowtide::io {

struct ReadRequest {
  std::uint32_t file = 0;    // index into the source's files
  std::uint32_t bytes = 0;   // multiple of block_bytes()
  std::uint64_t offset = 0;  // multiple of block_bytes()
  std::byte* into = nullptr; // aligned to block_bytes()
  std::uint64_t tag = 0;     // given back with the completion
};

struct Completion {
  std::uint64_t tag = 0;
  std::int32_t result = 0;  // bytes read (short at the end of the file), or -errno
};

/// One thread's queue. Reads complete in any order.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;  // waits for reads still in flight
  /// Hands all of `requests` to the device, at most the queue's depth in flight together (asserted).
  /// One system call, however many requests; never waits for a read.
  virtual Result<void> submit(std::span<const ReadRequest> requests) = 0;
  /// Waits until at least one read in flight has completed (none may be missing: asserted that some are in
  /// flight), then fills `out` with what has. Returns how many.
  virtual Result<std::size_t> reap(std::span<Completion> out) = 0;
};

class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual std::uint32_t block_bytes() const = 0;
  virtual const std::string& method() const = 0;
  /// The limit on reads in flight that all queues of the device share.
  virtual InFlightLimit& limit() = 0;
  virtual Result<std::unique_ptr<ReadQueue>> queue(std::uint32_t depth) = 0;
};

/// Opens `paths` for block reads, the best way that really works on each, found by reading the first
/// block of each: io_uring with direct I/O; else a pool of 16 pread threads, direct or buffered.
/// A fall-back is logged once per process and reason.
Result<std::unique_ptr<BlockSource>> open_block_source(const std::vector<std::string>& paths, std::uint32_t depth);

}  // namespace rowtide::io
