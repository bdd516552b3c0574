// A whole table in memory, filled in the background from front to back.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "io/block_source.h"
#include "rowtide/table.h"
#include "store/batch_plan.h"
#include "store/memory_budget.h"
#include "store/run_buffer.h"

namespace rowtide {

class ResidentRows {
 public:
  /// Bytes beside the rows themselves: the buffer they are read through.
  static constexpr std::uint64_t kBufferBytes = std::uint64_t{8} << 20;

  /// Takes the memory from `budget` and starts to fill it; what is given outlives this. kResource when the
  /// budget or the kernel has no room. A read that fails later ends the filling with a line in the log.
  static Result<std::unique_ptr<ResidentRows>> start(const Table& table, const RowMap& map, io::BlockSource& source,
                                                     MemoryBudget& budget);
  /// Stops filling.
  ~ResidentRows();
  ResidentRows(const ResidentRows&) = delete;
  ResidentRows& operator=(const ResidentRows&) = delete;

  /// Rows [0, filled()) are there, for good. Threads: any.
  RowId filled() const { return filled_bytes_.load(std::memory_order_acquire) / row_bytes_; }
  std::uint64_t filled_bytes() const { return filled_bytes_.load(std::memory_order_relaxed); }
  /// A row below filled().
  const std::byte* row(RowId row) const { return rows_ + row * row_bytes_; }

 private:
  /// One read of the filling: whole blocks of a file, some of whose bytes are the table's.
  struct Chunk {
    std::uint32_t file;
    std::uint32_t bytes;
    std::uint64_t offset;
    std::uint64_t skip;  // bytes before the table's
    std::uint64_t use;   // bytes of the table's
    std::uint64_t to;    // where they go
  };
  struct Slot {
    Chunk chunk{};
    std::uint32_t got = 0;
    std::uint32_t retries = 0;
    bool done = false;
  };
  static constexpr std::size_t kSlots = 8;

  ResidentRows(const Table& table, const RowMap& map, io::BlockSource& source, MemoryBudget& budget);
  Result<void> take_memory();
  void plan_chunks();
  void fill();
  Result<void> fill_all();
  Result<void> submit(std::size_t index);
  Result<void> reap();
  Result<void> complete(const io::Completion& completion);

  const Table& table_;
  const RowMap& map_;
  io::BlockSource& source_;
  MemoryBudget& budget_;
  const std::uint64_t row_bytes_;
  MemoryBudget::Part memory_, buffer_memory_;
  std::byte* rows_ = nullptr;
  RunBuffer buffer_;
  std::unique_ptr<io::ReadQueue> queue_;
  std::vector<Chunk> chunks_;
  std::array<Slot, kSlots> slots_;
  std::size_t next_ = 0, published_ = 0, in_flight_ = 0;  // chunks
  std::atomic<std::uint64_t> filled_bytes_{0};
  std::atomic<bool> stopping_{false};
  std::thread filler_;
};

}  // namespace rowtide
