// The store serves one table's rows: exactly, or the call fails. Open a Store per table and share it;
// make a Reader per thread. What a batch asks for is copied from memory where it is there; the rest is
// de-duplicated, ordered and read in one deep queue.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rowtide/result.h"
#include "rowtide/table.h"

namespace rowtide {

/// Where a table's rows are kept.
enum class Mode {
  kDisk,      // nowhere: every batch is read from the files
  kCache,     // bundles that were asked for, as many as the budget holds
  kResident,  // all of them: filled in the background, served from the cache and the files meanwhile
  kAuto,      // kResident where the whole table fits the budget, else kCache
};

/// Lower-case name: "disk", "cache", "resident", "auto".
std::string_view mode_name(Mode mode);
/// The mode of that name, if there is one.
std::optional<Mode> mode_named(std::string_view name);

struct StoreOptions {
  /// Bytes that all stores of the process may hold together: cache, index, buffers, rings. 0: what the
  /// process's stores have been given already, else default_memory_bytes(). The budget lives as long as
  /// any store does; meanwhile another figure is refused (kUsage).
  std::uint64_t memory_bytes = 0;
  Mode mode = Mode::kCache;
  /// Reads one reader keeps in flight; also the limit that all readers of one device share. 1 to 1,024;
  /// 0: what `rowtide calibrate` found best for the device, else 64.
  std::uint32_t queue_depth = 0;
};

/// What a store has done since it was opened; totals over all its readers.
struct Counters {
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;         // asked for, duplicates included
  std::uint64_t unique_rows = 0;  // distinct within their batch
  std::uint64_t bundles = 0;      // rows / heads_per_order; 0 where nothing is known of n-grams
  std::uint64_t hits = 0;         // rows served from memory
  std::uint64_t blocks = 0;       // distinct blocks the batches needed
  std::uint64_t reads = 0;        // read requests issued (neighbouring blocks share one)
  std::uint64_t bytes_read = 0;
  std::uint64_t wait_ns = 0;       // time batches spent waiting for the device
  std::uint64_t memory_bytes = 0;  // held by the store and its readers now
};

/// Where a batch goes and in which form. The memory must stay valid until the batch is finished.
struct Output {
  enum class Form { kRaw, kF32, kBf16 };
  Form form;
  std::byte* data;
  std::size_t bytes;
};
inline Output raw(std::span<std::byte> out) { return {Output::Form::kRaw, out.data(), out.size()}; }
inline Output f32(std::span<float> out) {
  return {Output::Form::kF32, reinterpret_cast<std::byte*>(out.data()), out.size_bytes()};
}
inline Output bf16(std::span<std::uint16_t> out) {
  return {Output::Form::kBf16, reinterpret_cast<std::byte*>(out.data()), out.size_bytes()};
}

/// One thread's way to the rows: owns its queue and buffers (about 5 MiB). Use it from one thread at a
/// time. At most one batch is in flight.
class Reader {
 public:
  virtual ~Reader() = default;

  /// Starts a batch: rows `ids[i]` go to position i of `output`, in the order asked, duplicates
  /// included. `ids` is not needed after the call. output.bytes must be exactly ids.size() times the
  /// row's size in that form (kUsage otherwise). Returns once the first reads are submitted.
  /// Errors: kUsage (also when a batch is in flight), kOutOfRange, kIo, kResource.
  virtual Result<void> begin(std::span<const RowId> ids, Output output) = 0;

  /// Completes the batch in flight. After an error the output is undefined and the reader is ready for
  /// the next batch. Without a batch in flight: success.
  virtual Result<void> finish() = 0;

  /// begin() and finish().
  Result<void> read(std::span<const RowId> ids, Output output) {
    if (auto begun = begin(ids, output); !begun) return begun;
    return finish();
  }
};

class Store {
 public:
  virtual ~Store() = default;

  /// Opens the table's files for direct reads (io_uring where the kernel allows it, else a pread pool),
  /// probing each feature by a real read. Nothing is written and no row is kept in memory.
  static Result<std::shared_ptr<Store>> open(Table table, StoreOptions options = {});

  virtual const Table& table() const = 0;
  /// How blocks are read, for logs: "io_uring, direct I/O, 4096-byte blocks, depth 64".
  virtual const std::string& method() const = 0;
  virtual Result<std::unique_ptr<Reader>> reader() = 0;
  /// A cheap snapshot; any thread.
  virtual Counters counters() const = 0;
};

}  // namespace rowtide
