// The plain asynchronous reader: one direct read a row and place it lies in, 64 in flight, duplicates and neighbours
// read again.
#include <fcntl.h>
#include <liburing.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "cli/bench/rows_method.h"
#include "cli/failure.h"

namespace rowtide::cli {
namespace {

constexpr unsigned kUringDepth = 64;

class UringMethod final : public GatherMethod {
 public:
  explicit UringMethod(const BenchSource& source)
      : source_(source),
        files_(source, O_DIRECT),
        slot_bytes_((source.table.row_bytes + 2ULL * source.block_bytes - 2) / source.block_bytes * source.block_bytes),
        buffer_(static_cast<std::byte*>(std::aligned_alloc(source.block_bytes, kUringDepth * slot_bytes_)),
                &std::free) {
    if (!buffer_) throw std::bad_alloc();
    if (const int error = ::io_uring_queue_init(kUringDepth, &ring_, 0); error < 0) {
      throw Failure(kExitFailed, "unsupported", fmt::format("io_uring: {}", errno_text(-error)));
    }
  }
  ~UringMethod() override { ::io_uring_queue_exit(&ring_); }

  Warmth warmth() const override { return Warmth::kNowhere; }

  void gather(std::span<const RowId> ids, std::byte* out) override {
    const std::size_t parts = source_.map.parts().size();
    const std::size_t reads = ids.size() * parts;
    std::size_t next = 0;
    unsigned in_flight = 0;
    const auto ask_next = [&](unsigned slot) {
      const std::size_t row = next / parts;
      ask(slot, ids[row], source_.map.parts()[next % parts], out + source_.table.row_bytes * row);
      ++next;
    };
    while (next < reads && in_flight < kUringDepth) ask_next(in_flight++);
    while (in_flight > 0) {
      if (const int error = ::io_uring_submit_and_wait(&ring_, 1); error < 0 && error != -EINTR) fail(-error);
      io_uring_cqe* completions[kUringDepth];
      const unsigned count = ::io_uring_peek_batch_cqe(&ring_, completions, kUringDepth);
      for (unsigned i = 0; i < count; ++i) {
        const auto slot = static_cast<unsigned>(::io_uring_cqe_get_data64(completions[i]));
        take(slot, completions[i]->res);
        --in_flight;
        if (next < reads) ask_next(slot), ++in_flight;
      }
      ::io_uring_cq_advance(&ring_, count);
    }
  }

  MethodCounts counts() const override { return {.reads = reads_, .hits = 0}; }

 private:
  struct Slot {
    std::uint64_t skip;  // bytes before the row's
    std::uint64_t bytes;
    std::byte* to;
  };

  std::byte* slot_buffer(unsigned slot) const { return buffer_.get() + slot * slot_bytes_; }

  void ask(unsigned slot, RowId id, const RowMap::Part& part, std::byte* row) {
    const auto place = part.place(id);
    const std::uint64_t begin = place.offset / source_.block_bytes * source_.block_bytes;
    const std::uint64_t end =
        (place.offset + part.bytes + source_.block_bytes - 1) / source_.block_bytes * source_.block_bytes;
    slots_[slot] = {place.offset - begin, part.bytes, row + part.at};
    io_uring_sqe* const request = ::io_uring_get_sqe(&ring_);
    ::io_uring_prep_read(request, files_[place.file], slot_buffer(slot), static_cast<unsigned>(end - begin), begin);
    ::io_uring_sqe_set_data64(request, slot);
    ++reads_;
  }

  void take(unsigned slot, int result) const {
    if (result < 0) fail(-result);
    if (static_cast<std::uint64_t>(result) < slots_[slot].skip + slots_[slot].bytes) fail(EIO);
    std::memcpy(slots_[slot].to, slot_buffer(slot) + slots_[slot].skip, slots_[slot].bytes);
  }

  [[noreturn]] static void fail(int error) {
    throw Failure(kExitFailed, "io", fmt::format("io_uring: {}", errno_text(error)));
  }

  const BenchSource& source_;
  OpenFiles files_;
  std::uint64_t slot_bytes_;
  std::unique_ptr<std::byte, decltype(&std::free)> buffer_;
  io_uring ring_;
  Slot slots_[kUringDepth];
  std::uint64_t reads_ = 0;
};

}  // namespace

std::unique_ptr<GatherMethod> open_uring(const BenchSource& source) { return std::make_unique<UringMethod>(source); }

}  // namespace rowtide::cli
