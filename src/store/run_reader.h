// Brings runs, those of a batch or of a whole table: keeps the queue full within the device-wide limit, asks again for
// what came short, hands each run over as it arrives.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "io/block_source.h"
#include "rowtide/result.h"
#include "store/batch_plan.h"
#include "store/run_buffer.h"

namespace rowtide {

/// What was done for one list of runs.
struct RunTotals {
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t wait_ns = 0;
};

/// Used by one thread at a time; one list of runs at a time.
class RunReader {
 public:
  /// Whom the runs are for.
  class Sink {
   public:
    /// Takes what a run brought: its bytes from run.offset on, valid during the call.
    virtual void deliver(const Run& run, const std::byte* bytes) = 0;
    /// A row that lies there, to be named should the read fail.
    virtual RowId row_of(const Run& run) const = 0;

   protected:
    ~Sink() = default;
  };

  /// Over the files of `source`, which `map` names and `table` lies in; all outlive the reader. Reads go through a
  /// buffer of `buffer_bytes`, which must hold the largest run. Opens nothing yet.
  RunReader(io::BlockSource& source, const RowMap& map, const Table& table, std::uint32_t depth,
            std::uint64_t buffer_bytes);
  ~RunReader();
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;

  /// Opens the queue. kIo, kResource.
  Result<void> open();

  /// Submits the first of `runs`, which must stay as they are until finish() or abandon(). Once `given_up` is true,
  /// if it is there, finish() fails instead of bringing more.
  Result<void> start(std::span<const Run> runs, Sink& sink, io::Urgency urgency, const std::atomic<bool>* given_up);
  /// Brings the rest. After an error the runs have been abandoned.
  Result<RunTotals> finish();
  /// Gives the runs up: waits for reads in flight, whose buffers must stay until then.
  void abandon();

  std::uint64_t memory_bytes() const;

 private:
  /// One run on its way.
  struct Flight {
    std::uint32_t buffer_at = 0;
    std::uint32_t got = 0;  // bytes read so far
    std::uint16_t retries = 0;
    bool done = false;
  };

  Result<void> complete_all();
  Result<void> pump();
  Result<void> submit_wanted();
  Result<void> reap(std::uint32_t at_least);
  Result<void> complete(const io::Completion& completion);
  void land(std::uint32_t run_index);
  std::uint32_t needed_bytes(const Run& run) const;
  Error read_error(const Run& run, const std::string& why) const;
  io::ReadRequest request_for(std::uint32_t run_index) const;

  io::BlockSource& source_;
  const RowMap& map_;
  const Table& table_;
  const std::uint32_t depth_;
  RunBuffer buffer_;
  std::unique_ptr<io::ReadQueue> queue_;
  std::vector<Flight> flights_;              // one a run
  std::vector<io::ReadRequest> wanted_;      // scratch: reads to submit
  std::vector<io::Completion> completions_;  // scratch
  std::span<const Run> runs_;                // in progress
  Sink* sink_ = nullptr;                     // theirs; null: none are
  io::Urgency urgency_ = io::Urgency::kUrgent;
  const std::atomic<bool>* given_up_ = nullptr;
  std::uint32_t next_ = 0;       // run to submit next
  std::uint32_t oldest_ = 0;     // oldest run still in the buffer
  std::uint32_t in_flight_ = 0;  // reads, each with a permit of the device-wide limit
  RunTotals totals_;
};

}  // namespace rowtide
