// Every instruction set that this CPU has decodes every row as the scalar reference does, bit for bit; of a NaN, the
// payload and sign may be others where two of them are multiplied.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "table/row_decoders.h"

namespace rowtide {
namespace {

// In a buffer of exactly the row's size, at any alignment: the address sanitizer sees a read beyond either end.
class Row {
 public:
  explicit Row(std::size_t bytes, std::size_t shift = 0) : buffer_(new std::byte[shift + bytes]), shift_(shift) {}
  std::byte* data() { return buffer_.get() + shift_; }

 private:
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t shift_;
};

bool is_nan(float value) { return std::isnan(value); }
bool is_nan(std::uint16_t bf16) { return (bf16 & 0x7fff) > 0x7f80; }

// Whether each set gives what the reference gives.
template <class Value>
void expect_same(const RowCoding& coding, const std::byte* raw, std::uint64_t rows) {
  const std::size_t values = rows * coding.values;
  const auto expected = std::make_unique_for_overwrite<Value[]>(values);
  row_decoder<Value>(kScalarDecoders, coding.format)(coding, raw, rows, expected.get());
  for (const RowDecoders* set : row_decoders().subspan(1)) {
    const auto actual = std::make_unique_for_overwrite<Value[]>(values);
    row_decoder<Value>(*set, coding.format)(coding, raw, rows, actual.get());
    if (coding.format >= RowFormat::kFp8) {
      for (std::size_t i = 0; i < values; ++i) {
        if (is_nan(expected[i]) && is_nan(actual[i])) actual[i] = expected[i];
      }
    }
    const bool same = std::memcmp(expected.get(), actual.get(), values * sizeof(Value)) == 0;
    EXPECT_TRUE(same) << set->instruction_set << ", " << row_format_name(coding.format) << ", " << rows << " rows of "
                      << coding.values << " values to " << sizeof(Value) << " bytes, scale " << coding.scale;
  }
}

void expect_same_outputs(const RowCoding& coding, const std::byte* raw, std::uint64_t rows = 1) {
  expect_same<float>(coding, raw, rows);
  expect_same<std::uint16_t>(coding, raw, rows);
}

std::vector<RowFormat> all_formats() {
  std::vector<RowFormat> formats;
  for (std::size_t i = 0; i < kRowFormats; ++i) formats.push_back(static_cast<RowFormat>(i));
  return formats;
}

TEST(RowDecoders, TheReferenceIsFirst) {
  ASSERT_FALSE(row_decoders().empty());
  EXPECT_EQ(row_decoders().front(), &kScalarDecoders);
}

// Every length up to several steps of the widest set and its rest, at alignments that no load may count on.
TEST(RowDecoders, AgreeOnRandomRowsOfEveryLength) {
  std::mt19937 random(7);
  for (const RowFormat format : all_formats()) {
    for (std::size_t values = 0; values <= 320; ++values) {
      const auto bytes = row_bytes(format, values);
      if (!bytes) continue;
      for (const std::size_t shift : {0, 1, 2, 7}) {
        const std::uint64_t rows = 1 + shift % 3;
        Row row(rows * *bytes, shift);
        std::generate_n(row.data(), rows * *bytes, [&] { return static_cast<std::byte>(random()); });
        expect_same_outputs({format, values, row_format_has_scale(format) ? 0.0002F : 1.0F}, row.data(), rows);
      }
    }
  }
}

// `blocks` blocks with the scales from `first_scale` on, each before the bytes from `first_code` on.
Row row_of_blocks(RowFormat format, std::size_t blocks, std::size_t first_scale, std::size_t first_code) {
  const std::size_t block_bytes = *row_bytes(format, kBlockValues);
  Row row(blocks * block_bytes);
  for (std::size_t i = 0; i < blocks; ++i) {
    std::byte* block = row.data() + i * block_bytes;
    const auto scale = static_cast<std::uint16_t>(first_scale + i);
    std::memcpy(block, &scale, kScaleBytes);
    for (std::size_t at = kScaleBytes; at < block_bytes; ++at) {
      block[at] = static_cast<std::byte>(first_code + at - kScaleBytes);
    }
  }
  return row;
}

// Every scale (zero, subnormal, normal, infinite and NaN of both signs) before every byte of codes.
TEST(RowDecoders, AgreeOnEveryScaleAndCode) {
  constexpr std::size_t kBlocks = 256;
  for (const RowFormat format : {RowFormat::kQ8_0, RowFormat::kQ4_0, RowFormat::kIq4Nl}) {
    const std::size_t code_bytes = *row_bytes(format, kBlockValues) - kScaleBytes;
    for (std::size_t first_scale = 0; first_scale < 0x10000; first_scale += kBlocks) {
      for (std::size_t first_code = 0; first_code < 256; first_code += code_bytes) {
        Row row = row_of_blocks(format, kBlocks, first_scale, first_code);
        expect_same_outputs({format, kBlocks * kBlockValues}, row.data());
      }
    }
  }
}

// One long row of all words; the formats of 16 bits have no others.
TEST(RowDecoders, AgreeOnEveryHalfWord) {
  Row row(2 * 0x10000);
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto word = static_cast<std::uint16_t>(i);
    std::memcpy(row.data() + 2 * i, &word, sizeof(word));
  }
  expect_same_outputs({RowFormat::kF16, 0x10000}, row.data());
  expect_same_outputs({RowFormat::kBf16, 0x10000}, row.data());
}

// Every upper half with the lower halves at which rounding turns, and NaNs whose payload lies there alone.
TEST(RowDecoders, AgreeOnRounding) {
  std::vector<std::uint32_t> words;
  for (std::uint32_t upper = 0; upper < 0x10000; ++upper) {
    for (const std::uint32_t lower : {0x0000U, 0x0001U, 0x7fffU, 0x8000U, 0x8001U, 0xffffU}) {
      words.push_back(upper << 16 | lower);
    }
  }
  const auto raw = std::as_bytes(std::span(words));
  expect_same_outputs({RowFormat::kF32, words.size()}, raw.data());
}

// Tiny, so that products become subnormal or zero; huge; not a power of two; and none at all.
constexpr float kScales[] = {1.0F, 0.00019931793F, 0x1p-126F, 0x1p-140F, 0x1.fep127F, -3.0F, 0.0F, INFINITY, NAN};

TEST(RowDecoders, AgreeOnEveryFp8CodeAndScale) {
  Row row(256 + 7);  // and a rest
  for (std::size_t i = 0; i < 256 + 7; ++i) row.data()[i] = static_cast<std::byte>(i);
  for (const float scale : kScales) expect_same_outputs({RowFormat::kFp8, 256 + 7, scale}, row.data());
  for (std::size_t exponent = 0; exponent < 256; ++exponent) {
    Row blocks(256 + 8);
    std::memcpy(blocks.data(), row.data(), 256);
    std::memset(blocks.data() + 256, static_cast<int>(exponent), 8);
    expect_same_outputs({RowFormat::kFp8Ue8m0, 256}, blocks.data());
  }
}

// Every block scale before each of the sixteen codes at each of its places.
TEST(RowDecoders, AgreeOnEveryNvfp4CodeAndScale) {
  constexpr std::size_t kBlocks = 256;
  Row row(kBlocks * 9);
  for (std::size_t shift = 0; shift < 16; ++shift) {
    for (std::size_t i = 0; i < kBlocks * 8; ++i) {
      row.data()[i] = static_cast<std::byte>((2 * i + shift) % 16 | (2 * i + 1 + shift) % 16 << 4);
    }
    for (std::size_t i = 0; i < kBlocks; ++i) row.data()[kBlocks * 8 + i] = static_cast<std::byte>(i);
    for (const float scale : kScales) expect_same_outputs({RowFormat::kNvfp4, kBlocks * 16, scale}, row.data());
  }
}

TEST(RowDecoders, ABundleIsItsRows) {
  constexpr std::size_t kRows = 8;
  constexpr std::size_t kValues = 160;
  std::mt19937 random(11);
  for (const RowFormat format : all_formats()) {
    const std::size_t bytes = *row_bytes(format, kValues);
    Row bundle(kRows * bytes);
    std::generate_n(bundle.data(), kRows * bytes, [&] { return static_cast<std::byte>(random()); });
    std::vector<std::uint16_t> together(kRows * kValues);
    decode_bf16({format, kValues}, bundle.data(), kRows, together.data());
    std::vector<std::uint16_t> apart(kRows * kValues);
    for (std::size_t i = 0; i < kRows; ++i) {
      decode_bf16({format, kValues}, bundle.data() + i * bytes, 1, apart.data() + i * kValues);
    }
    EXPECT_EQ(together, apart) << row_format_name(format);
  }
}

}  // namespace
}  // namespace rowtide
