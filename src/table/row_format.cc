#include "rowtide/row_format.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>

#include "base/checked.h"

static_assert(std::endian::native == std::endian::little, "row formats are read as little-endian words in place");

namespace rowtide {
namespace {

constexpr std::size_t kBlockValues = 32;  // of the block formats: one binary16 scale for so many numbers
constexpr std::size_t kScaleBytes = 2;

// From binary16's exponent bias to binary32's, in binary32's place.
constexpr std::uint32_t kRebias = (127U - 15U) << 23U;

struct Layout {
  std::string_view name;
  std::uint64_t unit_values;  // a row is a whole number of units
  std::uint64_t unit_bytes;
};

constexpr std::array<Layout, 6> kLayouts = {{
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"q8_0", kBlockValues, kScaleBytes + kBlockValues},
    {"q4_0", kBlockValues, kScaleBytes + kBlockValues / 2},
    {"iq4_nl", kBlockValues, kScaleBytes + kBlockValues / 2},
}};

const Layout& layout_of(RowFormat format) { return kLayouts[static_cast<std::size_t>(format)]; }

using Levels = std::array<float, 16>;  // what the sixteen 4-bit codes stand for, before the scale

constexpr Levels kLinearLevels = {-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
constexpr Levels kNonLinearLevels = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

template <class Word>
Word load(const std::byte* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

// Exact, subnormals, infinities and NaN included. The subnormals go by way of an integer, so the result
// does not depend on the caller's flush-to-zero mode. Masks instead of branches, so that the compiler
// can convert several numbers at once.
float f16_to_f32(std::uint16_t half) {
  const std::int32_t magnitude = half & 0x7fff;
  const auto subnormal = std::bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  const auto is_subnormal = static_cast<std::uint32_t>((magnitude - 0x0400) >> 31);
  const auto not_finite = static_cast<std::uint32_t>((0x7bff - magnitude) >> 31);
  // Infinity and NaN: all ones in the exponent stay all ones.
  const std::uint32_t normal = (static_cast<std::uint32_t>(magnitude) << 13) + kRebias + (kRebias & not_finite);
  const std::uint32_t bits = (subnormal & is_subnormal) | (normal & ~is_subnormal);
  return std::bit_cast<float>(bits | (half & 0x8000U) << 16);
}

float bf16_to_f32(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }

// To nearest, ties to even; a NaN is made quiet, lest rounding turn it into an infinity.
std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<std::uint16_t>((is_nan ? bits | 0x00400000 : rounded) >> 16);
}

void decode_f16(const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t i = 0; i < values; ++i) out[i] = f16_to_f32(load<std::uint16_t>(raw + 2 * i));
}

void decode_bf16_to_f32(const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t i = 0; i < values; ++i) out[i] = bf16_to_f32(load<std::uint16_t>(raw + 2 * i));
}

// Block: scale, 32 signed bytes.
void decode_q8_0(const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t first = 0; first < values; first += kBlockValues) {
    const float scale = f16_to_f32(load<std::uint16_t>(raw));
    raw += kScaleBytes;
    for (std::size_t i = 0; i < kBlockValues; ++i) {
      out[first + i] = scale * static_cast<float>(load<std::int8_t>(raw + i));
    }
    raw += kBlockValues;
  }
}

// Block: scale, 16 bytes; their low halves are codes 0..15, their high halves codes 16..31. A level times
// the scale is the same product wherever it is taken, so sixteen of them serve the block.
void decode_4_bit(const Levels& levels, const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t first = 0; first < values; first += kBlockValues) {
    const float scale = f16_to_f32(load<std::uint16_t>(raw));
    raw += kScaleBytes;
    Levels products;
    for (std::size_t code = 0; code < products.size(); ++code) products[code] = scale * levels[code];
    for (std::size_t i = 0; i < kBlockValues / 2; ++i) {
      const auto codes = std::to_integer<std::size_t>(raw[i]);
      out[first + i] = products[codes & 15];
      out[first + i + kBlockValues / 2] = products[codes >> 4];
    }
    raw += kBlockValues / 2;
  }
}

}  // namespace

std::string_view row_format_name(RowFormat format) { return layout_of(format).name; }

std::optional<RowFormat> row_format_named(std::string_view name) {
  for (std::size_t i = 0; i < kLayouts.size(); ++i) {
    if (kLayouts[i].name == name) return static_cast<RowFormat>(i);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> row_bytes(RowFormat format, std::uint64_t values) {
  const Layout& layout = layout_of(format);
  if (values % layout.unit_values != 0) return std::nullopt;
  return checked_mul(values / layout.unit_values, layout.unit_bytes);
}

void decode_f32(RowFormat format, const std::byte* raw, std::uint64_t values, float* out) {
  assert(row_bytes(format, values));
  switch (format) {
    case RowFormat::kF32: std::memcpy(out, raw, values * sizeof(float)); return;
    case RowFormat::kF16: decode_f16(raw, values, out); return;
    case RowFormat::kBf16: decode_bf16_to_f32(raw, values, out); return;
    case RowFormat::kQ8_0: decode_q8_0(raw, values, out); return;
    case RowFormat::kQ4_0: decode_4_bit(kLinearLevels, raw, values, out); return;
    case RowFormat::kIq4Nl: decode_4_bit(kNonLinearLevels, raw, values, out); return;
  }
}

void decode_bf16(RowFormat format, const std::byte* raw, std::uint64_t values, std::uint16_t* out) {
  assert(row_bytes(format, values));
  if (format == RowFormat::kBf16) {
    std::memcpy(out, raw, values * sizeof(std::uint16_t));
    return;
  }
  const Layout& layout = layout_of(format);
  std::array<float, 8 * kBlockValues> piece;  // a whole number of any format's units
  while (values > 0) {
    const std::uint64_t count = std::min<std::uint64_t>(values, piece.size());
    decode_f32(format, raw, count, piece.data());
    for (std::uint64_t i = 0; i < count; ++i) out[i] = f32_to_bf16(piece[i]);
    raw += count / layout.unit_values * layout.unit_bytes;
    out += count;
    values -= count;
  }
}

}  // namespace rowtide
