#include "io/in_flight_limit.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace rowtide::io {

std::uint32_t InFlightLimit::acquire(std::uint32_t wanted, std::uint32_t held) {
  const std::int32_t parties = std::max(1, parties_.load(std::memory_order_relaxed));
  const std::int32_t share = std::max(1, limit_ / parties) - static_cast<std::int32_t>(held);
  const std::int32_t most = std::min(static_cast<std::int32_t>(wanted), share);
  const std::int32_t least = held == 0 ? 1 : 0;
  if (most <= 0) return 0;
  std::int32_t free = free_.load(std::memory_order_relaxed);
  while (true) {
    const std::int32_t taken = std::clamp(free, least, most);
    if (taken == 0) return 0;
    if (free_.compare_exchange_weak(free, free - taken, std::memory_order_relaxed)) {
      return static_cast<std::uint32_t>(taken);
    }
  }
}

std::shared_ptr<InFlightLimit> InFlightLimit::of_device(std::uint64_t device_id, std::uint32_t limit) {
  static std::mutex mutex;
  static std::map<std::uint64_t, std::weak_ptr<InFlightLimit>> devices;
  std::lock_guard lock(mutex);
  auto& entry = devices[device_id];
  auto known = entry.lock();
  if (!known) entry = known = std::make_shared<InFlightLimit>(limit);
  return known;
}

}  // namespace rowtide::io
