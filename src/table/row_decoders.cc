#include "table/row_decoders.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace rowtide {

const Levels kLinearLevels = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
const Levels kNonLinearLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
const std::array<float, 16> kE2m1Values = {0.0F,  0.5F,  1.0F,  1.5F,  2.0F,  3.0F,  4.0F,  6.0F,
                                           -0.0F, -0.5F, -1.0F, -1.5F, -2.0F, -3.0F, -4.0F, -6.0F};

namespace {

/// Sign, four bits of exponent (bias 7), three of fraction; no infinities, and NaN where all seven bits are ones.
constexpr float e4m3_to_f32(std::uint32_t code) {
  const std::uint32_t sign = (code & 0x80) << 24;
  const std::uint32_t magnitude = code & 0x7f;
  if (magnitude == 0x7f) return std::bit_cast<float>(0x7fc00000 | sign);
  if (magnitude < 8) return (sign != 0 ? -0x1p-9F : 0x1p-9F) * static_cast<float>(magnitude);
  return std::bit_cast<float>(((magnitude << 20) + ((127U - 7U) << 23)) | sign);
}

constexpr std::array<float, 256> make_e4m3_values() {
  std::array<float, 256> values{};
  for (std::uint32_t code = 0; code < values.size(); ++code) values[code] = e4m3_to_f32(code);
  return values;
}

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

const std::array<float, 256> kE4m3Values = make_e4m3_values();

std::span<const RowDecoders* const> row_decoders() {
  static const Available available = find_available();
  return std::span(available.sets).first(available.count);
}

}  // namespace rowtide
