#include "io/uring_queue.h"

#include <liburing.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/error.h"

namespace rowtide::io {
namespace {

class UringQueue final : public ReadQueue {
 public:
  explicit UringQueue(std::vector<int> descriptors) : descriptors_(std::move(descriptors)) {}

  ~UringQueue() override {
    std::array<Completion, 64> dropped;
    while (in_flight_ > 0) {
      if (!reap(1, dropped)) break;
    }
    if (open_) io_uring_queue_exit(&ring_);
  }

  // COOP_TASKRUN spares an interrupt a completion; kernels before 5.19 refuse the flag. A queue may
  // wander between threads, so SINGLE_ISSUER is not for us.
  int init(std::uint32_t depth) {
    int result = io_uring_queue_init(depth, &ring_, IORING_SETUP_COOP_TASKRUN);
    if (result == -EINVAL) result = io_uring_queue_init(depth, &ring_, 0);
    open_ = result == 0;
    return result;
  }

  Result<void> submit(std::span<const ReadRequest> requests) override {
    for (const ReadRequest& request : requests) {
      io_uring_sqe* sqe = io_uring_get_sqe(&ring_);
      if (sqe == nullptr) return make_error(ErrorCode::kUsage, "more reads submitted than the queue is deep");
      io_uring_prep_read(sqe, descriptors_[request.file], request.into, request.bytes, request.offset);
      io_uring_sqe_set_data64(sqe, request.tag);
    }
    std::size_t accepted = 0;
    while (accepted < requests.size()) {
      const int result = io_uring_submit(&ring_);
      if (result == -EINTR || result == -EAGAIN) continue;
      if (result <= 0) {
        return make_error(ErrorCode::kIo, "io_uring refuses to take reads: {}", errno_text(-result));
      }
      accepted += static_cast<std::size_t>(result);
      in_flight_ += static_cast<std::size_t>(result);
    }
    return {};
  }

  Result<std::size_t> reap(std::size_t at_least, std::span<Completion> out) override {
    io_uring_cqe* first = nullptr;
    int waited = 0;
    do {
      waited = io_uring_wait_cqe_nr(&ring_, &first, static_cast<unsigned>(std::min(at_least, in_flight_)));
    } while (waited == -EINTR);
    if (waited < 0) return make_error(ErrorCode::kIo, "waiting for reads failed: {}", errno_text(-waited));

    std::size_t count = 0;
    unsigned head = 0;
    io_uring_cqe* cqe = nullptr;
    io_uring_for_each_cqe(&ring_, head, cqe) {
      if (count == out.size()) break;
      out[count++] = {io_uring_cqe_get_data64(cqe), cqe->res};
    }
    io_uring_cq_advance(&ring_, static_cast<unsigned>(count));
    in_flight_ -= count;
    return count;
  }

 private:
  std::vector<int> descriptors_;
  io_uring ring_{};
  std::size_t in_flight_ = 0;
  bool open_ = false;
};

}  // namespace

Result<std::unique_ptr<ReadQueue>> open_uring_queue(const std::vector<int>& descriptors, std::uint32_t depth) {
  auto queue = std::make_unique<UringQueue>(descriptors);
  if (const int result = queue->init(depth); result < 0) {
    const auto code =
        result == -ENOMEM || result == -EMFILE || result == -ENFILE ? ErrorCode::kResource : ErrorCode::kIo;
    return make_error(code, "the kernel refuses io_uring: {}", errno_text(-result));
  }
  return std::unique_ptr<ReadQueue>(std::move(queue));
}

}  // namespace rowtide::io
