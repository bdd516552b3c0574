#include "io/block_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "io/file_stamp.h"
#include "io/pread_pool.h"
#include "io/uring_queue.h"

namespace rowtide::io {
namespace {

constexpr std::uint32_t kBlockBytes = 4096;
constexpr std::uint32_t kBlockBytesMax = 65536;

struct AlignedFree {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using AlignedBuffer = std::unique_ptr<std::byte, AlignedFree>;

AlignedBuffer aligned_buffer(std::size_t bytes) {
  return AlignedBuffer(static_cast<std::byte*>(std::aligned_alloc(kBlockBytesMax, bytes)));
}

/// One file, opened one way.
struct OpenFile {
  int descriptor = -1;
  std::uint64_t bytes = 0;
  std::uint64_t stamp = 0;
  std::uint64_t device_id = 0;
  std::uint32_t block_bytes = kBlockBytes;

  OpenFile() = default;
  OpenFile(OpenFile&& other) noexcept { *this = std::move(other); }
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor, other.descriptor);
    bytes = other.bytes;
    stamp = other.stamp;
    device_id = other.device_id;
    block_bytes = other.block_bytes;
    return *this;
  }
  ~OpenFile() {
    if (descriptor >= 0) ::close(descriptor);
  }
};

/// What direct I/O on this descriptor must be aligned to; nothing if the file system offers none.
std::optional<std::uint32_t> direct_alignment([[maybe_unused]] int descriptor) {
#ifdef STATX_DIOALIGN
  struct statx info{};
  if (::statx(descriptor, "", AT_EMPTY_PATH, STATX_DIOALIGN, &info) == 0 && (info.stx_mask & STATX_DIOALIGN) != 0) {
    const std::uint32_t alignment = std::max(info.stx_dio_offset_align, info.stx_dio_mem_align);
    if (alignment == 0) return std::nullopt;
    return alignment;
  }
#endif
  return kBlockBytes;  // kernels before 6.1 do not tell; the probe read has the last word
}

/// 0, or the errno of reading the file's first block into `buffer`.
int probe_pread(const OpenFile& file, std::byte* buffer) {
  const ssize_t got = ::pread(file.descriptor, buffer, file.block_bytes, 0);
  if (got < 0) return errno;
  return static_cast<std::uint64_t>(got) == std::min<std::uint64_t>(file.block_bytes, file.bytes) ? 0 : EIO;
}

Result<OpenFile> open_with(const std::string& path, int flags) {
  OpenFile file;
  // A pipe without a writer would block for ever. The flag is taken back below: with it some kernels let a read through
  // io_uring fail instead of waiting for the device.
  file.descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
  if (file.descriptor < 0) {
    const int why = errno;
    const bool exhausted = why == EMFILE || why == ENFILE || why == ENOMEM;
    const ErrorCode code = exhausted ? ErrorCode::kResource : why == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo;
    return make_error(code, "{}: cannot be opened: {}", path, errno_text(why));
  }
  struct stat info{};
  if (::fstat(file.descriptor, &info) != 0) {
    return make_error(ErrorCode::kIo, "{}: cannot be examined: {}", path, errno_text(errno));
  }
  if (!S_ISREG(info.st_mode)) return make_error(ErrorCode::kUnsupported, "{}: is not a regular file", path);
  const int set = ::fcntl(file.descriptor, F_GETFL);
  if (set < 0 || ::fcntl(file.descriptor, F_SETFL, set & ~O_NONBLOCK) != 0) {
    return make_error(ErrorCode::kIo, "{}: cannot be set to wait for its reads: {}", path, errno_text(errno));
  }
  file.bytes = static_cast<std::uint64_t>(info.st_size);
  file.stamp = file_stamp(info);
  file.device_id = info.st_dev;
  return file;
}

/// The file opened for direct I/O, after a direct read that worked; else why not.
Result<OpenFile> open_direct(const std::string& path, std::byte* buffer) {
  auto file = open_with(path, O_DIRECT);
  if (!file) return file;
  const auto alignment = direct_alignment(file->descriptor);
  if (!alignment || *alignment > kBlockBytesMax) {
    return make_error(ErrorCode::kUnsupported, "{}: the file system offers no direct I/O", path);
  }
  file->block_bytes = std::max(kBlockBytes, *alignment);
  if (const int failure = probe_pread(*file, buffer)) {
    return make_error(ErrorCode::kIo, "{}: a direct read is refused: {}", path, errno_text(failure));
  }
  return file;
}

Result<OpenFile> open_buffered(const std::string& path, std::byte* buffer) {
  auto file = open_with(path, 0);
  if (!file) return file;
  ::posix_fadvise(file->descriptor, 0, 0, POSIX_FADV_RANDOM);  // read-ahead would drag in megabytes a row
  if (const int failure = probe_pread(*file, buffer)) {
    return make_error(ErrorCode::kIo, "{}: cannot be read: {}", path, errno_text(failure));
  }
  return file;
}

class DiskSource final : public BlockSource {
 public:
  DiskSource(std::vector<OpenFile> files, bool direct, std::uint32_t depth)
      : files_(std::move(files)), direct_(direct) {
    for (const OpenFile& file : files_) {
      descriptors_.push_back(file.descriptor);
      block_bytes_ = std::max(block_bytes_, file.block_bytes);
    }
    limit_ = InFlightLimit::of_device(files_.front().device_id, depth);
    set_method();
  }

  std::uint32_t block_bytes() const override { return block_bytes_; }
  std::uint64_t file_bytes(std::uint32_t file) const override { return files_[file].bytes; }
  std::uint64_t stamp(std::uint32_t file) const override { return files_[file].stamp; }
  const std::string& method() const override { return method_; }
  bool direct() const override { return direct_; }
  InFlightLimit& limit() override { return *limit_; }

  Result<std::unique_ptr<ReadQueue>> queue(std::uint32_t depth, std::span<std::byte> buffer) override {
    if (uring_) {
      auto queue = open_uring_queue(descriptors_, depth, buffer);
      if (queue) return queue;
      log_line_once(LogLevel::kWarn, fmt::format("{}; this reader uses pread threads", queue.error().message));
    }
    return open_pread_queue(descriptors_);
  }

  /// Tries io_uring by reading every file's first block through a ring and comparing it with pread's.
  Result<void> use_uring_if_it_works(std::byte* expected, std::byte* got) {
    auto queue = open_uring_queue(descriptors_, 1, {got, block_bytes_});
    if (!queue) return queue.error();
    for (std::uint32_t i = 0; i < files_.size(); ++i) {
      const ReadRequest request{i, block_bytes_, 0, got, 0};
      if (auto submitted = (*queue)->submit({&request, 1}); !submitted) return submitted;
      std::array<Completion, 1> completion;
      if (auto reaped = (*queue)->reap(1, completion); !reaped) return reaped.error();
      const std::uint64_t length = std::min<std::uint64_t>(block_bytes_, files_[i].bytes);
      if (completion[0].result < 0) {
        return make_error(ErrorCode::kIo, "a read through io_uring fails: {}", errno_text(-completion[0].result));
      }
      if (static_cast<std::uint64_t>(completion[0].result) != length || probe_pread(files_[i], expected) != 0 ||
          std::memcmp(expected, got, length) != 0) {
        return make_error(ErrorCode::kIo, "a read through io_uring gives other bytes than pread");
      }
    }
    uring_ = true;
    set_method();
    return {};
  }

 private:
  void set_method() {
    method_ = fmt::format("{}, {} I/O, {}-byte blocks", uring_ ? "io_uring" : "16 pread threads",
                          direct_ ? "direct" : "buffered", block_bytes_);
  }

  std::vector<OpenFile> files_;
  std::vector<int> descriptors_;
  std::shared_ptr<InFlightLimit> limit_;
  std::string method_;
  std::uint32_t block_bytes_ = kBlockBytes;
  bool direct_;
  bool uring_ = false;
};

Result<std::vector<OpenFile>> open_all(const std::vector<std::string>& paths, std::byte* buffer,
                                       Result<OpenFile> (*open_one)(const std::string&, std::byte*)) {
  std::vector<OpenFile> files;
  for (const std::string& path : paths) {
    auto file = open_one(path, buffer);
    if (!file) return std::move(file).error();
    files.push_back(*std::move(file));
  }
  return files;
}

}  // namespace

Result<std::unique_ptr<BlockSource>> open_block_source(const std::vector<std::string>& paths,
                                                       const BlockSourceOptions& options) {
  if (paths.empty()) return make_error(ErrorCode::kUsage, "no file to read blocks from");
  const AlignedBuffer expected = aligned_buffer(kBlockBytesMax);
  const AlignedBuffer got = aligned_buffer(kBlockBytesMax);
  if (!expected || !got) return make_error(ErrorCode::kResource, "no memory to probe {}", paths.front());

  Result<std::vector<OpenFile>> files = make_error(ErrorCode::kUnsupported, "direct I/O is switched off");
  if (options.allow_direct) files = open_all(paths, expected.get(), open_direct);
  const bool direct = files.ok();
  if (!direct) {
    if (files.error().code == ErrorCode::kNotFound) return files.error();
    const std::string why = files.error().message;
    files = open_all(paths, expected.get(), open_buffered);
    if (!files) return files.error();
    log_line_once(LogLevel::kWarn, fmt::format("{}; using buffered reads by 16 pread threads", why));
  }

  auto source = std::make_unique<DiskSource>(*std::move(files), direct, options.depth);
  if (direct && options.allow_uring) {
    if (auto works = source->use_uring_if_it_works(expected.get(), got.get()); !works) {
      log_line_once(LogLevel::kWarn, fmt::format("{}; using direct reads by 16 pread threads", works.error().message));
    }
  }
  return std::unique_ptr<BlockSource>(std::move(source));
}

}  // namespace rowtide::io
