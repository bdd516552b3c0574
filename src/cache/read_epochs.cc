#include "cache/read_epochs.h"

#include <algorithm>
#include <thread>

namespace rowtide {

ReadEpochs::Mark& ReadEpochs::add_reader() {
  std::lock_guard lock(mutex_);
  const auto unused = std::find_if(marks_.begin(), marks_.end(), [](const Mark& mark) { return !mark.used_; });
  if (unused == marks_.end()) return marks_.emplace_back();
  unused->used_ = true;
  return *unused;
}

void ReadEpochs::remove_reader(Mark& mark) {
  std::lock_guard lock(mutex_);
  mark.used_ = false;
}

bool ReadEpochs::passed(std::uint64_t epoch) const {
  std::lock_guard lock(mutex_);
  return std::all_of(marks_.begin(), marks_.end(), [epoch](const Mark& mark) {
    const std::uint64_t since = mark.since_.load();
    return since == 0 || since >= epoch;
  });
}

void ReadEpochs::wait(std::uint64_t epoch) const {
  while (!passed(epoch)) std::this_thread::yield();
}

}  // namespace rowtide
