#include "rowtide/byte_size.h"

#include <gtest/gtest.h>

#include "support/memory_disk.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

TEST(ByteSize, ReadsEachUnitInEitherCase) {
  const std::pair<const char*, std::uint64_t> right[] = {
      {"0", 0},
      {"4096", 4096},
      {"4096B", 4096},
      {"3K", 3072},
      {"3kib", 3072},
      {"3KB", 3000},
      {"512MiB", 512u << 20},
      {"512 MiB", 512u << 20},
      {"512m", 512u << 20},
      {"512MB", 512'000'000},
      {"4GiB", 4 * kGib},
      {"4G", 4 * kGib},
      {"4g", 4 * kGib},
      {"4GB", 4'000'000'000},
      {"2TiB", 2048 * kGib},
      {"2T", 2048 * kGib},
      {"2TB", 2'000'000'000'000},
      {"1.5GiB", 3 * kGib / 2},
      {"0.25G", kGib / 4},
      {"1.333333KiB", 1365},
      {"1.999999TB", 1'999'999'000'000},
      {"18446744073709551615", ~std::uint64_t{0}},
      {"17179869183GiB", 17179869183u * kGib},
  };
  for (const auto& [text, bytes] : right) {
    const auto parsed = parse_byte_size(text);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(ByteSize, RefusesWhatIsNoSize) {
  for (const char* text :
       {"",       " ",     "GiB",   "-4GiB", "+4GiB", " 4GiB",        "4GiB ", "4  GiB", "4XB", "4GiBs", "4 Gi B",
        "1,5GiB", ".5GiB", "4.GiB", "1.5",   "1.5B",  "1.1234567GiB", "0x10",  "1e9",    "nan", "4G4",   "1.2.3G"}) {
    expect_refused(parse_byte_size(text), ErrorCode::kUsage, {"'" + std::string(text) + "'", "4GiB"});
  }
  expect_refused(parse_byte_size("4\n"), ErrorCode::kUsage, {"'4\\x0a'"});
}

TEST(ByteSize, RefusesWhatDoesNotFit64Bits) {
  for (const char* text : {"18446744073709551616", "17179869184GiB", "16777216TiB", "99999999999999999999999G"}) {
    expect_refused(parse_byte_size(text), ErrorCode::kUsage, {text, "64 bits"});
  }
}

TEST(ByteSize, IsWrittenForPeople) {
  EXPECT_EQ(byte_size_text(0), "0 bytes");
  EXPECT_EQ(byte_size_text(61440), "61440 bytes");
  EXPECT_EQ(byte_size_text(23'444'224), "22.4 MiB");
  EXPECT_EQ(byte_size_text(28'800'138'240), "26.822 GiB");
}

}  // namespace
}  // namespace rowtide
