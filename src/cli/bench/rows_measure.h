// One measurement: a method, a batch size, a trace; everything brought into the state that is asked for, timed,
// checked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/rows_method.h"
#include "cli/bench/rows_options.h"
#include "cli/bench/rows_source.h"
#include "cli/bench/rows_trace.h"
#include "cli/bench/rows_usage.h"

namespace rowtide::cli {

struct Measurement {
  std::uint64_t batches = 0, rows = 0;
  std::uint64_t unique_rows = 0;    // distinct within their batch
  std::uint64_t blocks_needed = 0;  // distinct within their batch
  std::uint64_t blocks_before = 0;  // of those, read by an earlier measurement of this run
  double seconds = 0, cpu_seconds = 0;
  std::optional<std::uint64_t> reads, bytes_read, switches, syscalls_of_a_batch;
  std::optional<double> wait_seconds, hit_share;
  std::vector<float> batch_us;  // of the first batches
};

/// Runs measurements one after the other; keeps what is warm from one to the next, but for copies of some rows.
class RowsBench {
 public:
  RowsBench(const BenchRowsOptions& options, const BenchSource& source, const BenchTraceMaker& trace);
  ~RowsBench();

  /// Throws a Failure; one of code "unsupported" says that the method cannot be measured here.
  Measurement measure(const std::string& name, std::size_t batch);

  double cold_share() const { return cold_share_; }  // greatest share of a file left after eviction
  /// Of Rowtide, over its measurements; zeros and no way before the first.
  struct RowtideUse {
    std::string way;  // how it reads
    std::uint64_t budget_bytes = 0;
    std::uint64_t memory_bytes = 0;   // at most, by its own count
    std::uint64_t private_bytes = 0;  // RssAnon + RssShmem of the process at most
  };
  const RowtideUse& rowtide_use() const { return rowtide_use_; }

 private:
  struct Trace {
    std::vector<RowId> wake, before, timed, counted;
  };
  bool is_cold() const;
  std::uint64_t rows_wanted(std::size_t batch) const;
  Trace next_trace(std::size_t batch);
  Measurement measure_fio(std::size_t batch);
  GatherMethod& opened_method(const std::string& name, const Trace& trace);
  void wake(GatherMethod& method, std::span<const RowId> ids, std::size_t batch);
  void warm_up(const std::string& name, GatherMethod& method, const Trace& trace, std::size_t batch);
  void warm_store(GatherMethod& method, std::span<const RowId> ids, std::size_t batch);
  double serve(GatherMethod& method, std::span<const RowId> ids, std::size_t batch);
  std::vector<RowId> warm_part(std::span<const RowId> ids) const;
  void time(const std::string& name, GatherMethod& method, std::span<const RowId> ids, std::size_t batch,
            Measurement& measured);
  struct RoundLimits {
    double seconds_min, seconds_max;
  };
  std::size_t time_round(GatherMethod& method, std::span<const RowId> round, std::size_t batch,
                         const RoundLimits& limits, Measurement& measured);
  void count(std::span<const RowId> ids, std::size_t batch, Measurement& measured);

  const BenchRowsOptions& options_;
  const BenchSource& source_;
  const BenchTraceMaker& trace_;
  SyscallCounter syscalls_;  // before any thread is started
  std::uint64_t salt_;
  double cold_share_ = 0;
  RowtideUse rowtide_use_;
  std::vector<std::byte> output_;
  std::vector<std::vector<bool>> blocks_read_;  // of each file
  std::map<std::string, std::unique_ptr<GatherMethod>> open_;
};

}  // namespace rowtide::cli
