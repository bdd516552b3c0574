#include "io/process_maps.h"

#include <fmt/format.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <optional>

namespace rowtide::io {
namespace {

std::string unescaped_path(std::string path) {
  for (std::size_t at = 0; (at = path.find("\\012", at)) != std::string::npos; ++at) path.replace(at, 4, "\n");
  return path;
}

std::optional<Mapping> parse_mapping(const std::string& line) {
  Mapping mapping;
  char permissions[8] = {}, device[32] = {}, inode[32] = {};
  int path_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %31s %31s %n", &mapping.begin, &mapping.end,
                  permissions, &mapping.offset, device, inode, &path_at) != 6) {
    return std::nullopt;
  }
  mapping.writable = permissions[1] == 'w';
  mapping.device = device;
  mapping.inode = fmt::format("{} {}", device, inode);
  mapping.path = unescaped_path(line.substr(static_cast<std::size_t>(path_at)));
  return mapping;
}

/// A line of smaps that says more of the mapping above it. Its flags come last.
void add_detail(const std::string& line, Mapping& mapping, std::uint64_t& resident_bytes) {
  std::uint64_t kib = 0;
  if (std::sscanf(line.c_str(), "Rss: %" SCNu64 " kB", &kib) == 1) resident_bytes = kib * 1024;
  const bool locked = line.starts_with("VmFlags:") && (line + ' ').find(" lo ") != std::string::npos;
  if (locked) mapping.locked_bytes = resident_bytes;
}

}  // namespace

std::vector<Mapping> process_mappings(Detail detail, const std::string& root) {
  std::vector<Mapping> mappings;
  std::uint64_t resident_bytes = 0;
  std::ifstream list(root + (detail == Detail::kLocked ? "/proc/self/smaps" : "/proc/self/maps"));
  for (std::string line; std::getline(list, line);) {
    if (auto mapping = parse_mapping(line)) {
      mappings.push_back(*std::move(mapping));
    } else if (!mappings.empty()) {
      add_detail(line, mappings.back(), resident_bytes);
    }
  }
  return mappings;
}

}  // namespace rowtide::io
