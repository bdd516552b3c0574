// A whole table in memory, filled in the background from front to back.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#include "io/block_source.h"
#include "rowtide/table.h"
#include "store/batch_plan.h"
#include "store/memory_budget.h"
#include "store/run_reader.h"

namespace rowtide {

class ResidentRows final : private RunReader::Sink {
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
  RowId filled() const { return filled_.load(std::memory_order_acquire); }
  /// A row below filled().
  const std::byte* row(RowId row) const { return rows_ + row * row_bytes_; }

 private:
  /// What a run of the filling brings of its component, whose parts of the rows are taken for one run of bytes.
  struct Chunk {
    std::uint64_t from;  // of those bytes
    std::uint64_t bytes;
    std::uint64_t skip;  // bytes of the run before them
    bool landed = false;
  };

  ResidentRows(const Table& table, const RowMap& map, io::BlockSource& source, MemoryBudget& budget);
  Result<void> take_memory();
  void plan();
  void plan_one(std::uint32_t component, const RowMap::Piece& piece, std::uint64_t from);
  void fill();
  std::size_t index_of(const Run& run) const { return static_cast<std::size_t>(&run - runs_.data()); }
  void deliver(const Run& run, const std::byte* bytes) override;
  RowId row_of(const Run& run) const override;
  void place(const RowMap::Part& part, std::uint64_t from, std::span<const std::byte> bytes);
  void publish();

  const Table& table_;
  const RowMap& map_;
  io::BlockSource& source_;
  MemoryBudget& budget_;
  const std::uint64_t row_bytes_;
  MemoryBudget::Part memory_, buffer_memory_;
  std::byte* rows_ = nullptr;
  RunReader run_reader_;
  std::vector<Run> runs_;                  // in an order that brings all components of a row at about the same time
  std::vector<Chunk> chunks_;              // by run
  std::size_t published_ = 0;              // runs, all of which have landed
  std::vector<std::uint64_t> part_bytes_;  // what these brought, by component
  std::atomic<RowId> filled_{0};
  std::atomic<bool> stopping_{false};
  std::thread filler_;
};

}  // namespace rowtide
