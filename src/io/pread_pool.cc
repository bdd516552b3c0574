#include "io/pread_pool.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.h"

namespace rowtide::io {
namespace {

// How many jobs a thread takes at once: one lock for several reads when many wait, one each when few do,
// so that a small batch spreads over the threads.
constexpr std::size_t kJobsAtOnce = 4;

}  // namespace

class PreadQueue final : public ReadQueue {
 public:
  PreadQueue(std::shared_ptr<PreadPool> pool, std::vector<int> descriptors)
      : pool_(std::move(pool)), descriptors_(std::move(descriptors)) {}

  ~PreadQueue() override {
    std::unique_lock lock(mutex_);
    all_done_.wait(lock, [this] { return done_.size() == in_flight_; });
  }

  Result<void> submit(std::span<const ReadRequest> requests) override {
    {
      std::lock_guard lock(mutex_);
      in_flight_ += requests.size();
    }
    pool_->add(this, descriptors_, requests);
    return {};
  }

  Result<std::size_t> reap(std::size_t at_least, std::span<Completion> out) override {
    std::unique_lock lock(mutex_);
    wanted_ = std::min({at_least, in_flight_, out.size()});
    all_done_.wait(lock, [this] { return done_.size() >= wanted_; });
    const std::size_t count = std::min(out.size(), done_.size());
    std::copy_n(done_.end() - static_cast<std::ptrdiff_t>(count), count, out.begin());
    done_.resize(done_.size() - count);
    in_flight_ -= count;
    wanted_ = SIZE_MAX;
    return count;
  }

  void complete(std::span<const Completion> completions) {
    // Notified under the lock: the queue may be destroyed as soon as the lock is gone.
    std::lock_guard lock(mutex_);
    done_.insert(done_.end(), completions.begin(), completions.end());
    if (done_.size() >= wanted_ || done_.size() == in_flight_) all_done_.notify_one();
  }

 private:
  std::shared_ptr<PreadPool> pool_;
  std::vector<int> descriptors_;
  std::mutex mutex_;
  std::condition_variable all_done_;
  std::vector<Completion> done_;
  std::size_t in_flight_ = 0;
  std::size_t wanted_ = SIZE_MAX;
};

namespace {

std::int32_t read_now(int descriptor, const ReadRequest& request) {
  while (true) {
    const ssize_t got = ::pread(descriptor, request.into, request.bytes, static_cast<off_t>(request.offset));
    if (got >= 0) return static_cast<std::int32_t>(got);
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

Result<std::shared_ptr<PreadPool>> PreadPool::shared() {
  static std::mutex mutex;
  static std::weak_ptr<PreadPool> process_pool;
  std::lock_guard lock(mutex);
  if (auto pool = process_pool.lock()) return pool;
  std::shared_ptr<PreadPool> pool(new PreadPool);
  try {
    for (std::uint32_t i = 0; i < kThreads; ++i) pool->threads_.emplace_back([&pool = *pool] { pool.work(); });
  } catch (const std::system_error& failure) {
    if (pool->threads_.empty()) {
      return make_error(ErrorCode::kResource, "no thread for reading can be started: {}", failure.what());
    }
  }
  process_pool = pool;
  return pool;
}

PreadPool::~PreadPool() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  work_there_.notify_all();
  for (auto& thread : threads_) thread.join();
}

void PreadPool::add(PreadQueue* queue, const std::vector<int>& descriptors, std::span<const ReadRequest> requests) {
  {
    std::lock_guard lock(mutex_);
    if (first_job_ > jobs_waiting()) {
      jobs_.erase(jobs_.begin(), jobs_.begin() + static_cast<std::ptrdiff_t>(first_job_));
      first_job_ = 0;
    }
    for (const ReadRequest& request : requests) jobs_.push_back({queue, descriptors[request.file], request});
  }
  if (requests.size() >= kThreads) {
    work_there_.notify_all();
  } else {
    for (std::size_t i = 0; i < requests.size(); ++i) work_there_.notify_one();
  }
}

void PreadPool::work() {
  std::array<Job, kJobsAtOnce> taken;
  std::array<Completion, kJobsAtOnce> completions;
  while (true) {
    std::size_t count = 0;
    {
      std::unique_lock lock(mutex_);
      work_there_.wait(lock, [this] { return closing_ || jobs_waiting() != 0; });
      if (jobs_waiting() == 0) return;
      const std::size_t fair = std::clamp<std::size_t>(jobs_waiting() / kThreads, 1, kJobsAtOnce);
      for (; count < fair && (count == 0 || jobs_[first_job_].queue == taken[0].queue); ++count) {
        taken[count] = jobs_[first_job_++];
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      completions[i] = {taken[i].request.tag, read_now(taken[i].descriptor, taken[i].request)};
    }
    taken[0].queue->complete({completions.data(), count});
  }
}

Result<std::unique_ptr<ReadQueue>> open_pread_queue(const std::vector<int>& descriptors) {
  auto pool = PreadPool::shared();
  if (!pool) return pool.error();
  return std::unique_ptr<ReadQueue>(std::make_unique<PreadQueue>(*pool, descriptors));
}

}  // namespace rowtide::io
