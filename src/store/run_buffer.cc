#include "store/run_buffer.h"

#include <sys/mman.h>

namespace rowtide {

RunBuffer::RunBuffer(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  data_ = static_cast<std::byte*>(memory);
  bytes_ = bytes;
}

RunBuffer::~RunBuffer() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

std::optional<std::size_t> RunBuffer::place(std::size_t bytes) {
  std::size_t at = write_;
  if (!oldest_) {
    if (bytes > bytes_) return std::nullopt;
    at = 0;
    oldest_ = 0;
  } else if (write_ > *oldest_) {
    if (bytes_ - write_ < bytes) {  // not before the end: wrap, but never up to the oldest (that would look empty)
      if (bytes >= *oldest_) return std::nullopt;
      at = 0;
    }
  } else if (*oldest_ - write_ <= bytes) {
    return std::nullopt;
  }
  write_ = at + bytes;
  return at;
}

void RunBuffer::release_oldest(std::optional<std::size_t> next_oldest) { oldest_ = next_oldest; }

}  // namespace rowtide
