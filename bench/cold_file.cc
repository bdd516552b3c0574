#include "cold_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "base/error.h"

namespace rowtide::bench {
namespace {

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
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

}  // namespace

Result<std::uint64_t> resident_bytes(const std::string& path, std::uint64_t begin, std::uint64_t end) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const Descriptor file(path);
  if (file.get() < 0) return make_error(ErrorCode::kIo, "{}: {}", path, errno_text(errno));
  begin = begin / page * page;
  end = std::min(end, file.bytes());
  if (begin >= end) return std::uint64_t{0};
  void* const map = ::mmap(nullptr, end - begin, PROT_READ, MAP_SHARED, file.get(), static_cast<off_t>(begin));
  if (map == MAP_FAILED) return make_error(ErrorCode::kIo, "{}: mapping: {}", path, errno_text(errno));
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  const int failed = ::mincore(map, end - begin, pages.data()) != 0 ? errno : 0;
  ::munmap(map, end - begin);
  if (failed != 0) return make_error(ErrorCode::kIo, "{}: mincore: {}", path, errno_text(failed));
  return page * static_cast<std::uint64_t>(std::ranges::count_if(pages, [](unsigned char in) { return in & 1; }));
}

Result<double> make_cold(const std::string& path) {
  const Descriptor file(path);
  if (file.get() < 0) return make_error(ErrorCode::kIo, "{}: {}", path, errno_text(errno));
  if (const int error = ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED)) {
    return make_error(ErrorCode::kIo, "{}: evicting: {}", path, errno_text(error));
  }
  const auto resident = resident_bytes(path);
  if (!resident) return resident.error();
  const double share = static_cast<double>(*resident) / static_cast<double>(file.bytes());
  if (share < 0.01) return share;
  return make_error(ErrorCode::kResource,
                    "{}: {:.1f} % of it stays in memory after eviction, so it is not cold: another "
                    "process maps it",
                    path, 100 * share);
}

}  // namespace rowtide::bench
