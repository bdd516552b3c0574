#include "rowtide/byte_size.h"

#include <array>
#include <cctype>
#include <charconv>
#include <optional>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kKib = std::uint64_t{1} << 10, kMib = kKib << 10, kGib = kMib << 10, kTib = kGib << 10;

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array<Unit, 14> kUnits = {{{"", 1},
                                          {"b", 1},
                                          {"k", kKib},
                                          {"kib", kKib},
                                          {"kb", 1'000},
                                          {"m", kMib},
                                          {"mib", kMib},
                                          {"mb", 1'000'000},
                                          {"g", kGib},
                                          {"gib", kGib},
                                          {"gb", 1'000'000'000},
                                          {"t", kTib},
                                          {"tib", kTib},
                                          {"tb", 1'000'000'000'000}}};

std::optional<std::uint64_t> unit_bytes(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& unit : kUnits) {
    if (unit.name == lower) return unit.bytes;
  }
  return std::nullopt;
}

/// Takes digits off the front of `text`.
std::string_view take_digits(std::string_view& text) {
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9') ++count;
  const std::string_view digits = text.substr(0, count);
  text.remove_prefix(count);
  return digits;
}

/// 0.`digits` of `unit`, of at most six digits, so that the product fits: 10^6 * 2^40 < 2^60.
std::uint64_t fraction_of(std::string_view digits, std::uint64_t unit) {
  std::uint64_t fraction = 0, scale = 1;
  for (const char digit : digits) {
    fraction = fraction * 10 + static_cast<std::uint64_t>(digit - '0');
    scale *= 10;
  }
  return fraction * unit / scale;
}

Error no_size(std::string_view text) {
  return make_error(ErrorCode::kUsage,
                    "'{}' is no size; write a number and a unit, such as 4GiB, 512MiB or 1.5GiB (GB counts in 1000s)",
                    printable(text));
}

}  // namespace

Result<std::uint64_t> parse_byte_size(std::string_view text) {
  std::string_view rest = text;
  const std::string_view whole_digits = take_digits(rest);
  std::string_view fraction_digits;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction_digits = take_digits(rest);
    if (fraction_digits.empty() || fraction_digits.size() > 6) return no_size(text);
  }
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const auto unit = unit_bytes(rest);
  const bool part_of_a_byte = !fraction_digits.empty() && unit == 1;
  if (whole_digits.empty() || !unit || part_of_a_byte) return no_size(text);

  std::uint64_t whole = 0;
  const auto parsed = std::from_chars(whole_digits.data(), whole_digits.data() + whole_digits.size(), whole);
  const auto whole_bytes = parsed.ec == std::errc() ? checked_mul(whole, *unit) : std::nullopt;
  const auto bytes = whole_bytes ? checked_add(*whole_bytes, fraction_of(fraction_digits, *unit)) : std::nullopt;
  if (!bytes) return make_error(ErrorCode::kUsage, "'{}' is more bytes than 64 bits can count", printable(text));
  return *bytes;
}

std::string byte_size_text(std::uint64_t bytes) {
  const auto size = static_cast<double>(bytes);
  if (bytes >= kGib) return fmt::format("{:.3f} GiB", size / static_cast<double>(kGib));
  if (bytes >= kMib) return fmt::format("{:.1f} MiB", size / static_cast<double>(kMib));
  return fmt::format("{} bytes", bytes);
}

}  // namespace rowtide
