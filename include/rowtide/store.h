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
  /// 0: what `rowtide calibrate` found best for the device, else 256.
  std::uint32_t queue_depth = 0;
  /// Whether the cache gives memory back while the machine is short of it, and takes it again later. Where CPU and GPU
  /// share one memory it never does: there the cache holds all of its memory from the start, so that the engine can
  /// size the rest. The first store of the process decides.
  bool yield_under_pressure = true;
};

/// Never less than this: the smallest cache worth having, and one reader.
inline constexpr std::uint64_t kMemoryBytesMin = std::uint64_t{32} << 20;

/// What can be said of options before there is a table: kUsage for a budget below kMemoryBytesMin or a queue that is
/// too deep. Store::open() does it first.
Result<void> check_options(const StoreOptions& options);

/// The budget of a process that names none: 1 GiB, or an eighth of the memory that is available, if that is
/// less; never below kMemoryBytesMin. Where the first store's table is to be resident, its bytes come on top.
std::uint64_t default_memory_bytes();

/// What a store has done since it was opened, totals over all its readers; and the memory that all stores of
/// the process hold together now.
struct Counters {
  std::uint64_t batches = 0;
  std::uint64_t rows = 0;         // asked for, duplicates included
  std::uint64_t bundles = 0;      // n-grams asked for; 0 where nothing is known of them
  std::uint64_t hits = 0;         // rows served from memory
  std::uint64_t unique_rows = 0;  // distinct within their batch, of those that were not
  std::uint64_t blocks = 0;       // distinct blocks that these needed
  std::uint64_t reads = 0;        // read requests issued (neighbouring blocks share one)
  std::uint64_t bytes_read = 0;
  std::uint64_t wait_ns = 0;  // time batches spent waiting for the device

  std::uint64_t prefetched_rows = 0;       // brought before anyone asked
  std::uint64_t prefetched_rows_used = 0;  // of these, asked for since
  std::uint64_t prefetch_reads = 0;
  std::uint64_t prefetch_bytes_read = 0;

  std::uint64_t budget_bytes = 0;
  std::uint64_t memory_bytes = 0;    // the sum of the four below
  std::uint64_t cache_bytes = 0;     // cached rows with their keys
  std::uint64_t index_bytes = 0;     // where they are, and what was evicted lately
  std::uint64_t resident_bytes = 0;  // whole tables, as far as they have been filled
  std::uint64_t buffer_bytes = 0;    // readers: rings, plans
  std::uint64_t resident_rows = 0;   // of this store's table; all of its rows once it is resident
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
/// time. At most one batch is in flight, of at most 2^20 rows. Batches of up to kUrgentRowsMax rows go before
/// larger ones: while one waits, all larger ones together keep no more than a third of the device's reads.
inline constexpr std::size_t kUrgentRowsMax = 512;

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
  /// probing each feature by a real read. Nothing is written. Errors: as of opening the files; kMismatch for one that
  /// was replaced or written to since the checkpoint was opened; kUsage for a budget below kMemoryBytesMin or other
  /// than the process's; kResource for one beyond the machine's memory or its cgroup's, and for kResident where table
  /// and kMemoryBytesMin do not fit the budget.
  static Result<std::shared_ptr<Store>> open(Table table, StoreOptions options = {});

  virtual const Table& table() const = 0;
  /// How blocks are read, for logs: "io_uring, direct I/O, 4096-byte blocks, depth 64".
  virtual const std::string& method() const = 0;
  /// Never kAuto: what was chosen.
  virtual Mode mode() const = 0;
  virtual Result<std::unique_ptr<Reader>> reader() = 0;
  /// A hint that these rows will be asked for soon, in this order: whole bundles, such as the rest of a prompt.
  /// A thread of the store brings them into the cache when nobody who waits needs the device, and no further
  /// ahead than the cache can hold them. Returns at once; never fails; hints beyond 2^20 rows are dropped.
  virtual void prefetch(std::span<const RowId> ids) = 0;
  /// A cheap snapshot; any thread.
  virtual Counters counters() const = 0;
};

}  // namespace rowtide
