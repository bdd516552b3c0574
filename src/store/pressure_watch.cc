#include "store/pressure_watch.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "io/system_memory.h"
#include "rowtide/byte_size.h"
#include "store/memory_budget.h"

namespace rowtide {
namespace {

constexpr std::chrono::seconds kBetweenLooks{1};

}  // namespace

PressureWatch::PressureWatch(MemoryBudget& budget) : budget_(budget) {
  try {
    thread_ = std::thread([this] { watch(); });
  } catch (const std::system_error& failure) {
    log(LogLevel::kWarn, "no thread can be started to watch memory pressure: {}", failure.what());
  }
}

PressureWatch::~PressureWatch() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  close_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void PressureWatch::watch() {
  io::MemoryYielding yielding(budget_.cache_bytes_min(), budget_.bytes(), SegmentArena::kSegmentBytes);
  std::unique_lock lock(mutex_);
  while (!close_.wait_for(lock, kBetweenLooks, [this] { return closing_; })) {
    lock.unlock();
    look(yielding);
    lock.lock();
  }
}

void PressureWatch::look(io::MemoryYielding& yielding) {
  const auto available = io::available_memory(budget_.tables());
  if (!available) return;
  const std::uint64_t limit = budget_.cache_limit();
  const auto decision = yielding.decide(io::sample_pressure(), limit, available->bytes());
  if (decision.action == io::MemoryYielding::Action::kHold) return;
  const bool yields = decision.action == io::MemoryYielding::Action::kYield;
  const std::uint64_t changed = yields ? limit - std::min(limit, decision.bytes) : limit + decision.bytes;
  budget_.set_cache_limit(changed);
  log(LogLevel::kDebug, "memory is {}: the cache may hold {}", yields ? "short" : "there again",
      byte_size_text(changed));
}

}  // namespace rowtide
