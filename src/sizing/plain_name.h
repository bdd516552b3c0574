// Names as people write them, made comparable.
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace rowtide::sizing {

/// In lower case, with hyphens where others write spaces or underscores.
inline std::string hyphenated(std::string_view name) {
  std::string result;
  for (const char each : name) {
    const bool is_gap = each == ' ' || each == '_' || each == '-';
    if (is_gap && (result.empty() || result.back() == '-')) continue;
    result += is_gap ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  }
  while (!result.empty() && result.back() == '-') result.pop_back();
  return result;
}

/// The same without the maker's name and without gaps: "NVIDIA RTX 5090", "rtx-5090" and "RTX5090" are one.
inline std::string plain_name(std::string_view name) {
  std::string plain = hyphenated(name);
  for (const std::string_view maker : {"nvidia-", "amd-", "apple-"}) {
    if (plain.starts_with(maker)) plain.erase(0, maker.size());
  }
  plain.erase(std::remove(plain.begin(), plain.end(), '-'), plain.end());
  return plain;
}

}  // namespace rowtide::sizing
