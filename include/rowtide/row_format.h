// Row formats: how a row's bytes become numbers. Byte layouts are in docs/formats.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rowtide {

enum class RowFormat : std::uint8_t { kF32, kF16, kBf16, kQ8_0, kQ4_0, kIq4Nl };

/// Lower-case name: "f32", "f16", "bf16", "q8_0", "q4_0", "iq4_nl"; "unknown" for a value that is none
/// of the enumeration's. Zero-terminated, for ever valid.
std::string_view row_format_name(RowFormat format);

/// The format of that name, if there is one.
std::optional<RowFormat> row_format_named(std::string_view name);

/// Bytes of a row of `values` numbers; nothing if the format cannot hold that many (block formats
/// need a multiple of 32), the product overflows or `format` is none of the enumeration's.
std::optional<std::uint64_t> row_bytes(RowFormat format, std::uint64_t values);

/// Decodes one row of `values` numbers to IEEE binary32, bit for bit as ggml's own decoder does (a NaN
/// may differ in its payload). Rows that lie side by side are one longer row: a call with the sum of their
/// values decodes a bundle, and chooses the CPU's instructions once. `raw` holds row_bytes(format, values)
/// bytes at any alignment, and row_bytes must have an answer; `out` holds `values` floats. Row and output
/// must not overlap.
void decode_f32(RowFormat format, const std::byte* raw, std::uint64_t values, float* out);

/// The same, rounded to bfloat16 (nearest, ties to even; a NaN stays a NaN).
void decode_bf16(RowFormat format, const std::byte* raw, std::uint64_t values, std::uint16_t* out);

}  // namespace rowtide
