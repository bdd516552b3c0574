// The Reader: looks a batch up in memory, has the rest read, hands what was read to the cache.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "cache/bundle_cache.h"
#include "rowtide/store.h"
#include "store/batch_plan.h"
#include "store/helper_threads.h"
#include "store/run_reader.h"
#include "store/store_shared.h"

namespace rowtide {

class StoreReader final : public Reader, private RunReader::Sink {
 public:
  /// kIo or kResource when no queue or buffer is to be had.
  static Result<std::unique_ptr<StoreReader>> make(std::shared_ptr<StoreShared> store);
  ~StoreReader() override;

  Result<void> begin(std::span<const RowId> ids, Output output) override;
  Result<void> finish() override;

  /// Brings those bundles of `ids` into the cache that are not there; ids of a last, incomplete one are let be.
  /// Fails once `given_up` is true.
  Result<void> prefetch(std::span<const RowId> ids, const std::atomic<bool>& given_up);

 private:
  explicit StoreReader(std::shared_ptr<StoreShared> store);

  Result<void> check(std::span<const RowId> ids, Output output) const;
  Result<void> start(std::span<const RowId> ids, io::Urgency urgency);
  bool gather_resident(std::span<const RowId> ids);
  void look_up(std::span<const RowId> ids);
  void probe(std::span<const RowId> ids, std::size_t part);
  void miss(std::span<const RowId> ids, std::size_t bundle, std::uint64_t hash);
  Result<void> plan(std::span<const RowId> ids);
  void plan_bundle(const RowId* ids, std::uint64_t rows, std::uint64_t position);
  Result<void> read_planned(io::Urgency urgency);
  void deliver(const Run& run, const std::byte* bytes) override;
  RowId row_of(const Run& run) const override { return plan_.requests()[run.first_request].row(); }
  void deliver_row(std::uint64_t position, const std::byte* row);
  void deliver_part(std::uint64_t position, const RowMap::Part& part, const std::byte* bytes);
  std::byte* gathered_row(std::uint64_t at) const;
  void decode_gathered();

  /// Which row of which bundle a planned row is.
  struct Planned {
    std::uint64_t index;  // in missed_; its size for the last, incomplete bundle
    std::uint64_t head;
  };
  Planned planned(std::uint64_t position) const { return {position / heads_, position % heads_}; }
  std::byte* cache_place(const Planned& row) const;
  std::uint64_t output_row(const Planned& row) const;
  void emit(const std::byte* rows, std::uint64_t count, std::uint64_t at) const;
  void copy_repeated() const;
  void judge_drive(const RunTotals& run_totals) const;
  Counters counted(const RunTotals& run_totals) const;
  void end(bool succeeded);
  std::uint64_t lookup_bytes() const;
  Result<void> account_memory(std::uint64_t plan_bytes);

  const std::shared_ptr<StoreShared> store_;
  const Table& table_;
  const RowCoding coding_;
  const std::uint64_t heads_;  // rows of a bundle
  std::optional<BundleCache::Lookup> lookup_;
  RunReader run_reader_;
  MemoryBudget::Part memory_;
  HelperThreads::Habit resident_habit_, cache_habit_;

  /// A bundle that the batch has asked for before, and has missed: copied once that has come.
  struct Repeated {
    std::uint32_t bundle;
    std::uint32_t missed;  // in missed_
  };

  /// What became of looking a bundle up.
  struct LookedUp {
    std::uint64_t hash;
    bool missed;
  };

  // The batch in progress; the vectors keep their memory from batch to batch.
  bool busy_ = false;
  bool reading_ = false;                         // run_reader_ has a plan
  bool for_cache_ = false;                       // a prefetch: no output
  const std::atomic<bool>* given_up_ = nullptr;  // of a prefetch
  Output output_{};
  std::uint64_t output_row_bytes_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t hits_ = 0;
  std::atomic<std::uint64_t> prefetched_used_{0};  // bundles
  std::vector<LookedUp> looked_up_;                // by bundle
  std::vector<Missed> missed_;
  std::vector<Repeated> repeated_;
  std::vector<std::uint32_t> seen_;  // hash table over missed_: index + 1, 0 is empty
  BatchPlan plan_;
  std::vector<std::byte> gathered_;  // a raw row whose parts have come one by one, while it is decoded
};

}  // namespace rowtide
