#include "rowtide/row_format.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "support/golden.h"

namespace rowtide {
namespace {

using nlohmann::json;

const std::vector<RowFormat> kAllFormats = {RowFormat::kF32,  RowFormat::kF16,  RowFormat::kBf16,
                                            RowFormat::kQ8_0, RowFormat::kQ4_0, RowFormat::kIq4Nl};

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

std::vector<std::uint32_t> decoded_f32(RowFormat format, const std::byte* raw, std::size_t values) {
  std::vector<float> out(values);
  decode_f32(format, raw, values, out.data());
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

    const auto actual = decoded_f32(*format, raw.data(), values);
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
    const auto f32 = decoded_f32(format, raw.data(), values);
    std::vector<std::uint16_t> bf16(values);
    decode_bf16(format, raw.data(), values, bf16.data());
    for (std::size_t i = 0; i < values; ++i) {
      if (is_nan_bits(f32[i])) {
        EXPECT_TRUE(is_nan_bits(std::uint32_t{bf16[i]} << 16)) << "value " << i;
      } else {
        EXPECT_EQ(bf16[i], nearest_bf16(std::bit_cast<float>(f32[i]))) << "value " << i;
      }
    }
  }
}

TEST(RowFormat, RoundsToBf16LikeTheGoldenValues) {
  const json file = test::golden("formats.json");
  const auto f32 = test::golden_words<std::uint32_t>(file["f32_to_bf16"]["f32"]);
  const auto expected = test::golden_words<std::uint16_t>(file["f32_to_bf16"]["bf16"]);
  ASSERT_EQ(f32.size(), 24U);
  ASSERT_EQ(expected.size(), f32.size());
  std::vector<std::uint16_t> actual(f32.size());
  decode_bf16(RowFormat::kF32, reinterpret_cast<const std::byte*>(f32.data()), f32.size(), actual.data());
  EXPECT_EQ(actual, expected);
}

// Payload bits that rounding would carry into the exponent, or drop altogether.
TEST(RowFormat, ANanStaysANanInBf16) {
  for (const std::uint32_t bits : {0x7fffffffU, 0xffffffffU, 0x7f800001U, 0xff800001U, 0x7fc00000U}) {
    std::uint16_t bf16 = 0;
    decode_bf16(RowFormat::kF32, reinterpret_cast<const std::byte*>(&bits), 1, &bf16);
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
    decode_f32(RowFormat::kF16, reinterpret_cast<const std::byte*>(&word), 1, &value);
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
    const auto aligned = decoded_f32(format, row.data(), 64);
    for (std::size_t shift = 1; shift < 8; ++shift) {
      std::vector<std::byte> shifted(shift);
      shifted.insert(shifted.end(), row.begin(), row.end());
      EXPECT_EQ(decoded_f32(format, shifted.data() + shift, 64), aligned) << "shifted by " << shift;
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
}

// A caller's number may be cast to the enumeration unseen.
TEST(RowFormat, AFormatThatIsNoneIsRefused) {
  for (const int number : {6, 200, 255}) {
    const auto none = static_cast<RowFormat>(number);
    EXPECT_EQ(row_bytes(none, 32), std::nullopt);
    EXPECT_EQ(row_format_name(none), "unknown");
  }
}

}  // namespace
}  // namespace rowtide
