#include <bit>

#include "table/row_decoders.h"

static_assert(std::endian::native == std::endian::little, "row formats are read as little-endian words in place");

namespace rowtide {
namespace {

// From binary16's exponent bias to binary32's, in binary32's place.
constexpr std::uint32_t kRebias = (127U - 15U) << 23U;
constexpr std::uint32_t kQuietNan = 0x00400000;

template <class Word>
Word load(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// Exact, subnormals, infinities and NaN included; a NaN becomes a quiet one, as CPUs' own conversions make it. The
// subnormals go by way of an integer, so the result does not depend on the caller's flush-to-zero mode. Masks instead
// of branches, so that the compiler can convert several numbers at once.
float f16_to_f32(std::uint16_t half) {
  const std::int32_t magnitude = half & 0x7fff;
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  const auto is_subnormal = static_cast<std::uint32_t>((magnitude - 0x0400) >> 31);
  const auto not_finite = static_cast<std::uint32_t>((0x7bff - magnitude) >> 31);
  const auto is_nan = static_cast<std::uint32_t>((0x7c00 - magnitude) >> 31);
  // Infinity and NaN: all ones in the exponent stay all ones.
  const std::uint32_t normal = (static_cast<std::uint32_t>(magnitude) << 13) + kRebias + (kRebias & not_finite);
  const std::uint32_t bits = (subnormal & is_subnormal) | (normal & ~is_subnormal) | (kQuietNan & is_nan);
  return std::bit_cast<float>(bits | (half & 0x8000U) << 16);
}

float bf16_to_f32(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

void put(float value, float* out) { *out = value; }

// To nearest, ties to even; a NaN is made quiet, lest rounding turn it into an infinity.
void put(float value, std::uint16_t* out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  *out = static_cast<std::uint16_t>((is_nan ? bits | kQuietNan : rounded) >> 16);
}

template <class Out>
void from_f32(const std::byte* raw, std::uint64_t values, Out* out) {
  for (std::uint64_t i = 0; i < values; ++i) put(load<float>(raw + 4 * i), out + i);
}

template <class Out>
void from_f16(const std::byte* raw, std::uint64_t values, Out* out) {
  for (std::uint64_t i = 0; i < values; ++i) put(f16_to_f32(load<std::uint16_t>(raw + 2 * i)), out + i);
}

void from_bf16(const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t i = 0; i < values; ++i) out[i] = bf16_to_f32(load<std::uint16_t>(raw + 2 * i));
}

// Block: scale, 32 signed bytes.
template <class Out>
void from_q8_0(const std::byte* raw, std::uint64_t values, Out* out) {
  for (std::uint64_t first = 0; first < values; first += kBlockValues) {
    const float scale = f16_to_f32(load<std::uint16_t>(raw));
    raw += kScaleBytes;
    for (std::size_t i = 0; i < kBlockValues; ++i) {
      put(scale * static_cast<float>(load<std::int8_t>(raw + i)), out + first + i);
    }
    raw += kBlockValues;
  }
}

// Block: scale, 16 bytes; their low halves are codes 0..15, their high halves codes 16..31. A level times
// the scale is the same product wherever it is taken, so sixteen of them serve the block.
template <const Levels& levels, class Out>
void from_4_bit(const std::byte* raw, std::uint64_t values, Out* out) {
  for (std::uint64_t first = 0; first < values; first += kBlockValues) {
    const float scale = f16_to_f32(load<std::uint16_t>(raw));
    raw += kScaleBytes;
    std::array<Out, levels.size()> products;
    for (std::size_t code = 0; code < products.size(); ++code) {
      put(scale * static_cast<float>(levels[code]), &products[code]);
    }
    for (std::size_t i = 0; i < kBlockValues / 2; ++i) {
      const auto codes = std::to_integer<std::size_t>(raw[i]);
      out[first + i] = products[codes & 15];
      out[first + i + kBlockValues / 2] = products[codes >> 4];
    }
    raw += kBlockValues / 2;
  }
}

template <class Out>
void from_fp8(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const std::uint64_t values = rows * coding.values;
  for (std::uint64_t i = 0; i < values; ++i) put(kE4m3Values[load<std::uint8_t>(raw + i)] * coding.scale, out + i);
}

template <class Out>
void from_fp8_ue8m0(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  for (; rows > 0; --rows, out += coding.values) {
    const std::byte* const scales = raw + coding.values;
    for (std::uint64_t i = 0; i < coding.values; ++i) {
      const float scale = e8m0_to_f32(scales[i / kUe8m0BlockValues]);
      put(kE4m3Values[load<std::uint8_t>(raw + i)] * scale, out + i);
    }
    raw = scales + coding.values / kUe8m0BlockValues;
  }
}

// A byte holds two codes, the first in its low half. As above, sixteen products serve the block.
template <class Out>
void from_nvfp4(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const std::uint64_t blocks = coding.values / kNvfp4BlockValues;
  for (; rows > 0; --rows) {
    const std::byte* const scales = raw + coding.values / 2;
    for (std::uint64_t block = 0; block < blocks; ++block, out += kNvfp4BlockValues) {
      const float scale = kE4m3Values[load<std::uint8_t>(scales + block)];
      std::array<Out, kE2m1Values.size()> products;
      for (std::size_t code = 0; code < products.size(); ++code) {
        put(kE2m1Values[code] * scale * coding.scale, &products[code]);
      }
      for (std::size_t i = 0; i < kNvfp4BlockValues / 2; ++i) {
        const auto codes = std::to_integer<std::size_t>(raw[block * kNvfp4BlockValues / 2 + i]);
        out[2 * i] = products[codes & 15];
        out[2 * i + 1] = products[codes >> 4];
      }
    }
    raw = scales + blocks;
  }
}

}  // namespace

const RowDecoders kScalarDecoders = {
    "scalar",
    {as_one_row<float, copy_row>, as_one_row<float, from_f16>, as_one_row<float, from_bf16>,
     as_one_row<float, from_q8_0>, as_one_row<float, from_4_bit<kLinearLevels>>,
     as_one_row<float, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
    {as_one_row<std::uint16_t, from_f32>, as_one_row<std::uint16_t, from_f16>, as_one_row<std::uint16_t, copy_row>,
     as_one_row<std::uint16_t, from_q8_0>, as_one_row<std::uint16_t, from_4_bit<kLinearLevels>>,
     as_one_row<std::uint16_t, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
};

}  // namespace rowtide
