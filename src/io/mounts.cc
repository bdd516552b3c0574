#include "io/mounts.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

namespace rowtide::io {
namespace {

/// The kernel writes space, tab, newline and backslash as \ooo.
std::string unescaped_field(const std::string& text) {
  const auto octal = [](char c) { return c >= '0' && c <= '7'; };
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 3 < text.size() && octal(text[i + 1]) && octal(text[i + 2]) && octal(text[i + 3]);
    plain +=
        escape ? static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0')) : text[i];
    if (escape) i += 3;
  }
  return plain;
}

/// "36 35 98:0 /subtree /point rw,noatime master:1 - ext3 /dev/root rw": between options and " - " stand any number of
/// words.
std::optional<Mount> parse_mount(const std::string& line) {
  const std::size_t dash = line.find(" - ");
  if (dash == std::string::npos) return std::nullopt;
  Mount mount;
  std::string skipped;
  std::istringstream(line.substr(0, dash)) >> skipped >> skipped >> mount.device >> mount.subtree >> mount.point;
  std::istringstream(line.substr(dash + 3)) >> mount.type >> skipped >> mount.options;
  if (mount.point.empty() || mount.type.empty()) return std::nullopt;
  mount.subtree = unescaped_field(mount.subtree);
  mount.point = unescaped_field(mount.point);
  return mount;
}

}  // namespace

std::vector<Mount> mounts(const std::string& root) {
  std::vector<Mount> found;
  std::ifstream list(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(list, line);) {
    if (auto mount = parse_mount(line)) found.push_back(*std::move(mount));
  }
  return found;
}

std::optional<Mount> mount_of(std::string_view path, const std::string& root) {
  std::optional<Mount> found;
  for (Mount& mount : mounts(root)) {
    const std::string_view point = mount.point == "/" ? "" : std::string_view(mount.point);
    const bool above = path.starts_with(point) && (path.size() == point.size() || path[point.size()] == '/');
    // Of two on one point, the later one hides the other.
    if (above && (!found || mount.point.size() >= found->point.size())) found = std::move(mount);
  }
  return found;
}

bool lists(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::string_view item = list.substr(at, list.find(',', at) - at);
    if (item == word) return true;
    at += item.size() + 1;
  }
  return false;
}

}  // namespace rowtide::io
