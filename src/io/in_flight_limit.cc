#include "io/in_flight_limit.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace rowtide::io {
namespace {

constexpr std::int32_t kHeldBackMax =
    42;  // keeps a flash drive near its full rate, and an urgent read waits for no more

}  // namespace

/// Permits that a party of this urgency may hold; 0: none until the urgent parties are gone.
std::int32_t InFlightLimit::share_of(Urgency urgency) const {
  const bool urgent = parties(Urgency::kUrgent) > 0;
  if (urgency == Urgency::kPrefetch && urgent) return 0;
  const bool held_back =
      (urgency == Urgency::kPrefetch && parties(Urgency::kBulk) > 0) ||
      (urgency == Urgency::kBulk && (urgent || now_() < urgent_until_.load(std::memory_order_relaxed)));
  const std::int32_t together = held_back ? std::min(limit_ / 3, kHeldBackMax) : limit_;
  return std::max(1, together / std::max(1, parties(urgency)));
}

std::uint32_t InFlightLimit::acquire(std::uint32_t wanted, std::uint32_t held, Urgency urgency) {
  const std::int32_t room = share_of(urgency) - static_cast<std::int32_t>(held);
  const std::int32_t most = std::min(static_cast<std::int32_t>(wanted), room);
  if (most <= 0) return 0;
  const std::int32_t least = held == 0 ? 1 : 0;
  const std::int32_t beyond = urgency == Urgency::kUrgent ? limit_ / 3 : 0;
  std::int32_t free = free_.load(std::memory_order_relaxed);
  while (true) {
    const std::int32_t taken = std::clamp(free + beyond, least, most);
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
