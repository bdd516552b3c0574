#include "io/uring_queue.h"

#include <liburing.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace rowtide::io {
namespace {

// COOP_TASKRUN spares an interrupt a completion, and with TASKRUN_FLAG a reap that does not wait still sees what
// has completed; kernels before 5.19 refuse both. A queue may wander between threads, so SINGLE_ISSUER is not for us.
int open_ring(io_uring& ring, std::uint32_t depth) {
  const int result = io_uring_queue_init(depth, &ring, IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG);
  return result == -EINVAL ? io_uring_queue_init(depth, &ring, 0) : result;
}

int pin(io_uring& ring, std::span<std::byte> buffer) {
  const iovec whole{buffer.data(), buffer.size()};
  return io_uring_register_buffers(&ring, &whole, 1);
}

class UringQueue final : public ReadQueue {
 public:
  UringQueue(std::vector<int> descriptors, std::uint32_t depth) : descriptors_(std::move(descriptors)), depth_(depth) {}

  ~UringQueue() override {
    if (!open_) return;
    // Only a read that the kernel has can still write into the buffer; what is merely queued goes with the ring.
    for (std::size_t at_kernel = outstanding_ - io_uring_sq_ready(&ring_); at_kernel > 0;) {
      io_uring_cqe* cqe = nullptr;
      const int waited = io_uring_wait_cqe(&ring_, &cqe);
      if (waited == -EINTR || waited == -EAGAIN) continue;
      if (waited < 0) break;
      io_uring_cqe_seen(&ring_, cqe);
      --at_kernel;
    }
    io_uring_queue_exit(&ring_);
  }

  int init(std::span<std::byte> buffer) {
    const int result = open_ring(ring_, depth_);
    open_ = result == 0;
    if (!open_) return result;
    // Refused where RLIMIT_MEMLOCK is spent; plain reads do the same for a little more processor time.
    pinned_ = !buffer.empty() && pin(ring_, buffer) == 0;
    return 0;
  }

  Result<void> submit(std::span<const ReadRequest> requests) override {
    if (requests.size() > depth_ - outstanding_) {
      return make_error(ErrorCode::kUsage, "more reads submitted than the queue is deep");
    }
    for (const ReadRequest& request : requests) {
      io_uring_sqe* sqe = io_uring_get_sqe(&ring_);  // there is one: the ring holds at least depth_
      const int descriptor = descriptors_[request.file];
      if (pinned_) {
        io_uring_prep_read_fixed(sqe, descriptor, request.into, request.bytes, request.offset, 0);
      } else {
        io_uring_prep_read(sqe, descriptor, request.into, request.bytes, request.offset);
      }
      io_uring_sqe_set_data64(sqe, request.tag);
    }
    outstanding_ += requests.size();
    return {};
  }

  Result<std::size_t> reap(std::size_t at_least, std::span<Completion> out) override {
    const auto wanted = static_cast<unsigned>(std::min({at_least, outstanding_, out.size()}));
    do {  // no system call where nothing is to be handed over and enough is there
      const int result = io_uring_submit_and_wait(&ring_, io_uring_cq_ready(&ring_) < wanted ? wanted : 0);
      if (result < 0 && result != -EINTR && result != -EAGAIN) {
        return make_error(ErrorCode::kIo, "io_uring refuses reads: {}", errno_text(-result));
      }
    } while (io_uring_sq_ready(&ring_) > 0 || io_uring_cq_ready(&ring_) < wanted);
    std::size_t count = 0;
    unsigned head = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      if (count == out.size()) break;
      out[count++] = {io_uring_cqe_get_data64(cqe), cqe->res};
    }
    io_uring_cq_advance(&ring_, static_cast<unsigned>(count));
    outstanding_ -= count;
    return count;
  }

 private:
  const std::vector<int> descriptors_;
  const std::uint32_t depth_;
  io_uring ring_{};
  std::size_t outstanding_ = 0;  // submitted, not yet reaped
  bool open_ = false;
  bool pinned_ = false;  // the buffer is registered: reads name it instead of having its pages looked up
};

}  // namespace

Result<std::unique_ptr<ReadQueue>> open_uring_queue(const std::vector<int>& descriptors, std::uint32_t depth,
                                                    std::span<std::byte> buffer) {
  auto queue = std::make_unique<UringQueue>(descriptors, depth);
  if (const int result = queue->init(buffer); result < 0) {
    const auto code =
        result == -ENOMEM || result == -EMFILE || result == -ENFILE ? ErrorCode::kResource : ErrorCode::kIo;
    return make_error(code, "the kernel refuses io_uring: {}", errno_text(-result));
  }
  return std::unique_ptr<ReadQueue>(std::move(queue));
}

UringRefusals probe_uring(std::size_t buffer_bytes) {
  constexpr std::uint32_t kDepth = 256;
  io_uring ring{};
  UringRefusals refusals;
  refusals.ring = -open_ring(ring, kDepth);
  if (refusals.ring != 0) return refusals;
  void* const buffer =
      ::mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  if (buffer == MAP_FAILED) {
    refusals.pinned = errno;
  } else {
    refusals.pinned = -pin(ring, {static_cast<std::byte*>(buffer), buffer_bytes});
  }
  io_uring_queue_exit(&ring);
  if (buffer != MAP_FAILED) ::munmap(buffer, buffer_bytes);
  return refusals;
}

}  // namespace rowtide::io
