// Numbers that the kernel tells in small text files, under /proc and /sys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rowtide::io {

/// The whole file; nothing if it cannot be read (not there, not for us, switched off).
std::optional<std::string> kernel_text(const std::string& path);

/// The number at the start of `text`; nothing if there is none ("max", "unlimited").
std::optional<std::uint64_t> leading_number(std::string_view text);

/// The number behind `name` in a text of lines "name number": named_number(meminfo, "MemAvailable:"). Units are not
/// looked at.
std::optional<std::uint64_t> named_number(std::string_view text, std::string_view name);

}  // namespace rowtide::io
