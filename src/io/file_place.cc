#include "rowtide/file_place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#include "io/process_maps.h"

namespace rowtide {
namespace {

using io::Mapping;

std::vector<Mapping> mappings_of(std::uint64_t begin, std::uint64_t end) {
  std::vector<Mapping> mappings = io::process_mappings();
  std::erase_if(mappings, [&](const Mapping& mapping) { return mapping.begin >= end || mapping.end <= begin; });
  return mappings;
}

}  // namespace

Result<FilePlace> find_file_place(const void* data, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  const std::uint64_t end = begin + bytes;
  const std::vector<Mapping> mappings = mappings_of(begin, end);
  if (mappings.empty() || mappings.front().begin > begin || mappings.back().end < end) {
    return Error{ErrorCode::kNotFound, "it is not mapped whole"};
  }
  const Mapping& first = mappings.front();
  if (!first.is_file()) return Error{ErrorCode::kNotFound, "it does not lie in a file mapping"};
  for (std::size_t i = 0; i < mappings.size(); ++i) {  // advice on a part of a mapping splits it into several
    const Mapping& mapping = mappings[i];
    const bool follows = mapping.inode == first.inode && mapping.begin - first.begin == mapping.offset - first.offset &&
                         (i == 0 || mapping.begin == mappings[i - 1].end);
    if (!follows) return Error{ErrorCode::kNotFound, fmt::format("its mapping of {} is not one stretch", first.path)};
    if (mapping.writable)
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
  const auto mappings = mappings_of(address, address + 1);
  ::munmap(page, 1);
  return mappings.size() == 1 && mappings[0].inode == place.inode;
}

}  // namespace rowtide
