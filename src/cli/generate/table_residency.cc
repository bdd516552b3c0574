#include "cli/generate/table_residency.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "io/process_maps.h"
#include "table/file_ranges.h"

namespace rowtide::cli {
namespace {

using io::Mapping;

class PageMap {
 public:
  PageMap() : descriptor_(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {}
  ~PageMap() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  /// How many of `pages` pages from `first` on are present; nothing if the kernel does not say.
  std::optional<std::uint64_t> present(std::uint64_t first, std::uint64_t pages) const {
    constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
    std::vector<std::uint64_t> entries(std::min<std::uint64_t>(pages, 65536));
    std::uint64_t count = 0;
    while (pages > 0) {
      std::size_t wanted = std::min<std::uint64_t>(pages, entries.size()) * sizeof(entries[0]);
      ssize_t got = pread(descriptor_, entries.data(), wanted, static_cast<off_t>(first * sizeof(entries[0])));
      if (got < static_cast<ssize_t>(sizeof(entries[0]))) return std::nullopt;
      auto read = static_cast<std::uint64_t>(got) / sizeof(entries[0]);
      count += std::count_if(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(read),
                             [](std::uint64_t entry) { return (entry & kPresent) != 0; });
      first += read;
      pages -= read;
    }
    return count;
  }

 private:
  int descriptor_;
};

/// The addresses at which `mapping` shows whole pages of the rows; empty (start >= end) if it shows none.
std::pair<std::uint64_t, std::uint64_t> overlap(const Mapping& mapping, const io::FileRange& rows, std::uint64_t page) {
  std::uint64_t first = (rows.offset + page - 1) / page * page;
  std::uint64_t last = (rows.offset + rows.bytes) / page * page;
  first = std::max(first, mapping.offset);
  last = std::min(last, mapping.offset + mapping.bytes());
  return {mapping.begin + first - mapping.offset, mapping.begin + last - mapping.offset};
}

}  // namespace

std::optional<std::uint64_t> resident_table_bytes(const Table& table) {
  auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  PageMap page_map;
  const std::vector<Mapping> mappings = io::process_mappings();
  std::uint64_t bytes = 0;
  bool mapped = false;
  for (const io::FileRange& rows : file_ranges(table)) {
    std::error_code ignored;
    std::string path = std::filesystem::canonical(rows.path, ignored).string();
    for (const Mapping& mapping : mappings) {
      if (mapping.path != path) continue;
      auto [start, end] = overlap(mapping, rows, page);
      if (start >= end) continue;
      auto pages = page_map.present(start / page, (end - start) / page);
      if (!pages) return std::nullopt;
      bytes += *pages * page;
      mapped = true;
    }
  }
  return mapped ? std::optional(bytes) : std::nullopt;
}

}  // namespace rowtide::cli
