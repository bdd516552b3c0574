// Lets a budget's cache follow the pressure on memory: it gives whole segments back when memory is short, and takes
// them again later.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "io/memory_pressure.h"

namespace rowtide {

class MemoryBudget;  // store/memory_budget.h

class PressureWatch {
 public:
  /// Looks once a second, on a thread of its own, until it goes. `budget` outlives it.
  explicit PressureWatch(MemoryBudget& budget);
  ~PressureWatch();

 private:
  void watch();
  void look(io::MemoryYielding& yielding);

  MemoryBudget& budget_;
  std::mutex mutex_;
  std::condition_variable close_;
  bool closing_ = false;
  std::thread thread_;
};

}  // namespace rowtide
