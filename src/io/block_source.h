// Block reads: many aligned reads in flight at once. This is all the store knows of the disk.
//
// A BlockSource is a set of files opened one way (io_uring or pread pool, direct or buffered). Each
// Reader owns one ReadQueue of it. Other implementations of the two interfaces inject faults
// (tests/fault) or simulate a device.
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
  std::uint32_t file = 0;     // index into the source's files
  std::uint32_t bytes = 0;    // multiple of block_bytes()
  std::uint64_t offset = 0;   // multiple of block_bytes()
  std::byte* into = nullptr;  // within the queue's buffer, aligned to block_bytes()
  std::uint64_t tag = 0;      // given back with the completion
};

struct Completion {
  std::uint64_t tag = 0;
  std::int32_t result = 0;  // bytes read (short at the end of the file), or -errno
};

/// A queue of reads, used from one thread at a time (which may change). Reads complete in any order.
///
/// A queue makes one system call a reap(), so a batch hands over what is next with the same call that waits for
/// what came before. Whoever goes off to do something else after submit() must reap(0), or the reads may not have
/// begun when it comes back.
class ReadQueue {
 public:
  virtual ~ReadQueue() = default;  // waits for reads in flight; drops what no reap() handed over
  /// Takes all of `requests`; the device gets them with the next reap() at the latest. Never waits. At most the
  /// queue's depth may be submitted and not yet reaped.
  virtual Result<void> submit(std::span<const ReadRequest> requests) = 0;
  /// Hands over what was submitted and waits until `at_least` reads have completed (0: does not wait; at most as
  /// many as are submitted and not yet reaped, nor more than `out` holds). Then fills `out` with all that have, as
  /// far as it goes; returns how many.
  virtual Result<std::size_t> reap(std::size_t at_least, std::span<Completion> out) = 0;
};

/// A set of files opened for block reads. Threads: every method from any thread.
class BlockSource {
 public:
  virtual ~BlockSource() = default;
  virtual std::uint32_t block_bytes() const = 0;                   // a power of two
  virtual std::uint64_t file_bytes(std::uint32_t file) const = 0;  // length when it was opened
  /// As file_stamp() gives it (io/file_stamp.h) when it was opened; 0 for one that lies on no disk.
  virtual std::uint64_t stamp(std::uint32_t /*file*/) const { return 0; }
  virtual const std::string& method() const = 0;  // "io_uring, direct I/O", for people
  virtual bool direct() const = 0;                // reads go past the page cache
  /// The limit on reads in flight that all queues of the device share.
  virtual InFlightLimit& limit() = 0;
  /// A queue of `depth` reads, all of which go into `buffer`. The buffer outlives the queue; its pages may be pinned
  /// for as long, which spares the kernel looking them up for every read.
  virtual Result<std::unique_ptr<ReadQueue>> queue(std::uint32_t depth, std::span<std::byte> buffer) = 0;
};

struct BlockSourceOptions {
  std::uint32_t depth = 64;
  bool allow_uring = true;   // false: as if the kernel refused io_uring
  bool allow_direct = true;  // false: as if the file system refused O_DIRECT
};

/// Opens `paths` for block reads in the best way that works on all of them, found by reading the first
/// block of each: io_uring with direct I/O, else a pool of pread threads, direct or buffered. A fall-back
/// is logged once for each reason. Errors: kNotFound, kIo, kResource; kUnsupported for what is no regular file.
Result<std::unique_ptr<BlockSource>> open_block_source(const std::vector<std::string>& paths,
                                                       const BlockSourceOptions& options);

}  // namespace rowtide::io
