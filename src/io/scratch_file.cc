#include "io/scratch_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <utility>

#include "base/error.h"

namespace rowtide::io {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;
constexpr std::size_t kPieceAlignment = 65536;
constexpr auto kTimeMost = std::chrono::seconds(3);

/// A new file without a name: nothing is left behind, however the process ends.
int open_nameless(const std::string& folder, int flags) {
  const int descriptor = ::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | flags, 0600);
  if (descriptor >= 0 || (errno != EOPNOTSUPP && errno != EISDIR)) return descriptor;
  std::string name = folder + "/.rowtide-XXXXXX";  // file systems that know no nameless files
  const int named = ::mkostemp(name.data(), O_CLOEXEC | flags);
  if (named >= 0) ::unlink(name.c_str());
  return named;
}

/// Bytes that an ordinary user may still write there.
std::uint64_t free_bytes(int descriptor) {
  struct statvfs system{};
  if (::fstatvfs(descriptor, &system) != 0) return 0;
  return static_cast<std::uint64_t>(system.f_bavail) * system.f_frsize;
}

using Piece = std::unique_ptr<std::byte, decltype(&std::free)>;

Piece new_piece() { return {static_cast<std::byte*>(std::aligned_alloc(kPieceAlignment, kPieceBytes)), std::free}; }

Error no_memory() { return make_error(ErrorCode::kResource, "no memory for {} bytes of buffer", kPieceBytes); }

}  // namespace

Result<ScratchFile> ScratchFile::open(const std::string& folder) {
  int descriptor = open_nameless(folder, O_DIRECT);
  if (descriptor < 0 && errno == EINVAL) descriptor = open_nameless(folder, 0);
  if (descriptor >= 0) return ScratchFile(descriptor);
  const ErrorCode code = errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kIo;
  return make_error(code, "{}: no file can be made there: {}", folder, errno_text(errno));
}

Result<ScratchFile> ScratchFile::make(const std::string& folder, std::uint64_t bytes_most, const Progress& progress) {
  auto file = open(folder);
  if (!file) return file;
  if (auto filled = file->fill_randomly(folder, bytes_most, progress); !filled) return filled.error();
  return file;
}

Result<ScratchFile> ScratchFile::make_of(const std::string& folder, std::uint64_t bytes, const Fill& fill,
                                         const Progress& progress) {
  auto file = open(folder);
  if (!file) return file;
  if (auto filled = file->fill(folder, bytes, fill, progress); !filled) return filled.error();
  return file;
}

Result<void> ScratchFile::fill_randomly(const std::string& folder, std::uint64_t bytes_most, const Progress& progress) {
  const std::uint64_t free = free_bytes(descriptor_);
  if (free < 2 * kBytesLeast) {
    return make_error(ErrorCode::kResource, "{}: {} bytes are free, {} are needed to measure the drive", folder, free,
                      2 * kBytesLeast);
  }
  const std::uint64_t wanted = std::clamp(free / 4, kBytesLeast, std::max(kBytesLeast, bytes_most));
  const Piece piece = new_piece();
  if (!piece) return no_memory();
  const std::span words(reinterpret_cast<std::uint64_t*>(piece.get()), kPieceBytes / sizeof(std::uint64_t));
  std::mt19937_64 random(std::random_device{}());
  for (std::uint64_t& word : words) word = random();
  const auto start = std::chrono::steady_clock::now();
  while (bytes_ < wanted && (bytes_ < kBytesLeast || std::chrono::steady_clock::now() - start < kTimeMost)) {
    const std::uint64_t twist = random();  // drives and what lies below them may find equal pieces
    for (std::uint64_t& word : words) word ^= twist;
    if (auto written = write(folder, {piece.get(), kPieceBytes}, wanted); !written) return written;
    progress(static_cast<double>(bytes_) / static_cast<double>(wanted));
  }
  return sync(folder);
}

Result<void> ScratchFile::fill(const std::string& folder, std::uint64_t bytes, const Fill& fill,
                               const Progress& progress) {
  if (const std::uint64_t free = free_bytes(descriptor_); free < bytes) {
    return make_error(ErrorCode::kResource, "{}: {} bytes are free, {} are asked for", folder, free, bytes);
  }
  const Piece piece = new_piece();
  if (!piece) return no_memory();
  while (bytes_ < bytes) {
    const std::uint64_t part = std::min<std::uint64_t>(kPieceBytes, bytes - bytes_);
    const std::uint64_t whole =
        (part + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;  // as direct I/O demands
    fill({piece.get(), part});
    std::memset(piece.get() + part, 0, whole - part);
    if (auto written = write(folder, {piece.get(), whole}, bytes); !written) return written;
    progress(std::min(1.0, static_cast<double>(bytes_) / static_cast<double>(bytes)));
  }
  bytes_ = bytes;
  if (::ftruncate(descriptor_, static_cast<off_t>(bytes)) != 0) {
    return make_error(ErrorCode::kIo, "{}: a scratch file cannot be cut to length: {}", folder, errno_text(errno));
  }
  return sync(folder);
}

/// Appends a piece of the `wanted` bytes.
Result<void> ScratchFile::write(const std::string& folder, std::span<const std::byte> piece, std::uint64_t wanted) {
  for (;;) {
    const ssize_t written = ::pwrite(descriptor_, piece.data(), piece.size(), static_cast<off_t>(bytes_));
    if (written < 0 && errno == EINTR) continue;
    if (written < static_cast<ssize_t>(piece.size())) {
      return make_error(ErrorCode::kIo, "{}: writing a scratch file of {} bytes failed: {}", folder, wanted,
                        errno_text(written < 0 ? errno : ENOSPC));
    }
    bytes_ += piece.size();
    return {};
  }
}

Result<void> ScratchFile::sync(const std::string& folder) const {
  if (::fdatasync(descriptor_) == 0) return {};
  return make_error(ErrorCode::kIo, "{}: a scratch file cannot be synchronised: {}", folder, errno_text(errno));
}

ScratchFile::ScratchFile(ScratchFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), bytes_(other.bytes_) {}

ScratchFile::~ScratchFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::string ScratchFile::path() const { return fmt::format("/proc/{}/fd/{}", ::getpid(), descriptor_); }

}  // namespace rowtide::io
