#include "cli/bench/rows_state.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"
#include "cli/bench/rows_method.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "io/page_cache.h"
#include "io/system_memory.h"
#include "rowtide/byte_size.h"

namespace rowtide::cli {
namespace {

/// Which pages lie in the page cache, asked of the kernel one by one: rows lie far apart.
class PageCacheLook {
 public:
  explicit PageCacheLook(const BenchSource& source) : page_bytes_(source.page_bytes) {
    const OpenFiles files(source, 0);
    for (std::uint32_t file = 0; file < files.count(); ++file) {
      void* const map = ::mmap(nullptr, files.bytes(file), PROT_READ, MAP_SHARED, files[file], 0);
      if (map == MAP_FAILED) {
        throw Failure(kExitFailed, "resource", fmt::format("{}: mapping: {}", source.paths()[file], errno_text(errno)));
      }
      maps_.push_back({static_cast<std::byte*>(map), files.bytes(file)});
    }
  }
  ~PageCacheLook() {
    for (const auto& map : maps_) ::munmap(map.data(), map.size());
  }
  PageCacheLook(const PageCacheLook&) = delete;
  PageCacheLook& operator=(const PageCacheLook&) = delete;

  bool holds(std::uint32_t file, std::uint64_t page) const {
    unsigned char in = 0;
    return ::mincore(maps_[file].data() + page * page_bytes_, 1, &in) == 0 && (in & 1) != 0;
  }

 private:
  std::uint64_t page_bytes_;
  std::vector<std::span<std::byte>> maps_;
};

}  // namespace

double evict_rows(const BenchSource& source) {
  double most = 0;
  for (std::uint32_t file = 0; file < source.paths().size(); ++file) {
    const auto range = source.range(file);
    most = std::max(most, value_of(io::make_cold(source.paths()[file], range.begin, range.end)));
  }
  return most;
}

double cached_share(const BenchSource& source, std::span<const RowId> ids) {
  if (ids.empty()) return 1;
  const PageCacheLook look(source);
  std::size_t cached = 0;
  for (const RowId id : ids) {
    bool in = true;
    for (const RowMap::Part& part : source.map.parts()) {
      const auto place = part.place(id);
      const std::uint64_t last = (place.offset + part.bytes - 1) / source.page_bytes;
      for (std::uint64_t page = place.offset / source.page_bytes; in && page <= last; ++page)
        in = look.holds(place.file, page);
    }
    cached += in ? 1 : 0;
  }
  return static_cast<double>(cached) / static_cast<double>(ids.size());
}

void cache_rows(const BenchSource& source, std::span<const RowId> ids) {
  std::vector<Page> pages;
  pages_of(source, ids, pages, source.page_bytes);
  const OpenFiles files(source, 0);
  constexpr std::size_t kAhead = 4096;  // pages asked for before the first of them is waited for
  for (std::size_t at = 0; at < pages.size(); at += kAhead) {
    const auto some = std::span<const Page>(pages).subspan(at, std::min(kAhead, pages.size() - at));
    for_each_run(some, [&](std::uint32_t file, std::uint64_t first, std::uint64_t count) {
      ::posix_fadvise(files[file], static_cast<off_t>(first * source.page_bytes),
                      static_cast<off_t>(count * source.page_bytes), POSIX_FADV_WILLNEED);
    });
    for (const Page& page : some) {
      char byte = 0;
      if (::pread(files[page.file], &byte, 1, static_cast<off_t>(page.index * source.page_bytes)) < 0) {
        throw Failure(kExitFailed, "io", fmt::format("{}: {}", source.paths()[page.file], errno_text(errno)));
      }
    }
  }
}

void cache_table(const BenchSource& source) {
  check_memory_for(source, source.table.bytes(), "--state resident: the table", "resource");
  const OpenFiles files(source, 0);
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  Progress progress("reading the table");
  for (std::uint32_t file = 0; file < files.count(); ++file) {
    const auto range = source.range(file);
    for (std::uint64_t at = range.begin; at < range.end;) {
      const ssize_t got = ::pread(files[file], buffer.data(), buffer.size(), static_cast<off_t>(at));
      if (got <= 0) throw Failure(kExitFailed, "io", fmt::format("{}: {}", source.paths()[file], errno_text(errno)));
      at += static_cast<std::uint64_t>(got);
      progress.update(static_cast<double>(at - range.begin) / static_cast<double>(range.end - range.begin));
    }
  }
}

void check_memory_for(const BenchSource& source, std::uint64_t bytes, std::string_view what, const char* code) {
  std::vector<io::FileRange> rows;
  for (std::uint32_t file = 0; file < source.paths().size(); ++file) {
    const auto range = source.range(file);
    rows.push_back({source.paths()[file], range.begin, range.end - range.begin});
  }
  const auto available = value_of(io::available_memory(rows));
  if (bytes <= available.bytes()) return;
  throw Failure(kExitFailed, code,
                fmt::format("{} takes {}, and there is {}", what, byte_size_text(bytes), available.text()));
}

}  // namespace rowtide::cli
