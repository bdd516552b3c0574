#include "rowtide/row_format.h"

#include <array>
#include <cassert>

#include "base/checked.h"
#include "table/gradual_underflow.h"
#include "table/row_decoders.h"

namespace rowtide {
namespace {

struct Layout {
  std::string_view name;
  std::uint64_t unit_values;  // a row is a whole number of units
  std::uint64_t unit_bytes;   // whether they stand together or not
  bool has_scale = false;
};

constexpr std::array<Layout, kRowFormats> kLayouts = {{
    {"f32", 1, 4},
    {"f16", 1, 2},
    {"bf16", 1, 2},
    {"q8_0", kBlockValues, kScaleBytes + kBlockValues},
    {"q4_0", kBlockValues, kScaleBytes + kBlockValues / 2},
    {"iq4_nl", kBlockValues, kScaleBytes + kBlockValues / 2},
    {"fp8", 1, 1, true},
    {"fp8_ue8m0", kUe8m0BlockValues, kUe8m0BlockValues + 1},
    {"nvfp4", kNvfp4BlockValues, kNvfp4BlockValues / 2 + 1, true},
}};

/// Null if `format` is none of the enumeration's.
const Layout* layout_of(RowFormat format) {
  const auto index = static_cast<std::size_t>(format);
  return index < kLayouts.size() ? &kLayouts[index] : nullptr;
}

template <class Value>
void decode(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Value* out) {
  assert(row_bytes(coding.format, coding.values));
  static const RowDecoders& fastest = *row_decoders().back();
  const auto decoder = row_decoder<Value>(fastest, coding.format);
  if (coding.format < RowFormat::kFp8) return decoder(coding, raw, rows, out);  // whose products are never subnormal
  const GradualUnderflow subnormals;
  decoder(coding, raw, rows, out);
}

}  // namespace

std::string_view row_format_name(RowFormat format) {
  const Layout* layout = layout_of(format);
  return layout != nullptr ? layout->name : "unknown";
}

std::optional<RowFormat> row_format_named(std::string_view name) {
  for (std::size_t i = 0; i < kLayouts.size(); ++i) {
    if (kLayouts[i].name == name) return static_cast<RowFormat>(i);
  }
  return std::nullopt;
}

std::optional<std::uint64_t> row_bytes(RowFormat format, std::uint64_t values) {
  const Layout* layout = layout_of(format);
  if (layout == nullptr || values % layout->unit_values != 0) return std::nullopt;
  return checked_mul(values / layout->unit_values, layout->unit_bytes);
}

bool row_format_has_scale(RowFormat format) {
  const Layout* layout = layout_of(format);
  return layout != nullptr && layout->has_scale;
}

void decode_f32(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, float* out) {
  decode(coding, raw, rows, out);
}

void decode_bf16(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, std::uint16_t* out) {
  decode(coding, raw, rows, out);
}

}  // namespace rowtide
