// Threads that help with the copying of large batches.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace rowtide {

/// Shared by all readers of the process. Threads: any.
class HelperThreads {
 public:
  /// One less than the processor has cores, seven at most; started when first asked for. With none, or while they
  /// help somebody else, run() does the work alone.
  static HelperThreads& of_process();
  explicit HelperThreads(unsigned threads);
  ~HelperThreads();

  /// Which way one kind of work went faster of late: on cores that others keep busy, helpers come late and are waited
  /// for. Used by one thread at a time.
  class Habit {
   private:
    friend class HelperThreads;
    bool wants_help();
    void remember(bool helped, double ns_a_part);

    double alone_ns_ = 0, helped_ns_ = 0;  // a part, averaged; 0: not tried
    unsigned runs_ = 0;
    bool warmed_up_ = false;
  };

  /// Calls work(part), which must not throw, for each part of [0, parts): here, and where that has been the faster way
  /// on helpers as well. Whoever is free takes the next part. Returns when all are done.
  template <class Work>
  void run(Habit& habit, std::size_t parts, Work& work) {
    run_parts(habit, parts, [](void* the_work, std::size_t part) { (*static_cast<Work*>(the_work))(part); }, &work);
  }

 private:
  using Function = void (*)(void* work, std::size_t part);

  void run_parts(Habit& habit, std::size_t parts, Function function, void* work);
  void run_helped(std::size_t parts, Function function, void* work);
  void take_parts();
  void help();

  std::mutex busy_;  // held by whoever is being helped

  std::mutex mutex_;
  std::condition_variable wake_, left_;
  std::uint64_t job_ = 0;  // counts jobs, so that a helper knows a new one
  unsigned helping_ = 0;   // helpers within take_parts()
  bool open_ = false;      // helpers may join the job
  bool closing_ = false;

  Function function_ = nullptr;
  void* work_ = nullptr;
  std::size_t parts_ = 0;
  std::atomic<std::size_t> next_{0};
  std::vector<std::thread> threads_;
};

}  // namespace rowtide
