#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "io/file_stamp.h"

namespace rowtide::io {
namespace {

Error past_end(const std::string& path, std::uint64_t offset, std::size_t wanted, std::uint64_t bytes) {
  return make_error(ErrorCode::kMalformed, "{}: cannot read {} bytes at offset {}, the file has {} bytes", path, wanted,
                    offset, bytes);
}

bool lies_within(std::uint64_t offset, std::size_t wanted, std::uint64_t bytes) {
  return offset <= bytes && wanted <= bytes - offset;
}

class DiskFile final : public File {
 public:
  DiskFile(std::string path, int descriptor, const struct stat& status)
      : path_(std::move(path)),
        descriptor_(descriptor),
        bytes_(static_cast<std::uint64_t>(status.st_size)),
        stamp_(file_stamp(status)) {}
  ~DiskFile() override { ::close(descriptor_); }
  DiskFile(const DiskFile&) = delete;
  DiskFile& operator=(const DiskFile&) = delete;

  const std::string& path() const override { return path_; }
  std::uint64_t bytes() const override { return bytes_; }
  std::uint64_t stamp() const override { return stamp_; }

  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!lies_within(offset, out.size(), bytes_)) return past_end(path_, offset, out.size(), bytes_);
    std::size_t done = 0;
    while (done < out.size()) {
      const std::uint64_t at = offset + done;
      const ssize_t got = ::pread(descriptor_, out.data() + done, out.size() - done, static_cast<off_t>(at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        return make_error(ErrorCode::kIo, "{}: reading {} bytes at offset {} failed: {}", path_, out.size() - done, at,
                          errno_text(errno));
      }
      if (got == 0) {
        return make_error(ErrorCode::kMalformed, "{}: the file had {} bytes when it was opened and now ends at {}",
                          path_, bytes_, at);
      }
      done += static_cast<std::size_t>(got);
    }
    return {};
  }

 private:
  const std::string path_;
  const int descriptor_;
  const std::uint64_t bytes_;
  const std::uint64_t stamp_;
};

class MemoryFile final : public File {
 public:
  MemoryFile(std::string path, std::vector<std::byte> content) : path_(std::move(path)), content_(std::move(content)) {}

  const std::string& path() const override { return path_; }
  std::uint64_t bytes() const override { return content_.size(); }

  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (!lies_within(offset, out.size(), bytes())) return past_end(path_, offset, out.size(), bytes());
    if (!out.empty()) std::memcpy(out.data(), content_.data() + offset, out.size());
    return {};
  }

 private:
  const std::string path_;
  const std::vector<std::byte> content_;
};

Error open_error(const std::string& path, int error) {
  const ErrorCode code = error == ENOENT || error == ENOTDIR  ? ErrorCode::kNotFound
                         : error == EMFILE || error == ENFILE ? ErrorCode::kResource
                                                              : ErrorCode::kIo;
  return make_error(code, "{}: cannot be opened: {}", path, errno_text(error));
}

}  // namespace

Result<std::unique_ptr<File>> open_file(const std::string& path) {
  // O_NONBLOCK only matters for what is refused below: a pipe without a writer would block for ever.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return open_error(path, errno);
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) {
    const int error = errno;
    ::close(descriptor);
    return make_error(ErrorCode::kIo, "{}: fstat failed: {}", path, errno_text(error));
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor);
    return make_error(ErrorCode::kUnsupported, "{}: is {}, not a regular file", path,
                      S_ISDIR(status.st_mode) ? "a directory" : "a device, pipe or socket");
  }
  // Without this a header of some kilobytes would drag megabytes of read-ahead in. Advice only: its failure is no
  // error.
  ::posix_fadvise(descriptor, 0, 0, POSIX_FADV_RANDOM);
  return std::unique_ptr<File>(new DiskFile(path, descriptor, status));
}

std::unique_ptr<File> memory_file(std::string path, std::vector<std::byte> content) {
  return std::make_unique<MemoryFile>(std::move(path), std::move(content));
}

}  // namespace rowtide::io
