#include "ggml/mapping.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <optional>
#include <vector>

namespace rowtide::ggml {
namespace {

/// One line of /proc/self/maps (proc(5)).
struct Region {
  std::uintptr_t begin = 0, end = 0;
  std::uint64_t offset = 0;  // of `begin` in the file
  bool writable = false;
  std::string inode;  // "device inode", as the kernel prints both
  std::string path;
};

std::string unescaped(std::string path) {
  for (std::size_t at = 0; (at = path.find("\\012", at)) != std::string::npos; ++at) path.replace(at, 4, "\n");
  return path;
}

std::optional<Region> parse_region(const std::string& line) {
  Region region;
  char permissions[8] = {}, device[32] = {}, inode[32] = {};
  int path_at = 0;
  if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %7s %" SCNx64 " %31s %31s %n", &region.begin, &region.end,
                  permissions, &region.offset, device, inode, &path_at) != 6) {
    return std::nullopt;
  }
  region.writable = permissions[1] == 'w';
  region.inode = fmt::format("{} {}", device, inode);
  region.path = unescaped(line.substr(static_cast<std::size_t>(path_at)));
  return region;
}

std::vector<Region> regions_of(std::uintptr_t begin, std::uintptr_t end) {
  std::vector<Region> regions;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    auto region = parse_region(line);
    if (region && region->begin < end && region->end > begin) regions.push_back(*std::move(region));
  }
  return regions;
}

}  // namespace

Result<FilePlace> find_file_place(const void* data, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uintptr_t end = begin + bytes;
  const std::vector<Region> regions = regions_of(begin, end);
  if (regions.empty() || regions.front().begin > begin || regions.back().end < end) {
    return Error{ErrorCode::kNotFound, "it is not mapped whole"};
  }
  const Region& first = regions.front();
  if (first.path.empty() || first.path[0] != '/')
    return Error{ErrorCode::kNotFound, "it does not lie in a file mapping"};
  for (std::size_t i = 0; i < regions.size(); ++i) {  // advice on a part of a mapping splits it into several regions
    const Region& region = regions[i];
    const bool follows = region.inode == first.inode && region.begin - first.begin == region.offset - first.offset &&
                         (i == 0 || region.begin == regions[i - 1].end);
    if (!follows) return Error{ErrorCode::kNotFound, fmt::format("its mapping of {} is not one stretch", first.path)};
    if (region.writable)
      return Error{ErrorCode::kNotFound, fmt::format("its mapping of {} may be written to", first.path)};
  }
  FilePlace place{first.path, first.offset + (begin - first.begin), first.inode};
  if (is_still_there(place)) return place;
  return Error{ErrorCode::kNotFound, fmt::format("{} was replaced or removed since it was mapped", first.path)};
}

// Both sides are read from the process map, because stat() names files of overlayfs and btrfs differently.
bool is_still_there(const FilePlace& place) {
  const int descriptor = ::open(place.path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  void* page = ::mmap(nullptr, 1, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ::close(descriptor);
  if (page == MAP_FAILED) return false;
  const auto address = reinterpret_cast<std::uintptr_t>(page);
  const auto regions = regions_of(address, address + 1);
  ::munmap(page, 1);
  return regions.size() == 1 && regions[0].inode == place.inode;
}

}  // namespace rowtide::ggml
