// The budget: what all stores of a process may hold together. Buffers, indexes and resident tables are taken
// from it; the cache has the rest and gives way when more is taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "cache/bundle_cache.h"
#include "io/system_memory.h"
#include "rowtide/result.h"
#include "rowtide/table.h"
#include "store/pressure_watch.h"

namespace rowtide {

/// Threads: any.
class MemoryBudget {
 public:
  /// How the cache holds its memory.
  enum class Held {
    kYielding,   // as it fills; given back while the machine is short of memory
    kAsNeeded,   // as it fills, for good
    kCommitted,  // all of it from the start, for good
  };
  /// What a part of the budget is for.
  enum class Use { kIndex, kResident, kBuffers };
  static constexpr std::size_t kUses = 3;

  /// The process's budget: that of its stores if it has any (kUsage if `asked` is neither 0 nor the same), else a new
  /// one of `asked` bytes, or of `otherwise` where that is 0, whose memory is `held` so. Neither is below
  /// kMemoryBytesMin.
  static Result<std::shared_ptr<MemoryBudget>> of_process(std::uint64_t asked, std::uint64_t otherwise, Held held);

  MemoryBudget(std::uint64_t bytes, Held held) : bytes_(bytes), held_(held) {}

  std::uint64_t bytes() const { return bytes_; }

  /// A taken part; given back when it goes.
  class Part {
   public:
    Part() = default;
    Part(Part&& other) noexcept { *this = std::move(other); }
    Part& operator=(Part&& other) noexcept;
    ~Part() { release(); }
    std::uint64_t bytes() const { return bytes_; }
    /// Makes it larger, as take(), or smaller.
    Result<void> resize(std::uint64_t bytes);

   private:
    friend class MemoryBudget;
    void release();

    MemoryBudget* budget_ = nullptr;
    Use use_ = Use::kBuffers;
    std::uint64_t bytes_ = 0;
  };

  /// kResource when the cache, if there is one, would fall below its least size. The part must go before the budget.
  Result<Part> take(Use use, std::uint64_t bytes);

  /// The cache; made when first asked for. kResource when too little of the budget is left.
  Result<BundleCache*> cache();

  std::uint64_t used(Use use) const;
  /// What is not taken; the cache has it for the time being.
  std::uint64_t left() const;
  std::uint64_t cache_bytes() const;

  /// What the cache is to hold at most for the time being, beside what is left of the budget; as it is made: all.
  std::uint64_t cache_limit() const;
  void set_cache_limit(std::uint64_t bytes);
  std::uint64_t cache_bytes_min() const;

  /// What of the resident tables has been filled.
  std::uint64_t resident_bytes() const { return resident_bytes_.load(std::memory_order_relaxed); }
  void add_resident(std::int64_t bytes) {
    resident_bytes_.fetch_add(static_cast<std::uint64_t>(bytes), std::memory_order_relaxed);
  }

  /// The tables that are served: their files are read row by row, so their pages are not needed in memory.
  void add_table(const Table& table);
  std::vector<io::FileRange> tables() const;

 private:
  Result<void> change(Use use, std::uint64_t from, std::uint64_t to);
  std::uint64_t taken() const { return used_[0] + used_[1] + used_[2]; }

  void fit_cache();

  const std::uint64_t bytes_;
  const Held held_;
  mutable std::mutex mutex_;
  std::uint64_t used_[kUses] = {};
  std::uint64_t cache_limit_ = bytes_;
  std::vector<io::FileRange> tables_;
  std::atomic<std::uint64_t> resident_bytes_{0};
  std::unique_ptr<BundleCache> cache_;
  std::unique_ptr<PressureWatch> watch_;  // goes first
};

}  // namespace rowtide
