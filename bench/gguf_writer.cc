#include "gguf_writer.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>
#include <thread>

#include "base/error.h"

namespace rowtide::bench {
namespace {

constexpr std::uint64_t kAlignment = 32;
constexpr std::uint64_t kPieceBytes = 8 << 20, kPageBytes = 4096;

enum KeyType : std::uint32_t { kU32 = 4, kI32 = 5, kFloat32 = 6, kBool = 7, kString = 8, kArray = 9, kU64 = 10 };

std::uint64_t align(std::uint64_t value) { return (value + kAlignment - 1) / kAlignment * kAlignment; }

/// Walks the keys of a well-formed GGUF file that lies in memory.
class KeyWalk {
 public:
  explicit KeyWalk(std::string_view file) : rest_(file) {}

  template <class T>
  T number() {
    T value{};
    const auto bytes = take(sizeof value);
    if (bytes.size() == sizeof value) bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::string_view text() { return take(number<std::uint64_t>()); }
  void skip_value(std::uint32_t type) {
    static constexpr std::uint8_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kString) {
      text();
    } else if (type == kArray) {
      const auto element = number<std::uint32_t>();
      const auto count = number<std::uint64_t>();
      for (std::uint64_t i = 0; i < count && ok_; ++i) skip_value(element);
    } else if (type < std::size(kSizes)) {
      take(kSizes[type]);
    } else {
      ok_ = false;
    }
  }
  std::string_view rest() const { return rest_; }
  bool ok() const { return ok_; }

 private:
  std::string_view take(std::uint64_t bytes) {
    ok_ = ok_ && bytes <= rest_.size();
    if (!ok_) return {};
    const auto taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  std::string_view rest_;
  bool ok_ = true;
};

/// The temporary file, removed unless it was published. Written around the page cache where the file system lets it:
/// that is several times faster than through it, and leaves the file cold.
class Draft {
 public:
  explicit Draft(std::string path) : target_(std::move(path)), path_(target_ + ".part") {
    constexpr int kFlags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    fd_ = ::open(path_.c_str(), kFlags | O_DIRECT, 0644);
    if (fd_ < 0 && errno == EINVAL) fd_ = ::open(path_.c_str(), kFlags, 0644);
  }
  ~Draft() {
    if (fd_ < 0) return;
    ::close(fd_);
    if (!published_) ::unlink(path_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  bool open() const { return fd_ >= 0; }
  const std::string& path() const { return path_; }

  /// 0 or an errno value. Everything is a multiple of 4 KiB.
  int write(std::uint64_t offset, const std::byte* data, std::size_t bytes) const {
    const auto wrote = ::pwrite(fd_, data, bytes, static_cast<off_t>(offset));
    if (wrote < 0) return errno;
    return static_cast<std::size_t>(wrote) == bytes ? 0 : ENOSPC;
  }
  int publish(std::uint64_t bytes) {
    if (::ftruncate(fd_, static_cast<off_t>(bytes)) != 0 || ::fdatasync(fd_) != 0) return errno;
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_DONTNEED);
    if (::rename(path_.c_str(), target_.c_str()) != 0) return errno;
    published_ = true;
    return 0;
  }

 private:
  std::string target_, path_;
  int fd_ = -1;
  bool published_ = false;
};

/// The file's content by place: any stretch of it can be made on its own.
struct Content {
  std::string head;
  const std::vector<Tensor>& tensors;
  std::vector<std::uint64_t> offsets;  // of the tensors, from the start of the file

  std::uint64_t bytes() const { return align(offsets.back() + tensors.back().bytes()); }

  /// Writes bytes [from, from + out.size()) of the file; gaps and what lies beyond its end are zeros.
  void fill(std::uint64_t from, std::span<std::byte> out, std::vector<std::byte>& scratch) const {
    const std::uint64_t to = from + out.size();
    std::ranges::fill(out, std::byte{0});
    if (from < head.size()) std::memcpy(out.data(), head.data() + from, std::min(head.size() - from, out.size()));
    auto at = std::ranges::upper_bound(offsets, from) - offsets.begin();
    for (std::size_t t = at > 0 ? at - 1 : 0; t < tensors.size() && offsets[t] < to; ++t) {
      const Tensor& tensor = tensors[t];
      const std::uint64_t begin = std::max(from, offsets[t]), end = std::min(to, offsets[t] + tensor.bytes());
      if (begin >= end) continue;
      const std::uint64_t first = (begin - offsets[t]) / tensor.unit_bytes;
      const std::uint64_t last = (end - offsets[t] + tensor.unit_bytes - 1) / tensor.unit_bytes;
      scratch.resize((last - first) * tensor.unit_bytes);
      tensor.fill(first, last - first, scratch.data());
      const std::uint64_t skipped = begin - offsets[t] - first * tensor.unit_bytes;
      std::memcpy(out.data() + (begin - from), scratch.data() + skipped, end - begin);
    }
  }
};

void show_progress(std::uint64_t done, std::uint64_t all, double seconds) {
  constexpr double kGib = 1 << 30;
  const auto filled = static_cast<std::size_t>(30 * done / all);
  if (::isatty(STDERR_FILENO) == 0 && done < all) return;  // a log gets the last line alone
  fmt::print(stderr, "\r[{:<30}] {:.2f} of {:.2f} GiB, {:.2f} GiB/s ", std::string(filled, '#'),
             static_cast<double>(done) / kGib, static_cast<double>(all) / kGib,
             static_cast<double>(done) / kGib / std::max(seconds, 1e-3));
}

/// Makes and writes the file piece by piece with every core; 0 or the first errno value.
int write_pieces(const Draft& draft, const Content& content) {
  const std::uint64_t pieces = (content.bytes() + kPieceBytes - 1) / kPieceBytes;
  std::atomic<std::uint64_t> next{0}, done{0};
  std::atomic<int> failure{0};
  const auto started = std::chrono::steady_clock::now();
  auto work = [&] {
    std::vector<std::byte> scratch;
    auto* const piece = static_cast<std::byte*>(std::aligned_alloc(kPageBytes, kPieceBytes));
    for (std::uint64_t i; failure == 0 && (i = next++) < pieces;) {
      const std::uint64_t from = i * kPieceBytes;
      const std::uint64_t bytes =
          std::min(kPieceBytes, (content.bytes() - from + kPageBytes - 1) / kPageBytes * kPageBytes);
      content.fill(from, {piece, bytes}, scratch);
      if (const int error = draft.write(from, piece, bytes)) failure = error;
      done += bytes;
    }
    std::free(piece);
  };
  std::vector<std::jthread> workers;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) workers.emplace_back(work);
  while (done < content.bytes() && failure == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    show_progress(std::min(done.load(), content.bytes()), content.bytes(),
                  std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count());
  }
  workers.clear();
  fmt::print(stderr, "\n");
  return failure;
}

std::optional<Error> room_for(std::uint64_t bytes, const std::string& path) {
  const auto folder = std::filesystem::absolute(path).parent_path().string();
  struct statvfs disk;
  if (::statvfs(folder.c_str(), &disk) != 0) {
    return make_error(ErrorCode::kIo, "{}: {}", folder, errno_text(errno));
  }
  const auto free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (free >= bytes) return std::nullopt;
  return make_error(ErrorCode::kResource, "{}: the file needs {} bytes, {} more than the disk has free", path, bytes,
                    bytes - free);
}

}  // namespace

void GgufWriter::text(std::string_view value) {
  raw<std::uint64_t>(value.size());
  keys_.append(value);
}

void GgufWriter::begin_key(std::string_view name, std::uint32_t type) {
  text(name);
  raw(type);
  ++key_count_;
}

template <class T>
void GgufWriter::array(std::string_view name, std::uint32_t type, const std::vector<T>& values) {
  begin_key(name, kArray);
  raw(type);
  raw<std::uint64_t>(values.size());
  for (const T value : values) raw(value);
}

void GgufWriter::key(std::string_view name, std::string_view value) {
  begin_key(name, kString);
  text(value);
}
void GgufWriter::key(std::string_view name, std::uint32_t value) {
  begin_key(name, kU32);
  raw(value);
}
void GgufWriter::key(std::string_view name, float value) {
  begin_key(name, kFloat32);
  raw(value);
}
void GgufWriter::key(std::string_view name, const std::vector<std::uint32_t>& values) { array(name, kU32, values); }
void GgufWriter::key(std::string_view name, const std::vector<std::int32_t>& values) { array(name, kI32, values); }
void GgufWriter::key(std::string_view name, const std::vector<std::uint64_t>& values) { array(name, kU64, values); }
void GgufWriter::key(std::string_view name, const std::vector<bool>& values) { array(name, kBool, values); }

Result<void> GgufWriter::keys_of(const std::string& path, std::string_view prefix) {
  std::ifstream stream(path, std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  KeyWalk walk(file);
  const auto magic = walk.number<std::uint32_t>();
  walk.number<std::uint32_t>();
  walk.number<std::uint64_t>();
  const auto count = walk.number<std::uint64_t>();
  if (!walk.ok() || magic != 0x46554747) return make_error(ErrorCode::kMalformed, "{}: not a readable GGUF file", path);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto from = walk.rest();
    const auto name = walk.text();
    walk.skip_value(walk.number<std::uint32_t>());
    if (!walk.ok()) return make_error(ErrorCode::kMalformed, "{}: key {} is cut short", path, i);
    if (!name.starts_with(prefix)) continue;
    keys_.append(from.substr(0, from.size() - walk.rest().size()));
    ++key_count_;
  }
  return {};
}

std::string GgufWriter::header(std::vector<std::uint64_t>& offsets) const {
  GgufWriter out;  // its key buffer holds the whole header here
  out.raw<std::uint32_t>(0x46554747);
  out.raw<std::uint32_t>(3);
  out.raw<std::uint64_t>(tensors_.size());
  out.raw<std::uint64_t>(key_count_);
  out.keys_ += keys_;
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    out.text(tensor.name);
    out.raw(static_cast<std::uint32_t>(tensor.dims.size()));
    for (const auto dim : tensor.dims) out.raw(dim);
    out.raw(static_cast<std::uint32_t>(tensor.type));
    out.raw(offset);
    offsets.push_back(offset);
    offset = align(offset + tensor.bytes());
  }
  out.keys_.resize(align(out.keys_.size()));
  for (auto& at : offsets) at += out.keys_.size();
  return std::move(out.keys_);
}

Result<void> GgufWriter::write(const std::string& path) const {
  Content content{.head = {}, .tensors = tensors_, .offsets = {}};
  content.head = header(content.offsets);
  if (auto error = room_for(content.bytes(), path)) return *error;
  Draft draft(path);
  if (!draft.open()) return make_error(ErrorCode::kIo, "{}: {}", draft.path(), errno_text(errno));
  int error = write_pieces(draft, content);
  if (error == 0) error = draft.publish(content.bytes());
  if (error != 0) return make_error(ErrorCode::kIo, "{}: {}", draft.path(), errno_text(error));
  return {};
}

}  // namespace rowtide::bench
