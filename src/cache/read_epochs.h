// When may memory be written again that readers were looking at without a lock? Readers say when they look;
// the writer first makes the memory unreachable, then waits until everyone who looked before has looked away.
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>

namespace rowtide {

/// Sequentially consistent throughout: a reader that the writer does not see in its section began it after
/// the memory had become unreachable, provided that the places which make it reachable are loaded and
/// cleared with std::memory_order_seq_cst as well. Threads: any.
class ReadEpochs {
 public:
  /// One reader's mark. Used by one thread at a time; lives as long as the ReadEpochs do.
  class alignas(64) Mark {
   public:
    void enter(const ReadEpochs& epochs) { since_.exchange(epochs.now_.load()); }
    void leave() { since_.store(0, std::memory_order_release); }

   private:
    friend class ReadEpochs;
    std::atomic<std::uint64_t> since_{0};
    bool used_ = true;
  };

  /// Entered while it exists. Short: no lock, no I/O within.
  class Section {
   public:
    Section(const ReadEpochs& epochs, Mark& mark) : mark_(mark) { mark.enter(epochs); }
    ~Section() { mark_.leave(); }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;

   private:
    Mark& mark_;
  };

  Mark& add_reader();
  void remove_reader(Mark& mark);

  /// Call after the memory has become unreachable. Until passed() is true for what is returned, somebody
  /// may still look at it.
  std::uint64_t retire() { return now_.fetch_add(1) + 1; }
  bool passed(std::uint64_t epoch) const;
  /// Waits for it: at most as long as a section takes.
  void wait(std::uint64_t epoch) const;

 private:
  std::atomic<std::uint64_t> now_{1};
  mutable std::mutex mutex_;  // guards the list, not the marks' times
  std::list<Mark> marks_;
};

}  // namespace rowtide
