// Threads that read with pread, for kernels and containers that refuse io_uring.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "io/block_source.h"

namespace rowtide::io {

class PreadQueue;

/// One pool serves the whole process: kThreads threads, started with the first queue.
class PreadPool {
 public:
  static constexpr std::uint32_t kThreads = 16;

  /// The process's pool; it lives as long as somebody holds it. kResource when threads cannot be started.
  static Result<std::shared_ptr<PreadPool>> shared();

  ~PreadPool();

 private:
  friend class PreadQueue;
  struct Job {
    PreadQueue* queue;
    int descriptor;
    ReadRequest request;
  };

  PreadPool() = default;
  void work();
  std::size_t jobs_waiting() const { return jobs_.size() - first_job_; }
  void add(PreadQueue* queue, const std::vector<int>& descriptors, std::span<const ReadRequest> requests);

  std::mutex mutex_;
  std::condition_variable work_there_;
  std::vector<Job> jobs_;  // those from first_job_ on wait; keeps its memory, which a deque does not
  std::size_t first_job_ = 0;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

Result<std::unique_ptr<ReadQueue>> open_pread_queue(const std::vector<int>& descriptors);

}  // namespace rowtide::io
