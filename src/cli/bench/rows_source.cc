#include "cli/bench/rows_source.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "address/splitmix64.h"
#include "base/error.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "io/block_source.h"
#include "io/file.h"
#include "rowtide/checkpoint.h"

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kWriteBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kAlignment = 4096;
constexpr std::size_t kPathMax = 4096;

/// The scratch file's path for the signal handler, which may not call much.
char scratch_path[kPathMax];

void remove_scratch_and_end(int signal_number) {
  ::unlink(scratch_path);
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

void fill_synthetic_row(RowId id, std::uint64_t row_bytes, std::byte* out) {
  const std::uint64_t words = (row_bytes + 7) / 8;
  for (std::uint64_t k = 0; k < words; ++k) {
    const std::uint64_t word = splitmix64(words * id + k);
    std::memcpy(out + 8 * k, &word, std::min<std::uint64_t>(8, row_bytes - 8 * k));
  }
}

[[noreturn]] void fail_io(const std::string& path, const char* doing, int error) {
  throw Failure(kExitFailed, "io", fmt::format("{}: {}: {}", path, doing, errno_text(error)));
}

}  // namespace

class SyntheticRows {
 public:
  SyntheticRows(const std::string& folder, std::uint64_t bytes, std::uint64_t row_bytes)
      : rows_(bytes / row_bytes), row_bytes_(row_bytes) {
    check_space(folder, bytes);
    path_ = (std::filesystem::path(folder) / "rowtide-bench-XXXXXX").string();
    if (path_.size() >= kPathMax) throw usage_failure("--dir: {} is too long", folder);
    const int fd = ::mkostemp(path_.data(), O_CLOEXEC);
    if (fd < 0) fail_io(folder, "a scratch file cannot be made there", errno);
    std::strcpy(scratch_path, path_.c_str());
    for (int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, remove_scratch_and_end);
    try {
      write(fd);
    } catch (...) {
      ::close(fd);
      ::unlink(path_.c_str());
      throw;
    }
    ::close(fd);
  }
  ~SyntheticRows() {
    ::unlink(path_.c_str());
    for (int number : {SIGINT, SIGTERM, SIGHUP}) ::signal(number, SIG_DFL);
  }
  SyntheticRows(const SyntheticRows&) = delete;
  SyntheticRows& operator=(const SyntheticRows&) = delete;

  const std::string& path() const { return path_; }
  bool is_row(RowId id, const std::byte* row) const {
    std::vector<std::byte> expected(row_bytes_);
    fill_synthetic_row(id, row_bytes_, expected.data());
    return std::memcmp(expected.data(), row, row_bytes_) == 0;
  }

 private:
  static void check_space(const std::string& folder, std::uint64_t bytes) {
    struct statvfs space;
    if (::statvfs(folder.c_str(), &space) != 0) fail_io(folder, "is no folder for a scratch file", errno);
    const std::uint64_t free_bytes = space.f_bavail * space.f_frsize;
    if (bytes <= free_bytes) return;
    throw Failure(kExitFailed, "resource",
                  fmt::format("{}: has {} bytes free and --synthetic asks for {}; give a smaller size or another --dir",
                              folder, free_bytes, bytes));
  }

  /// Past the page cache where the file system lets us: that is three times as fast.
  void write(int fd) const {
    ::fcntl(fd, F_SETFL, O_DIRECT);  // refused or not: the writes below are aligned and serve both
    std::unique_ptr<std::byte, decltype(&std::free)> buffer(
        static_cast<std::byte*>(std::aligned_alloc(kAlignment, kWriteBytes)), &std::free);
    if (!buffer) throw std::bad_alloc();
    Progress progress("making the file");
    const std::uint64_t bytes = rows_ * row_bytes_;
    std::vector<std::byte> row(row_bytes_);
    std::uint64_t filled = 0, written = 0;
    for (RowId id = 0; id < rows_; ++id) {
      fill_synthetic_row(id, row_bytes_, row.data());
      for (std::uint64_t at = 0; at < row_bytes_;) {
        const std::uint64_t part = std::min(row_bytes_ - at, kWriteBytes - filled);
        std::memcpy(buffer.get() + filled, row.data() + at, part);
        filled += part;
        at += part;
        if (filled < kWriteBytes) continue;
        write_out(fd, buffer.get(), kWriteBytes, written);
        written += kWriteBytes;
        filled = 0;
        progress.update(static_cast<double>(written) / static_cast<double>(bytes));
      }
    }
    const std::uint64_t rest = (filled + kAlignment - 1) / kAlignment * kAlignment;
    std::memset(buffer.get() + filled, 0, rest - filled);
    write_out(fd, buffer.get(), rest, written);
    if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail_io(path_, "cutting to length", errno);
    if (::fdatasync(fd) != 0) fail_io(path_, "writing", errno);
  }

  void write_out(int fd, const std::byte* data, std::uint64_t bytes, std::uint64_t offset) const {
    for (std::uint64_t at = 0; at < bytes;) {
      const ssize_t done = ::pwrite(fd, data + at, bytes - at, static_cast<off_t>(offset + at));
      if (done > 0) {
        at += static_cast<std::uint64_t>(done);
      } else if (errno == EINVAL && (::fcntl(fd, F_GETFL) & O_DIRECT) != 0) {
        ::fcntl(fd, F_SETFL, 0);
      } else if (errno != EINTR) {
        fail_io(path_, "writing", errno);
      }
    }
  }

  std::string path_;
  std::uint64_t rows_, row_bytes_;
};

namespace {

/// Rows of which only the bytes are looked at: any format of that size will do.
Table bare_table(const std::string& path, std::uint64_t offset, std::uint64_t row_bytes) {
  std::uint64_t bytes = opened(io::open_file(path))->bytes();
  if (offset >= bytes) {
    throw Failure(kExitRefused, "malformed",
                  fmt::format("{}: --offset {} lies past its end, at {} bytes", path, offset, bytes));
  }
  const std::uint64_t rows = (bytes - offset) / row_bytes;
  if (rows == 0) {
    throw Failure(
        kExitRefused, "malformed",
        fmt::format("{}: {} bytes from byte {} hold no row of {} bytes", path, bytes - offset, offset, row_bytes));
  }
  return opened(table_at("rows", path, offset, rows, row_bytes / 2, RowFormat::kF16));
}

Table checkpoint_table(const std::string& path) {
  Checkpoint checkpoint = opened(Checkpoint::open(path));
  if (!checkpoint.tables().empty()) return checkpoint.tables().front();
  throw Failure(kExitRefused, "not_found", fmt::format("{}: holds no conditional-memory table", path));
}

/// "vda", "nvme0n1p2"; "none" for a file system without a block device.
std::string device_of(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return "none";
  std::error_code error;
  const auto link = std::filesystem::read_symlink(
      fmt::format("/sys/dev/block/{}:{}", major(status.st_dev), minor(status.st_dev)), error);
  return error ? "none" : link.filename().string();
}

}  // namespace

BenchSource::Range BenchSource::range(std::uint32_t file) const {
  Range range{UINT64_MAX, 0};
  for (const Extent& extent : table.extents) {
    if (extent.path != paths()[file]) continue;
    range.begin = std::min(range.begin, extent.offset);
    range.end = std::max(range.end, extent.offset + extent.rows * table.row_bytes);
  }
  return range;
}

BenchSource open_bench_source(const BenchRowsOptions& options) {
  std::shared_ptr<const SyntheticRows> synthetic;
  Table table;
  if (options.path) {
    table = checkpoint_table(*options.path);
  } else if (options.raw) {
    table = bare_table(*options.raw, options.offset, options.row_bytes);
  } else {
    if (*options.synthetic_bytes < options.row_bytes) {
      throw usage_failure("--synthetic: {} bytes hold no row of {}", *options.synthetic_bytes, options.row_bytes);
    }
    synthetic = std::make_shared<SyntheticRows>(options.folder, *options.synthetic_bytes, options.row_bytes);
    table = bare_table(synthetic->path(), 0, options.row_bytes);
  }
  RowMap map = value_of(RowMap::make(table));
  const auto blocks = opened(io::open_block_source(map.paths(), {}));
  std::string device = device_of(map.paths().front());
  return {std::move(table), std::move(map), blocks->block_bytes(), std::move(device), std::move(synthetic)};
}

void check_bench_rows(const BenchSource& source, std::string_view method, std::span<const RowId> ids,
                      std::span<const std::byte> rows) {
  constexpr std::size_t kSample = 64;
  const std::uint64_t row_bytes = source.table.row_bytes;
  const std::size_t step = source.synthetic || ids.size() <= kSample ? 1 : ids.size() / kSample;
  std::vector<std::byte> expected(row_bytes);
  for (std::size_t i = 0; i < ids.size(); i += step) {
    const std::byte* row = &rows[i * row_bytes];
    bool right = true;
    if (source.synthetic) {
      right = source.synthetic->is_row(ids[i], row);
    } else {
      const auto place = source.map.place(ids[i]);
      const auto file = opened(io::open_file(source.paths()[place.file]));
      check(file->read(place.offset, expected));
      right = std::memcmp(expected.data(), row, row_bytes) == 0;
    }
    if (!right) {
      throw Failure(kExitNotSo, "mismatch",
                    fmt::format("{}: {} delivered wrong bytes for row {}", source.table.name, method, ids[i]));
    }
  }
}

}  // namespace rowtide::cli
