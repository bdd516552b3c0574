#include "checkpoint/header_reader.h"

#include <algorithm>
#include <cassert>

#include "base/checked.h"

namespace rowtide::checkpoint {

void HeaderReader::expect(std::uint64_t count, std::uint64_t bytes_each, std::string_view what) {
  const auto bytes = checked_mul(count, bytes_each);
  const std::uint64_t left = file_.bytes() - announced_end_;
  if (bytes && *bytes <= left && *bytes <= kMaxHeaderBytes - announced_end_) {
    announced_end_ += *bytes;
    return;
  }
  if (bytes && *bytes <= left) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} {} make the header longer than the limit of {} bytes", count, what, kMaxHeaderBytes));
  }
  fail(ErrorCode::kMalformed, fmt::format("{} {} take the header beyond the file's {} bytes (cut off, or damaged)",
                                          count, what, file_.bytes()));
}

std::string HeaderReader::text(std::size_t bytes) {
  const std::byte* begin = take(bytes);
  return begin == nullptr ? std::string() : std::string(reinterpret_cast<const char*>(begin), bytes);
}

void HeaderReader::skip(std::uint64_t bytes) {
  if (failed()) return;
  assert(bytes <= announced_end_ - position_);
  position_ += bytes;
}

void HeaderReader::fail(ErrorCode code, std::string_view message) {
  if (failed_) return;
  failed_ = true;
  error_ = make_error(code, "{}: {}: {}", file_.path(), subject_, message);
}

const std::byte* HeaderReader::take(std::size_t bytes) {
  if (failed() || bytes == 0) return nullptr;
  assert(bytes <= kWindowBytes && bytes <= announced_end_ - position_);
  const std::uint64_t window_end = window_start_ + window_.size();
  const bool inside = position_ >= window_start_ && position_ + bytes <= window_end;
  if (!inside && !fill()) return nullptr;
  const std::byte* begin = window_.data() + (position_ - window_start_);
  position_ += bytes;
  return begin;
}

bool HeaderReader::fill() {
  window_start_ = position_;
  window_.resize(std::min<std::uint64_t>(kWindowBytes, announced_end_ - position_));
  if (auto read = file_.read(position_, window_); !read) {
    failed_ = true;
    error_ = read.error();
    return false;
  }
  return true;
}

}  // namespace rowtide::checkpoint
