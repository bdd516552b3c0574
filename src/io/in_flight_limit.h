// One device-wide limit on reads in flight, shared by every reader of every store on that device.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace rowtide::io {

/// Counts permits. A reader with a batch in progress is a party; nobody takes more than its even share
/// (limit / parties), so a bulk batch lets go of permits as its reads complete when another arrives.
class InFlightLimit {
 public:
  explicit InFlightLimit(std::uint32_t limit) : free_(limit), limit_(limit) {}

  std::uint32_t limit() const { return limit_; }

  void join() { parties_.fetch_add(1, std::memory_order_relaxed); }
  void leave() { parties_.fetch_sub(1, std::memory_order_relaxed); }

  /// Takes up to `wanted` permits for a party that holds `held` already; returns how many. Never waits.
  std::uint32_t try_acquire(std::uint32_t wanted, std::uint32_t held);
  /// Waits for at least one permit; for a party that holds none.
  std::uint32_t acquire(std::uint32_t wanted);
  void release(std::uint32_t permits);

  /// The limit of the device that holds `device_id` (st_dev), made with `limit` when first asked for.
  static std::shared_ptr<InFlightLimit> of_device(std::uint64_t device_id, std::uint32_t limit);

 private:
  std::atomic<std::uint32_t> free_;
  std::atomic<std::uint32_t> parties_{0};
  const std::uint32_t limit_;
};

}  // namespace rowtide::io
