#include "rowtide/row_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "support/golden.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace rowtide {
namespace {

using nlohmann::json;

const std::vector<RowFormat> kAllFormats = {RowFormat::kF32,  RowFormat::kF16,      RowFormat::kBf16,
                                            RowFormat::kQ8_0, RowFormat::kQ4_0,     RowFormat::kIq4Nl,
                                            RowFormat::kFp8,  RowFormat::kFp8Ue8m0, RowFormat::kNvfp4};

bool is_nan_bits(std::uint32_t bits) { return (bits & 0x7fffffff) > 0x7f800000; }

void expect_same_f32(std::uint32_t actual, std::uint32_t expected, std::size_t index) {
  if (is_nan_bits(expected)) {
    EXPECT_TRUE(is_nan_bits(actual)) << "value " << index;
  } else {
    EXPECT_EQ(actual, expected) << "value " << index;
  }
}

// Rounding by the definition: of the two neighbours in bfloat16 the nearer, of two equally near the even.
std::uint16_t nearest_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto below = static_cast<std::uint16_t>(bits >> 16);
  const std::uint32_t rest = bits & 0xffff;
  const bool up = rest > 0x8000 || (rest == 0x8000 && below % 2 == 1);
  return static_cast<std::uint16_t>(below + (up ? 1 : 0));
}

std::vector<std::uint32_t> decoded_f32(const RowCoding& coding, const std::byte* raw, std::uint64_t rows = 1) {
  std::vector<float> out(rows * coding.values);
  decode_f32(coding, raw, rows, out.data());
  std::vector<std::uint32_t> bits;
  for (const float value : out) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

// The upper-case names are ggml's; those of other formats have no row format here.
std::optional<RowFormat> format_of(std::string ggml_name) {
  for (char& letter : ggml_name) letter = static_cast<char>(std::tolower(letter));
  return row_format_named(ggml_name);
}

// Formats that add to a product count on it, and processors that fuse the two are the rule on Arm.
TEST(RowFormat, AProductIsRoundedBeforeASum) {
  const volatile float factor = 1 + 0x1p-12F, product = 1 + 0x1p-11F;
  EXPECT_EQ(factor * factor - product, 0);  // 0x1p-24 in one step
}

TEST(RowFormat, DecodesTheGoldenRows) {
  std::map<std::string, int> rows_checked;
  const json file = test::golden("formats.json");
  for (const json& row : file["gguf"]["rows"]) {
    const auto format = format_of(row["type"]);
    if (!format) continue;
    const std::size_t values = row["n"];
    SCOPED_TRACE(row["type"].get<std::string>() + ", " + std::to_string(values) + " values");
    const std::vector<std::byte> raw = test::golden_bytes(row["raw"]);
    ASSERT_EQ(row_bytes(*format, values), raw.size());
    ASSERT_EQ(row["row_bytes"].get<std::uint64_t>(), raw.size());
    const auto expected = test::golden_words<std::uint32_t>(row["f32"]);
    ASSERT_EQ(expected.size(), values);

    const auto actual = decoded_f32({*format, values}, raw.data());
    for (std::size_t i = 0; i < values; ++i) expect_same_f32(actual[i], expected[i], i);
    ++rows_checked[std::string(row_format_name(*format))];
  }
  const std::map<std::string, int> all = {{"f32", 4}, {"f16", 4}, {"bf16", 4}, {"q8_0", 4}, {"q4_0", 4}, {"iq4_nl", 4}};
  EXPECT_EQ(rows_checked, all);
}

// 330 values: more than one piece of the conversion, and a part of one; 320 for the formats of blocks.
TEST(RowFormat, Bf16IsTheRoundedF32) {
  for (const RowFormat format : kAllFormats) {
    SCOPED_TRACE(row_format_name(format));
    const std::size_t values = row_bytes(format, 330) ? 330 : 320;
    std::vector<std::byte> raw(*row_bytes(format, values));
    for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i * 89 + i / 7);
    const auto f32 = decoded_f32({format, values}, raw.data());
    std::vector<std::uint16_t> bf16(values);
    decode_bf16({format, values}, raw.data(), 1, bf16.data());
    for (std::size_t i = 0; i < values; ++i) {
      if (is_nan_bits(f32[i])) {
        EXPECT_TRUE(is_nan_bits(std::uint32_t{bf16[i]} << 16)) << "value " << i;
      } else {
        EXPECT_EQ(bf16[i], nearest_bf16(std::bit_cast<float>(f32[i]))) << "value " << i;
      }
    }
  }
}

/// Rows of a golden file against their bfloat16 numbers and, worked out once more in float64, their binary32 ones.
template <class Number>
void expect_golden_rows(const RowCoding& coding, std::span<const std::byte> raw, const json& bf16, Number number) {
  const auto expected = test::golden_words<std::uint16_t>(bf16);
  ASSERT_EQ(expected.size() % coding.values, 0U);
  const std::uint64_t rows = expected.size() / coding.values;
  ASSERT_EQ(raw.size(), rows * *row_bytes(coding.format, coding.values));
  std::vector<std::uint16_t> actual(expected.size());
  decode_bf16(coding, raw.data(), rows, actual.data());
  const auto f32 = decoded_f32(coding, raw.data(), rows);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expect_same_f32(std::uint32_t{actual[i]} << 16, std::uint32_t{expected[i]} << 16, i);
    expect_same_f32(f32[i], std::bit_cast<std::uint32_t>(static_cast<float>(number(i))), i);
  }
}

float float_of(const json& hex) { return std::bit_cast<float>(test::golden_words<std::uint32_t>(hex).at(0)); }
float float_of_bf16(const json& hex) {
  return std::bit_cast<float>(std::uint32_t{test::golden_words<std::uint16_t>(hex).at(0)} << 16);
}

std::vector<std::byte> every_byte() {
  std::vector<std::byte> bytes(256);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i);
  return bytes;
}

/// The numbers that the golden file gives for the 256 codes.
std::vector<double> e4m3_numbers(const json& file) {
  std::vector<double> numbers;
  for (const std::uint32_t bits : test::golden_words<std::uint32_t>(file["fp8_e4m3fn_to_f32"]["f32"])) {
    numbers.push_back(std::bit_cast<float>(bits));
  }
  return numbers;
}

TEST(RowFormat, DecodesEveryFp8Code) {
  const auto expected = test::golden_words<std::uint32_t>(test::golden("formats.json")["fp8_e4m3fn_to_f32"]["f32"]);
  const auto actual = decoded_f32({RowFormat::kFp8, 256}, every_byte().data());
  ASSERT_EQ(expected.size(), 256U);
  for (std::size_t code = 0; code < 256; ++code) expect_same_f32(actual[code], expected[code], code);
}

TEST(RowFormat, MultipliesFp8ByItsScale) {
  const json file = test::golden("formats.json");
  const auto numbers = e4m3_numbers(file);
  const json& golden = file["fp8_e4m3fn_bf16_scale"];
  ASSERT_EQ(golden["all_codes"].size(), 7U);
  ASSERT_EQ(golden["rows"].size(), 3U);
  for (const json& codes : golden["all_codes"]) {
    const float scale = float_of_bf16(codes["scale_bf16"]);
    SCOPED_TRACE(scale);
    expect_golden_rows({RowFormat::kFp8, 256, scale}, every_byte(), codes["bf16"],
                       [&](std::size_t i) { return numbers[i] * scale; });
  }
  for (const json& row : golden["rows"]) {
    const float scale = float_of_bf16(row["scale_bf16"]);
    const auto raw = test::golden_bytes(row["raw"]);
    expect_golden_rows({RowFormat::kFp8, 160, scale}, raw, row["bf16"],
                       [&](std::size_t i) { return numbers[std::to_integer<std::size_t>(raw[i])] * scale; });
  }
}

TEST(RowFormat, DecodesTheGoldenFp8RowsWithPowersOfTwo) {
  const json file = test::golden("formats.json");
  const auto numbers = e4m3_numbers(file);
  const json& rows = file["fp8_e4m3fn_ue8m0_block32"]["rows"];
  ASSERT_EQ(rows.size(), 7U);
  for (const json& row : rows) {
    SCOPED_TRACE(row["name"].get<std::string>());
    const auto raw = test::golden_bytes(row["raw"]);
    expect_golden_rows({RowFormat::kFp8Ue8m0, 256}, raw, row["bf16"], [&](std::size_t i) {
      const int exponent = std::to_integer<int>(raw[256 + i / 32]) - 127;
      return std::ldexp(numbers[std::to_integer<std::size_t>(raw[i])], exponent);
    });
  }
}

#if defined(__x86_64__)
// As engines set it for their threads.
TEST(RowFormat, KeepsSubnormalNumbersWhereTheThreadFlushesThem) {
  std::vector<std::byte> raw = every_byte();
  raw.insert(raw.end(), 8, std::byte{2});
  const RowCoding coding{RowFormat::kFp8Ue8m0, 256};
  const auto expected = decoded_f32(coding, raw.data());
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | 0x8040);
  const auto actual = decoded_f32(coding, raw.data());
  EXPECT_EQ(_mm_getcsr() & 0x8040, 0x8040U);
  _mm_setcsr(before);
  EXPECT_EQ(actual, expected);
  EXPECT_EQ(expected[1], 1U << 15);  // 2^-9 * 2^-125 = 2^15 * 2^-149
}
#endif

// What the golden rows leave out: the least power of two, which is subnormal, and the byte that is no number.
TEST(RowFormat, TakesEveryPowerOfTwo) {
  const auto numbers = e4m3_numbers(test::golden("formats.json"));
  for (int scale = 0; scale < 256; ++scale) {
    std::vector<std::byte> raw = every_byte();
    raw.insert(raw.end(), 8, static_cast<std::byte>(scale));
    const auto f32 = decoded_f32({RowFormat::kFp8Ue8m0, 256}, raw.data());
    for (std::size_t i = 0; i < 256; ++i) {
      const auto expected = scale == 255 ? std::nanf("") : static_cast<float>(std::ldexp(numbers[i], scale - 127));
      ASSERT_NO_FATAL_FAILURE(expect_same_f32(f32[i], std::bit_cast<std::uint32_t>(expected), i)) << scale;
    }
  }
}

TEST(RowFormat, DecodesTheGoldenNvfp4Rows) {
  const json file = test::golden("formats.json");
  const auto numbers = e4m3_numbers(file);
  const std::vector<double> levels = {0.0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};
  const json& rows = file["nvfp4"]["rows"];
  ASSERT_EQ(rows.size(), 5U);
  for (const json& row : rows) {
    SCOPED_TRACE(row["name"].get<std::string>());
    const auto raw = test::golden_bytes(row["raw"]);
    const float scale = float_of(row["weight_scale_2_f32"]);
    expect_golden_rows({RowFormat::kNvfp4, 160, scale}, raw, row["bf16"], [&](std::size_t i) {
      const auto codes = std::to_integer<std::size_t>(raw[i / 2]);
      const double block_scale = numbers[std::to_integer<std::size_t>(raw[80 + i / 16])];
      return levels[i % 2 == 0 ? codes & 15 : codes >> 4] * block_scale * scale;  // float64 holds the products exactly
    });
  }
}

TEST(RowFormat, RoundsToBf16LikeTheGoldenValues) {
  const json file = test::golden("formats.json");
  const auto f32 = test::golden_words<std::uint32_t>(file["f32_to_bf16"]["f32"]);
  const auto expected = test::golden_words<std::uint16_t>(file["f32_to_bf16"]["bf16"]);
  ASSERT_EQ(f32.size(), 24U);
  ASSERT_EQ(expected.size(), f32.size());
  std::vector<std::uint16_t> actual(f32.size());
  decode_bf16({RowFormat::kF32, f32.size()}, reinterpret_cast<const std::byte*>(f32.data()), 1, actual.data());
  EXPECT_EQ(actual, expected);
}

// Payload bits that rounding would carry into the exponent, or drop altogether.
TEST(RowFormat, ANanStaysANanInBf16) {
  for (const std::uint32_t bits : {0x7fffffffU, 0xffffffffU, 0x7f800001U, 0xff800001U, 0x7fc00000U}) {
    std::uint16_t bf16 = 0;
    decode_bf16({RowFormat::kF32, 1}, reinterpret_cast<const std::byte*>(&bits), 1, &bf16);
    EXPECT_TRUE(is_nan_bits(std::uint32_t{bf16} << 16)) << std::hex << bits;
    EXPECT_EQ(bf16 >> 15, bits >> 31) << std::hex << bits;
  }
}

float f16_by_definition(std::uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int fraction = half & 1023;
  const float sign = half >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction == 0 ? sign * std::numeric_limits<float>::infinity() : std::nanf("");
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
}

TEST(RowFormat, ConvertsEveryF16) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const auto word = static_cast<std::uint16_t>(half);
    float value = 0;
    decode_f32({RowFormat::kF16, 1}, reinterpret_cast<const std::byte*>(&word), 1, &value);
    const auto expected = std::bit_cast<std::uint32_t>(f16_by_definition(word));
    ASSERT_NO_FATAL_FAILURE(expect_same_f32(std::bit_cast<std::uint32_t>(value), expected, half));
  }
}

// A row in a file starts anywhere; the sanitizers see a load that needs alignment.
TEST(RowFormat, ReadsARowAtAnyAlignment) {
  for (const RowFormat format : kAllFormats) {
    SCOPED_TRACE(row_format_name(format));
    const std::size_t bytes = *row_bytes(format, 64);
    std::vector<std::byte> row(bytes);
    for (std::size_t i = 0; i < bytes; ++i) row[i] = static_cast<std::byte>(i * 31 % 113);
    const auto aligned = decoded_f32({format, 64}, row.data());
    for (std::size_t shift = 1; shift < 8; ++shift) {
      std::vector<std::byte> shifted(shift);
      shifted.insert(shifted.end(), row.begin(), row.end());
      EXPECT_EQ(decoded_f32({format, 64}, shifted.data() + shift), aligned) << "shifted by " << shift;
    }
  }
}

TEST(RowFormat, NamesGoBothWays) {
  for (const RowFormat format : kAllFormats) EXPECT_EQ(row_format_named(row_format_name(format)), format);
  EXPECT_EQ(row_format_name(RowFormat::kIq4Nl), "iq4_nl");
  EXPECT_EQ(row_format_named("IQ4_NL"), std::nullopt);
  EXPECT_EQ(row_format_named("q4_k"), std::nullopt);
  EXPECT_EQ(row_format_named(""), std::nullopt);
}

TEST(RowFormat, RowBytesRefusesWhatDoesNotFit) {
  EXPECT_EQ(row_bytes(RowFormat::kF32, 160), 640U);
  EXPECT_EQ(row_bytes(RowFormat::kF16, 160), 320U);
  EXPECT_EQ(row_bytes(RowFormat::kBf16, 161), 322U);
  EXPECT_EQ(row_bytes(RowFormat::kQ8_0, 160), 170U);
  EXPECT_EQ(row_bytes(RowFormat::kQ4_0, 160), 90U);
  EXPECT_EQ(row_bytes(RowFormat::kIq4Nl, 160), 90U);
  EXPECT_EQ(row_bytes(RowFormat::kIq4Nl, 161), std::nullopt);
  EXPECT_EQ(row_bytes(RowFormat::kQ8_0, 16), std::nullopt);
  EXPECT_EQ(row_bytes(RowFormat::kF32, UINT64_MAX / 4 + 1), std::nullopt);
  EXPECT_EQ(row_bytes(RowFormat::kQ8_0, UINT64_MAX - 31), std::nullopt);
  EXPECT_EQ(row_bytes(RowFormat::kFp8, 160), 160U);
  EXPECT_EQ(row_bytes(RowFormat::kFp8Ue8m0, 256), 264U);
  EXPECT_EQ(row_bytes(RowFormat::kFp8Ue8m0, 48), std::nullopt);
  EXPECT_EQ(row_bytes(RowFormat::kNvfp4, 160), 90U);
  EXPECT_EQ(row_bytes(RowFormat::kNvfp4, 168), std::nullopt);
}

TEST(RowFormat, TwoOfThemHaveAScaleOutside) {
  for (const RowFormat format : kAllFormats) {
    EXPECT_EQ(row_format_has_scale(format), format == RowFormat::kFp8 || format == RowFormat::kNvfp4);
  }
}

// A caller's number may be cast to the enumeration unseen.
TEST(RowFormat, AFormatThatIsNoneIsRefused) {
  for (const int number : {9, 200, 255}) {
    const auto none = static_cast<RowFormat>(number);
    EXPECT_EQ(row_bytes(none, 32), std::nullopt);
    EXPECT_EQ(row_format_name(none), "unknown");
    EXPECT_FALSE(row_format_has_scale(none));
  }
}

}  // namespace
}  // namespace rowtide
