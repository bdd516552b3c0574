// How rows become numbers: one set of functions for each instruction set. The scalar one is the reference; every other
// gives the same bits. Callers are row_format.cc and whoever compares the sets.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "rowtide/row_format.h"

namespace rowtide {

inline constexpr std::size_t kRowFormats = 9;

/// As decode_f32 and decode_bf16.
template <class Value>
using RowDecoder = void (*)(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Value* out);

/// By RowFormat.
struct RowDecoders {
  std::string_view instruction_set;
  std::array<RowDecoder<float>, kRowFormats> f32;
  std::array<RowDecoder<std::uint16_t>, kRowFormats> bf16;
};

extern const RowDecoders kScalarDecoders;
#if defined(__x86_64__)
extern const RowDecoders kAvx2Decoders;    // needs AVX2 and F16C
extern const RowDecoders kAvx512Decoders;  // needs AVX-512 F and BW
#elif defined(__aarch64__)
extern const RowDecoders kNeonDecoders;
#endif

/// The sets that this CPU can run: first the reference, last the one that decode_f32 and decode_bf16 use.
std::span<const RowDecoders* const> row_decoders();

/// The set's decoder from `format` to Value, float or std::uint16_t (bfloat16).
template <class Value>
RowDecoder<Value> row_decoder(const RowDecoders& set, RowFormat format) {
  const auto index = static_cast<std::size_t>(format);
  if constexpr (std::is_same_v<Value, float>) {
    return set.f32[index];
  } else {
    return set.bf16[index];
  }
}

// What the sets share.

inline constexpr std::size_t kBlockValues = 32;  // of the formats of GGUF: one binary16 scale for so many numbers
inline constexpr std::size_t kScaleBytes = 2;
inline constexpr std::size_t kUe8m0BlockValues = 32;  // the same for one-byte scales that stand behind all codes
inline constexpr std::size_t kNvfp4BlockValues = 16;

using Levels = std::array<std::int8_t, 16>;  // what the sixteen 4-bit codes stand for, before the scale

// Not constexpr: a compiler that sees a product with -1 flips the sign instead, that of a NaN too, which no CPU's
// multiplication does.
extern const Levels kLinearLevels;
extern const Levels kNonLinearLevels;
extern const std::array<float, 16> kE2m1Values;   // by code; that of code 8 is -0
extern const std::array<float, 256> kE4m3Values;  // by code

/// The power of two that an E8M0 byte stands for; its highest value is a NaN.
inline float e8m0_to_f32(std::byte exponent) {
  const auto e = std::to_integer<std::uint32_t>(exponent);
  return std::bit_cast<float>(e == 0 ? 0x00400000U : e == 255 ? 0x7fc00000U : e << 23);
}

/// Of a format without scales outside its blocks: rows side by side are one longer row.
template <class Value, void (*decode)(const std::byte* raw, std::uint64_t values, Value* out)>
void as_one_row(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Value* out) {
  decode(raw, rows * coding.values, out);
}

/// For a row that is stored as it is asked for.
template <class Value>
void copy_row(const std::byte* raw, std::uint64_t values, Value* out) {
  std::memcpy(out, raw, values * sizeof(Value));
}

/// What a set that takes `step` numbers at a time leaves over; a number takes `bytes_each` bytes of the row.
template <RowFormat format, class Value>
void decode_rest(const std::byte* raw, std::uint64_t bytes_each, std::uint64_t values, std::uint64_t step, Value* out,
                 float scale = 1) {
  const std::uint64_t done = values - values % step;
  if (done == values) return;
  row_decoder<Value>(kScalarDecoders, format)({format, values - done, scale}, raw + done * bytes_each, 1, out + done);
}

}  // namespace rowtide
