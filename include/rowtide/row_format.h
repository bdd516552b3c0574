// Row formats: how a row's bytes become numbers. Byte layouts, with their sources, are in docs/formats.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rowtide {

enum class RowFormat : std::uint8_t {
  kF32,
  kF16,
  kBf16,
  kQ8_0,  // these three as in GGUF
  kQ4_0,
  kIq4Nl,
  kFp8,       // a byte of E4M3FN a number, times the table's scale
  kFp8Ue8m0,  // n bytes of E4M3FN, then n / 32 powers of two (E8M0), each for 32 numbers
  kNvfp4,     // n / 2 bytes of E2M1 codes, then n / 16 scales (E4M3FN), each for 16 numbers; times the table's scale
};

/// Lower-case name: "f32", "f16", "bf16", "q8_0", "q4_0", "iq4_nl", "fp8", "fp8_ue8m0", "nvfp4"; "unknown" for a value
/// that is none of the enumeration's. Zero-terminated, for ever valid.
std::string_view row_format_name(RowFormat format);

/// The format of that name, if there is one.
std::optional<RowFormat> row_format_named(std::string_view name);

/// Bytes of a row of `values` numbers; nothing if the format cannot hold that many (fp8_ue8m0 and the formats
/// of GGUF that have scales need a multiple of 32, nvfp4 of 16), the product overflows or `format` is none of the
/// enumeration's.
std::optional<std::uint64_t> row_bytes(RowFormat format, std::uint64_t values);

/// Whether numbers of this format are multiplied by a factor that stands outside the rows.
bool row_format_has_scale(RowFormat format);

/// What it takes to decode the rows of a table.
struct RowCoding {
  RowFormat format;
  std::uint64_t values;  // of a row
  float scale = 1;       // of the whole table; only where row_format_has_scale()
};

/// Decodes `rows` rows that lie side by side (a bundle, say: one call chooses the CPU's instructions once) to IEEE
/// binary32: the formats of GGUF bit for bit as ggml's own decoder does, fp8 and fp8_ue8m0 as code * scale and nvfp4 as
/// (code * block scale) * scale, each product rounded once; a NaN may differ in its payload. `raw` holds
/// rows * row_bytes(coding.format, coding.values) bytes at any alignment, and row_bytes must have an answer; `out`
/// holds rows * coding.values floats. Rows and output must not overlap.
void decode_f32(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, float* out);

/// The same, rounded to bfloat16 (nearest, ties to even; a NaN stays a NaN).
void decode_bf16(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, std::uint16_t* out);

}  // namespace rowtide
