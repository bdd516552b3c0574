// Brings rows into the cache before they are asked for, on a thread of its own.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "store/store_reader.h"

namespace rowtide {

class Prefetcher {
 public:
  /// Needs a store with a cache, which outlives it. kResource: no thread, no buffers.
  static Result<std::unique_ptr<Prefetcher>> start(std::shared_ptr<StoreShared> store);
  ~Prefetcher();

  /// Queues whole bundles. What does not fit the queue is dropped. Threads: any.
  void add(std::span<const RowId> ids);

 private:
  explicit Prefetcher(std::shared_ptr<StoreShared> store) : store_(std::move(store)) {}

  void work();
  bool next(std::vector<RowId>& piece);
  bool may_go_on() const;

  const std::shared_ptr<StoreShared> store_;
  std::unique_ptr<StoreReader> reader_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<RowId> queue_;
  std::atomic<bool> closing_ = false;
  std::thread thread_;
};

}  // namespace rowtide
