#include "store/prefetcher.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/log.h"

namespace rowtide {
namespace {

constexpr std::size_t kQueuedRowsMax = std::size_t{1} << 20;
// Read before it is looked again whether somebody waits, and whether the rows are still missing.
constexpr std::size_t kPieceRows = 2048;
// How soon a prefetch that must hold back looks again, at first and at last.
constexpr std::chrono::microseconds kHoldBackMin{200}, kHoldBackMax{10'000};

}  // namespace

Result<std::unique_ptr<Prefetcher>> Prefetcher::start(std::shared_ptr<StoreShared> store) {
  std::unique_ptr<Prefetcher> prefetcher(new Prefetcher(std::move(store)));
  auto reader = StoreReader::make(prefetcher->store_);
  if (!reader) return reader.error();
  prefetcher->reader_ = *std::move(reader);
  try {
    prefetcher->thread_ = std::thread([&started = *prefetcher] { started.work(); });
  } catch (const std::system_error& failure) {
    return make_error(ErrorCode::kResource, "no thread can be started for prefetching: {}", failure.what());
  }
  return prefetcher;
}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Prefetcher::add(std::span<const RowId> ids) {
  const std::size_t bundle_rows = store_->table.bundle_rows;
  std::lock_guard lock(mutex_);
  const std::size_t room = kQueuedRowsMax - std::min(kQueuedRowsMax, queue_.size());
  const std::size_t count = std::min(ids.size(), room) / bundle_rows * bundle_rows;
  queue_.insert(queue_.end(), ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count));
  changed_.notify_all();
}

/// Nobody waits for a batch, and what was brought is not yet so much that it would evict itself.
bool Prefetcher::may_go_on() const {
  if (store_->demand.load() != 0) return false;
  const Counters done = store_->totals.snapshot();
  const std::uint64_t brought = done.prefetched_rows / store_->table.bundle_rows;
  const std::uint64_t gone = done.prefetched_rows_used / store_->table.bundle_rows +
                             store_->cached->prefetched_in_vain.load(std::memory_order_relaxed);
  return brought < gone + store_->cache->bundles_ahead_max(*store_->cached);
}

/// Waits for a piece of work; false when there will be none.
bool Prefetcher::next(std::vector<RowId>& piece) {
  std::unique_lock lock(mutex_);
  for (auto hold_back = kHoldBackMin;; hold_back = std::min(2 * hold_back, kHoldBackMax)) {
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (closing_) return false;
    if (may_go_on()) break;
    changed_.wait_for(lock, hold_back, [this] { return closing_.load(); });
  }
  const std::size_t bundle_rows = store_->table.bundle_rows;
  const std::size_t most = std::max<std::size_t>(1, kPieceRows / bundle_rows) * bundle_rows;
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), most));
  piece.assign(queue_.begin(), end);
  queue_.erase(queue_.begin(), end);
  return true;
}

void Prefetcher::work() {
  std::vector<RowId> piece;
  while (next(piece)) {
    const auto brought = reader_->prefetch(piece, closing_);
    if (!brought && !closing_)
      log_line_once(LogLevel::kWarn, fmt::format("prefetching failed: {}", brought.error().message));
  }
}

}  // namespace rowtide
