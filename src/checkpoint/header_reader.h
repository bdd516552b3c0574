// Reads a header front to back through one small window, and never a byte behind the header.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "io/file.h"

namespace rowtide::checkpoint {

/// A header announces its own length bit by bit: counts, then lengths. expect() is told of each before
/// what it counts is read. That does two things: a count or length that this file cannot hold is refused
/// at once, before anything is allocated for it; and the window never reaches past what is known to be header.
/// The first failure sticks: from then on every read gives zero or nothing, and loops check failed().
class HeaderReader {
 public:
  static constexpr std::size_t kWindowBytes = 65'536;
  static constexpr std::uint64_t kMaxHeaderBytes = std::uint64_t{256} << 20;  // published ones have 10 MiB

  explicit HeaderReader(const io::File& file) : file_(file) {}

  /// The header goes on for `count` x `bytes_each` bytes more than announced so far; they are `what`, for the
  /// message of the error when the file ends before.
  void expect(std::uint64_t count, std::uint64_t bytes_each, std::string_view what);

  /// The next little-endian number. Its bytes have been announced (asserted).
  template <class T>
  T number() {
    T value{};
    if (const std::byte* bytes = take(sizeof(T))) std::memcpy(&value, bytes, sizeof(T));
    return value;
  }

  /// The next `bytes` bytes, at most kWindowBytes of them (asserted).
  std::string text(std::size_t bytes);
  /// Passes over bytes without reading those that are not in the window already.
  void skip(std::uint64_t bytes);

  std::uint64_t position() const { return position_; }
  const std::string& path() const { return file_.path(); }

  /// What is being read ("key 'general.name'"), for the messages that follow.
  void set_subject(std::string subject) { subject_ = std::move(subject); }
  void fail(ErrorCode code, std::string_view message);
  bool failed() const { return failed_; }
  /// The first failure; only when failed().
  const Error& error() const { return error_; }

 private:
  static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in the file");

  const std::byte* take(std::size_t bytes);
  bool fill();

  const io::File& file_;
  std::string subject_ = "header";
  bool failed_ = false;
  Error error_{};
  std::uint64_t position_ = 0;
  std::uint64_t announced_end_ = 0;  // never past the file's end
  std::uint64_t window_start_ = 0;
  std::vector<std::byte> window_;
};

}  // namespace rowtide::checkpoint
