// Brings the runs of a batch plan: keeps the queue full within the device-wide limit, hands each run over as
// it arrives.
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

/// What was done for one plan.
struct RunTotals {
  std::uint64_t reads = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t wait_ns = 0;
};

/// Used by one thread at a time; one plan at a time.
class RunReader {
 public:
  /// Takes what a run brought: its bytes from run.offset on, valid during the call.
  class Sink {
   public:
    virtual void deliver(const Run& run, const std::byte* bytes) = 0;

   protected:
    ~Sink() = default;
  };

  /// Over the files of `source`, which `map` names and `table` lies in; all outlive the reader. Opens nothing yet.
  RunReader(io::BlockSource& source, const RowMap& map, const Table& table, std::uint32_t depth);
  ~RunReader();
  RunReader(const RunReader&) = delete;
  RunReader& operator=(const RunReader&) = delete;

  /// Opens the queue. kIo, kResource.
  Result<void> open();

  /// Submits the first reads of `plan`, which must stay as it is until finish() or abandon(). Once `given_up` is true,
  /// if it is there, finish() fails instead of bringing more.
  Result<void> start(const BatchPlan& plan, Sink& sink, io::Urgency urgency, const std::atomic<bool>* given_up);
  /// Brings the rest. After an error the plan has been abandoned.
  Result<RunTotals> finish();
  /// Gives the plan up: waits for reads in flight, whose buffers must stay until then.
  void abandon();

  std::uint64_t memory_bytes() const;
  static constexpr std::uint32_t kRunBytesMax = 64 * 1024;  // one read; neighbours beyond it are read apart

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
  const BatchPlan* plan_ = nullptr;          // in progress
  Sink* sink_ = nullptr;
  io::Urgency urgency_ = io::Urgency::kUrgent;
  const std::atomic<bool>* given_up_ = nullptr;
  std::uint32_t next_ = 0;       // run to submit next
  std::uint32_t oldest_ = 0;     // oldest run still in the buffer
  std::uint32_t in_flight_ = 0;  // reads, each with a permit of the device-wide limit
  RunTotals totals_;
};

}  // namespace rowtide
