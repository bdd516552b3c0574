// From the row ids of a batch to the reads that bring them: sorted, de-duplicated, neighbouring blocks
// joined into runs. Arithmetic only; no I/O.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rowtide/result.h"
#include "rowtide/table.h"

namespace rowtide {

/// One row asked for: which, and at which position of the output.
class Request {
 public:
  static constexpr int kPositionBits = 24;
  static constexpr std::uint64_t kBatchRowsMax = 1ull << kPositionBits;
  static constexpr std::uint64_t kTableRowsMax = 1ull << (64 - kPositionBits);

  Request() = default;
  Request(RowId row, std::uint64_t position) : key_(row << kPositionBits | position) {}
  RowId row() const { return key_ >> kPositionBits; }
  std::uint64_t position() const { return key_ & (kBatchRowsMax - 1); }
  std::uint64_t key() const { return key_; }

 private:
  std::uint64_t key_;
};

/// Neighbouring blocks of one file that one read brings, and the requests it answers: with the whole of what their
/// component holds of the row.
struct Run {
  std::uint32_t file = 0;
  std::uint32_t bytes = 0;          // multiple of the block
  std::uint64_t offset = 0;         // multiple of the block
  std::uint32_t first_request = 0;  // requests()[first_request, end_request)
  std::uint32_t end_request = 0;
  std::uint32_t component = 0;
};

/// Where the rows of a table lie: the extents of its components, with their files numbered.
class RowMap {
 public:
  /// kUsage if the extents do not cover the table or contradict its shape.
  static Result<RowMap> make(const Table& table);

  struct Place {
    std::uint32_t file;
    std::uint64_t offset;
  };
  struct Piece {
    std::uint64_t first_row, end_row, offset;
    std::uint32_t file;
  };
  /// What one component holds of each row: bytes [at, at + bytes) of the raw row.
  struct Part {
    std::uint64_t at = 0, bytes = 0;
    std::vector<Piece> pieces;  // ascending; they cover the table

    Place place(RowId row) const;
  };
  /// In the order of the table's components.
  const std::vector<Part>& parts() const { return parts_; }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  Result<void> add(const Table& table, const Component& component);

  std::vector<Part> parts_;
  std::vector<std::string> paths_;
};

/// The plan of one batch; its memory is kept from batch to batch.
class BatchPlan {
 public:
  void clear() {
    requests_.clear();
    runs_.clear();
    unique_rows_ = blocks_ = 0;
  }
  void reserve(std::size_t requests) { requests_.reserve(requests); }
  /// `row` must be below the table's row count, `position` below Request::kBatchRowsMax.
  void add(RowId row, std::uint64_t position) { requests_.emplace_back(row, position); }
  /// Plans what was added. `run_bytes_max` bounds a read, unless one row needs more.
  void make(const RowMap& map, std::uint64_t table_rows, std::uint32_t block_bytes, std::uint32_t run_bytes_max);

  std::span<const Request> requests() const { return requests_; }  // ascending by row, then by position
  std::span<const Run> runs() const { return runs_; }              // component by component
  std::uint64_t unique_rows() const { return unique_rows_; }
  std::uint64_t blocks() const { return blocks_; }  // distinct blocks needed, the sum over the components
  std::uint64_t memory_bytes() const;
  /// Of so many requests, each with runs of its own.
  static std::uint64_t memory_bytes_most(std::uint64_t requests, std::uint64_t components) {
    return requests * (2 * sizeof(Request) + components * sizeof(Run));
  }

 private:
  void sort(std::uint64_t table_rows);
  void add_runs(const RowMap::Part& part, std::uint32_t component, std::uint32_t block_bytes,
                std::uint32_t run_bytes_max);

  std::vector<Request> requests_, scratch_;
  std::vector<Run> runs_;
  std::uint64_t unique_rows_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace rowtide
