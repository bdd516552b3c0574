// One buffered pread a row, or one for each place it lies in, by one thread or by several that take rows from the same
// batch.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "cli/bench/rows_method.h"
#include "cli/failure.h"

namespace rowtide::cli {
namespace {

class PreadMethod final : public GatherMethod {
 public:
  PreadMethod(const BenchSource& source, std::size_t threads) : source_(source), files_(source, 0) {
    for (std::size_t i = 1; i < threads; ++i) workers_.emplace_back([this] { work(); });
  }
  ~PreadMethod() override {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    begun_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  Warmth warmth() const override { return Warmth::kPageCache; }

  void gather(std::span<const RowId> ids, std::byte* out) override {
    {
      const std::lock_guard lock(mutex_);
      ids_ = ids;
      out_ = out;
      next_.store(0, std::memory_order_relaxed);
      tickets_ = std::min(workers_.size(), ids.size() - std::min<std::size_t>(ids.size(), 1));
      for (std::size_t i = 0; i < tickets_; ++i) begun_.notify_one();
    }
    read_rows();  // the caller is one of the threads
    std::unique_lock lock(mutex_);
    tickets_ = 0;  // whoever has not woken yet is not waited for
    done_.wait(lock, [this] { return at_work_ == 0; });
    reads_ += ids.size() * source_.map.parts().size();
    if (failed_ >= 0) throw Failure(kExitFailed, "io", fmt::format("pread: {}", errno_text(failed_)));
  }

  MethodCounts counts() const override { return {.reads = reads_}; }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      begun_.wait(lock, [this] { return ends_ || tickets_ > 0; });
      if (ends_) return;
      --tickets_;
      ++at_work_;
      lock.unlock();
      read_rows();
      lock.lock();
      if (--at_work_ == 0) done_.notify_one();
    }
  }

  void read_rows() {
    for (;;) {
      const std::size_t i = next_.fetch_add(1, std::memory_order_relaxed);
      if (i >= ids_.size()) return;
      for (const RowMap::Part& part : source_.map.parts()) {
        if (!read_part(part, ids_[i], out_ + i * source_.table.row_bytes + part.at)) return;
      }
    }
  }

  bool read_part(const RowMap::Part& part, RowId id, std::byte* out) {
    const auto place = part.place(id);
    for (std::uint64_t at = 0; at < part.bytes;) {
      const ssize_t got = ::pread(files_[place.file], out + at, part.bytes - at, static_cast<off_t>(place.offset + at));
      if (got > 0) {
        at += static_cast<std::uint64_t>(got);
      } else if (got == 0 || errno != EINTR) {
        failed_ = got == 0 ? 0 : errno;
        return false;
      }
    }
    return true;
  }

  const BenchSource& source_;
  OpenFiles files_;
  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable begun_, done_;
  std::size_t tickets_ = 0;  // threads that may still join the batch
  std::size_t at_work_ = 0;  // threads that have joined it
  bool ends_ = false;
  std::span<const RowId> ids_;
  std::byte* out_ = nullptr;
  std::atomic<std::size_t> next_{0};
  std::atomic<int> failed_{-1};  // an errno; 0 for the end of the file
  std::uint64_t reads_ = 0;
};

}  // namespace

std::unique_ptr<GatherMethod> open_pread(const BenchSource& source, std::size_t threads) {
  return std::make_unique<PreadMethod>(source, threads);
}

}  // namespace rowtide::cli
