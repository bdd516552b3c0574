#include "checkpoint/lfs_pointer.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::string_view kStart = "version https://git-lfs";  // of its first line
constexpr std::uint64_t kPointerBytesMax = 1023;                // the format's own limit

}  // namespace

Result<void> refuse_lfs_pointer(const io::File& file) {
  if (file.bytes() < kStart.size() || file.bytes() > kPointerBytesMax) return {};
  std::string start(kStart.size(), '\0');
  if (auto read = file.read(0, std::as_writable_bytes(std::span(start))); !read) return read;
  if (start != kStart) return {};
  return make_error(ErrorCode::kMalformed, "{}: is a Git LFS pointer, not the file itself: run git lfs pull",
                    file.path());
}

}  // namespace rowtide::checkpoint
