#include "store/helper_threads.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/error.h"
#include "base/log.h"

namespace rowtide {
namespace {

constexpr unsigned kThreadsMax = 7;
constexpr unsigned kTryTheOther = 32;  // one run in so many goes the way that was slower, to see whether it still is
constexpr double kAveragedOver = 4;

}  // namespace

HelperThreads& HelperThreads::of_process() {
  static HelperThreads helpers(std::min(kThreadsMax, std::max(1u, std::thread::hardware_concurrency()) - 1));
  return helpers;
}

HelperThreads::HelperThreads(unsigned threads) {
  try {
    for (unsigned i = 0; i < threads; ++i) threads_.emplace_back([this] { help(); });
  } catch (const std::system_error& failure) {
    log(LogLevel::kDebug, "{} of {} helper threads: {}", threads_.size(), threads, failure.what());
  }
}

HelperThreads::~HelperThreads() {
  {
    std::lock_guard lock(mutex_);
    closing_ = true;
  }
  wake_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool HelperThreads::Habit::wants_help() {
  if (helped_ns_ == 0) return true;
  if (alone_ns_ == 0) return false;
  const bool try_the_other = ++runs_ % kTryTheOther == 0;
  return (helped_ns_ < alone_ns_) != try_the_other;
}

void HelperThreads::Habit::remember(bool helped, double ns_a_part) {
  if (!warmed_up_) {  // the first run pays for memory that is touched for the first time
    warmed_up_ = true;
    return;
  }
  double& average = helped ? helped_ns_ : alone_ns_;
  average = average == 0 ? ns_a_part : average + (ns_a_part - average) / kAveragedOver;
}

void HelperThreads::run_parts(Habit& habit, std::size_t parts, Function function, void* work) {
  std::unique_lock alone(busy_, std::defer_lock);
  const bool helped = parts > 1 && !threads_.empty() && habit.wants_help() && alone.try_lock();
  const auto start = std::chrono::steady_clock::now();
  if (helped) {
    run_helped(parts, function, work);
  } else {
    for (std::size_t part = 0; part < parts; ++part) function(work, part);
  }
  if (parts < 2) return;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  habit.remember(helped, took.count() / static_cast<double>(parts));
}

void HelperThreads::run_helped(std::size_t parts, Function function, void* work) {
  {
    std::lock_guard lock(mutex_);
    function_ = function;
    work_ = work;
    parts_ = parts;
    next_ = 0;
    open_ = true;
    ++job_;
  }
  const std::size_t wanted = std::min(parts - 1, threads_.size());
  for (std::size_t i = 0; i < wanted; ++i) wake_.notify_one();
  take_parts();
  std::unique_lock lock(mutex_);
  open_ = false;
  left_.wait(lock, [this] { return helping_ == 0; });
}

void HelperThreads::take_parts() {
  for (std::size_t part = next_++; part < parts_; part = next_++) function_(work_, part);
}

void HelperThreads::help() {
  std::unique_lock lock(mutex_);
  for (std::uint64_t done = 0;;) {
    wake_.wait(lock, [&] { return closing_ || (open_ && job_ != done); });
    if (closing_) return;
    done = job_;
    ++helping_;
    lock.unlock();
    take_parts();
    lock.lock();
    if (--helping_ == 0) left_.notify_one();
  }
}

}  // namespace rowtide
