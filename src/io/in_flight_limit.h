// One device-wide limit on reads in flight, shared by every reader of every store on that device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace rowtide::io {

/// Counts permits; never waits. A reader with a batch in progress is a party. Nobody takes more than its
/// even share (limit / parties), so a bulk batch lets permits go as its reads complete when another party
/// arrives. A party that holds none always gets one, beyond the limit if need be: nobody can be kept from
/// progress by a batch that was begun and not yet finished. So at most limit + parties - 1 are out.
/// Threads: any.
class InFlightLimit {
 public:
  explicit InFlightLimit(std::uint32_t limit) : limit_(static_cast<std::int32_t>(limit)), free_(limit_) {}

  void join() { parties_.fetch_add(1, std::memory_order_relaxed); }
  void leave() { parties_.fetch_sub(1, std::memory_order_relaxed); }

  /// Takes up to `wanted` (at least 1) permits for a party that holds `held` already; returns how many.
  std::uint32_t acquire(std::uint32_t wanted, std::uint32_t held);
  void release(std::uint32_t permits) {
    free_.fetch_add(static_cast<std::int32_t>(permits), std::memory_order_relaxed);
  }

  /// The limit of the device `device_id` (st_dev), made with `limit` when first asked for.
  static std::shared_ptr<InFlightLimit> of_device(std::uint64_t device_id, std::uint32_t limit);

 private:
  const std::int32_t limit_;
  std::atomic<std::int32_t> free_;
  std::atomic<std::int32_t> parties_{0};
};

}  // namespace rowtide::io
