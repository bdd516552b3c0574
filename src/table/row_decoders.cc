#include "table/row_decoders.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rowtide {

const Levels kLinearLevels = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
const Levels kNonLinearLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

namespace {

struct Available {
  std::array<const RowDecoders*, 3> sets = {&kScalarDecoders};
  std::size_t count = 1;
};

#if defined(__x86_64__)

// Not every compiler's __builtin_cpu_supports knows this one. That the system keeps its registers follows from AVX2.
bool has_f16c() {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

Available find_available() {
  Available available;
  if (!__builtin_cpu_supports("avx2") || !has_f16c()) return available;
  available.sets[available.count++] = &kAvx2Decoders;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return available;
  available.sets[available.count++] = &kAvx512Decoders;
  return available;
}

#elif defined(__aarch64__)

Available find_available() { return {{&kScalarDecoders, &kNeonDecoders}, 2}; }  // every such CPU has NEON

#else

Available find_available() { return {}; }

#endif

}  // namespace

std::span<const RowDecoders* const> row_decoders() {
  static const Available available = find_available();
  return std::span(available.sets).first(available.count);
}

}  // namespace rowtide
