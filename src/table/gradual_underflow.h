// While it lives, the thread's arithmetic keeps subnormal numbers. An engine's threads may flush them to zero, which is
// faster for what engines compute, and would change what rows with tiny scales hold.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rowtide {

class GradualUnderflow {
 public:
  GradualUnderflow() : before_(control()) {
    if ((before_ & kFlushes) != 0) set_control(before_ & ~kFlushes);
  }
  ~GradualUnderflow() {
    if ((before_ & kFlushes) != 0) set_control(before_);
  }
  GradualUnderflow(const GradualUnderflow&) = delete;
  GradualUnderflow& operator=(const GradualUnderflow&) = delete;

 private:
#if defined(__x86_64__)
  using Word = std::uint32_t;
  static constexpr Word kFlushes = 0x8000 | 0x0040;  // results, operands
  static Word control() { return _mm_getcsr(); }
  static void set_control(Word word) { _mm_setcsr(word); }
#elif defined(__aarch64__)
  using Word = std::uint64_t;
  static constexpr Word kFlushes = Word{1} << 24 | Word{1} << 0;  // both, operands
  static Word control() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set_control(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#else
  using Word = std::uint32_t;
  static constexpr Word kFlushes = 0;
  static Word control() { return 0; }
  static void set_control(Word) {}
#endif

  const Word before_;
};

}  // namespace rowtide
