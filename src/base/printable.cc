#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace rowtide {
namespace {

constexpr std::size_t kMaxBytes = 160;  // names of tensors reach 100

bool is_printable_byte(char byte) { return byte >= 0x20 && byte < 0x7f; }

}  // namespace

bool is_printable(std::string_view text) { return std::all_of(text.begin(), text.end(), is_printable_byte); }

std::string printable(std::string_view text) {
  std::string out;
  for (const char byte : text.substr(0, kMaxBytes)) {
    if (is_printable_byte(byte)) {
      out += byte;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    }
  }
  if (text.size() > kMaxBytes) out += "...";
  return out;
}

std::string without_controls(std::string_view text) {
  std::string out;
  for (const char byte : text) {
    const bool is_control = (byte >= 0 && byte < 0x20) || byte == 0x7f;
    out += is_control ? fmt::format("\\x{:02x}", static_cast<unsigned char>(byte)) : std::string(1, byte);
  }
  return out;
}

}  // namespace rowtide
