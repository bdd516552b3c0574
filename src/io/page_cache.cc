#include "io/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"

namespace rowtide::io {
namespace {

constexpr std::uint64_t kWindowBytes = std::uint64_t{1} << 30;  // looked at at once: 256 KiB of answers

class Descriptor {
 public:
  // O_NONBLOCK: a pipe that has no writer must not be waited for.
  explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  std::uint64_t bytes() const {
    struct stat status;
    return ::fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }

 private:
  int fd_;
};

std::uint64_t page_bytes() { return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)); }

/// Pages of [begin, end), which begins at a page, that are in memory; -1 with errno set.
std::int64_t resident_pages(int fd, std::uint64_t begin, std::uint64_t end, std::uint64_t page) {
  void* const map = ::mmap(nullptr, end - begin, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(begin));
  if (map == MAP_FAILED) return -1;
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  const int failed = ::mincore(map, end - begin, pages.data()) != 0 ? errno : 0;
  ::munmap(map, end - begin);
  errno = failed;
  if (failed != 0) return -1;
  return std::ranges::count_if(pages, [](unsigned char in) { return (in & 1) != 0; });
}

}  // namespace

Result<std::uint64_t> resident_bytes(const std::string& path, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t page = page_bytes();
  const Descriptor file(path);
  if (file.get() < 0) return make_error(ErrorCode::kIo, "{}: {}", path, errno_text(errno));
  begin = begin / page * page;
  end = std::min(end, file.bytes());
  std::uint64_t resident = 0;
  for (; begin < end; begin += kWindowBytes) {
    const auto pages = resident_pages(file.get(), begin, std::min(begin + kWindowBytes, end), page);
    if (pages < 0) return make_error(ErrorCode::kIo, "{}: looking at the page cache: {}", path, errno_text(errno));
    resident += page * static_cast<std::uint64_t>(pages);
  }
  return resident;
}

namespace {

/// The share of [begin, end) that is resident after evicting `bytes` from `offset` on (0: all that follows).
Result<double> share_after_evicting(const std::string& path, std::uint64_t begin, std::uint64_t end,
                                    std::uint64_t offset, std::uint64_t bytes) {
  const Descriptor file(path);
  if (file.get() < 0) return make_error(ErrorCode::kIo, "{}: {}", path, errno_text(errno));
  ::fdatasync(file.get());  // what is not written yet cannot be evicted; if this fails, the share tells
  const int error =
      ::posix_fadvise(file.get(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_DONTNEED);
  if (error != 0) return make_error(ErrorCode::kIo, "{}: evicting: {}", path, errno_text(error));
  const auto resident = resident_bytes(path, begin, end);
  if (!resident) return resident.error();
  end = std::min(end, file.bytes());
  if (begin >= end) return 0.0;
  const std::uint64_t page = page_bytes();  // whole pages are resident
  const std::uint64_t pages = (end + page - 1) / page - begin / page;
  return static_cast<double>(*resident) / static_cast<double>(page * pages);
}

}  // namespace

Result<double> make_cold(const std::string& path, std::uint64_t begin, std::uint64_t end) {
  constexpr double kColdShare = 0.01;
  const std::uint64_t bytes = end <= INT64_MAX ? end - begin : 0;
  auto share = share_after_evicting(path, begin, end, begin, bytes);
  // The cache keeps larger pieces than pages, and one that lies partly outside of what is named has stayed.
  if (share && *share >= kColdShare) share = share_after_evicting(path, begin, end, 0, 0);
  if (!share || *share < kColdShare) return share;
  return make_error(ErrorCode::kResource,
                    "{}: {:.1f} % of it stays in memory after eviction, so it is not cold: another process maps or "
                    "locks it, it is another user's file, or its file system keeps files in memory",
                    path, 100 * *share);
}

}  // namespace rowtide::io
