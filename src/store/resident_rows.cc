#include "store/resident_rows.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/log.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kChunkBytes = ResidentRows::kBufferBytes / 8;
constexpr std::chrono::microseconds kPermitWait{200};
constexpr std::uint32_t kRetriesMax = 8;  // of one read, after EINTR or EAGAIN

}  // namespace

ResidentRows::ResidentRows(const Table& table, const RowMap& map, io::BlockSource& source, MemoryBudget& budget)
    : table_(table), map_(map), source_(source), budget_(budget), row_bytes_(table.row_bytes), buffer_(kBufferBytes) {
  static_assert(kChunkBytes * kSlots == kBufferBytes);
}

Result<std::unique_ptr<ResidentRows>> ResidentRows::start(const Table& table, const RowMap& map,
                                                          io::BlockSource& source, MemoryBudget& budget) {
  std::unique_ptr<ResidentRows> resident(new ResidentRows(table, map, source, budget));
  if (auto taken = resident->take_memory(); !taken) return taken.error();
  auto queue = source.queue(kSlots, {resident->buffer_.data(), resident->buffer_.bytes()});
  if (!queue) return queue.error();
  resident->queue_ = *std::move(queue);
  resident->plan_chunks();
  try {
    resident->filler_ = std::thread([&filled = *resident] { filled.fill(); });
  } catch (const std::system_error& failure) {
    return make_error(ErrorCode::kResource, "table {}: no thread can be started to fill it: {}", table.name,
                      failure.what());
  }
  return resident;
}

ResidentRows::~ResidentRows() {
  stopping_ = true;
  if (filler_.joinable()) filler_.join();
  queue_.reset();
  budget_.add_resident(-static_cast<std::int64_t>(filled_bytes()));
  if (rows_ != nullptr) ::munmap(rows_, table_.bytes());
}

Result<void> ResidentRows::take_memory() {
  auto part = budget_.take(MemoryBudget::Use::kResident, table_.bytes());
  if (!part) return part.error();
  auto buffer_part = budget_.take(MemoryBudget::Use::kBuffers, kBufferBytes);
  if (!buffer_part) return buffer_part.error();
  memory_ = *std::move(part);
  buffer_memory_ = *std::move(buffer_part);
  void* memory =
      ::mmap(nullptr, table_.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || buffer_.data() == nullptr) {
    return make_error(ErrorCode::kResource, "table {}: the kernel has no room for its {} bytes", table_.name,
                      table_.bytes());
  }
  ::madvise(memory, table_.bytes(), MADV_HUGEPAGE);
  rows_ = static_cast<std::byte*>(memory);
  return {};
}

void ResidentRows::plan_chunks() {
  const std::uint64_t block = source_.block_bytes();
  std::uint64_t to = 0;
  for (const Extent& extent : table_.components.front().extents) {
    const std::uint32_t file = map_.place(extent.first_row).file;
    const std::uint64_t end = extent.offset + extent.rows * row_bytes_;
    for (std::uint64_t at = extent.offset; at < end;) {
      const std::uint64_t begin = at / block * block;
      const std::uint64_t until = std::min(end, begin + kChunkBytes);
      const std::uint64_t bytes = (until - begin + block - 1) / block * block;
      chunks_.push_back({file, static_cast<std::uint32_t>(bytes), begin, at - begin, until - at, to});
      to += until - at;
      at = until;
    }
  }
}

void ResidentRows::fill() {
  source_.limit().join(io::Urgency::kPrefetch);
  auto filled = fill_all();
  source_.limit().leave(io::Urgency::kPrefetch);
  source_.limit().release(static_cast<std::uint32_t>(in_flight_));
  if (filled) return;
  log(LogLevel::kWarn,
      "table {}: filling it stopped at row {} of {}: {}; the rest is served from the "
      "cache and the files",
      table_.name, this->filled(), table_.rows, filled.error().message);
}

/// Chunk k goes through slot k % kSlots and is submitted once chunk k - kSlots has been published.
Result<void> ResidentRows::fill_all() {
  while (published_ < chunks_.size() && !stopping_) {
    while (next_ < chunks_.size() && next_ < published_ + kSlots &&
           source_.limit().acquire(1, static_cast<std::uint32_t>(in_flight_), io::Urgency::kPrefetch) == 1) {
      slots_[next_ % kSlots] = {chunks_[next_], 0, 0, false};
      if (auto submitted = submit(next_++ % kSlots); !submitted) return submitted;
      ++in_flight_;
    }
    if (in_flight_ == 0) {
      std::this_thread::sleep_for(kPermitWait);
      continue;
    }
    if (auto reaped = reap(); !reaped) return reaped;
    for (; published_ < next_ && slots_[published_ % kSlots].done; ++published_) {
      const Chunk& chunk = slots_[published_ % kSlots].chunk;
      filled_bytes_.store(chunk.to + chunk.use, std::memory_order_release);
      budget_.add_resident(static_cast<std::int64_t>(chunk.use));
    }
  }
  return {};
}

Result<void> ResidentRows::submit(std::size_t index) {
  const Slot& slot = slots_[index];
  const io::ReadRequest request{slot.chunk.file, slot.chunk.bytes - slot.got, slot.chunk.offset + slot.got,
                                buffer_.data() + index * kChunkBytes + slot.got, index};
  return queue_->submit({&request, 1});
}

Result<void> ResidentRows::reap() {
  std::array<io::Completion, kSlots> completions;
  auto count = queue_->reap(1, completions);
  if (!count) return count.error();
  for (std::size_t i = 0; i < *count; ++i) {
    if (auto completed = complete(completions[i]); !completed) return completed;
  }
  return {};
}

Result<void> ResidentRows::complete(const io::Completion& completion) {
  Slot& slot = slots_[completion.tag];
  const Chunk& chunk = slot.chunk;
  const bool again = (completion.result == -EINTR || completion.result == -EAGAIN) && ++slot.retries <= kRetriesMax;
  if ((completion.result <= 0 && !again)) {
    return make_error(ErrorCode::kIo, "{}: reading {} bytes at offset {} failed: {}", map_.paths()[chunk.file],
                      chunk.bytes, chunk.offset,
                      completion.result == 0 ? "the file was cut short" : errno_text(-completion.result));
  }
  if (!again) slot.got += static_cast<std::uint32_t>(completion.result);
  if (slot.got < chunk.skip + chunk.use) return submit(completion.tag);
  std::memcpy(rows_ + chunk.to, buffer_.data() + completion.tag * kChunkBytes + chunk.skip, chunk.use);
  slot.done = true;
  --in_flight_;
  source_.limit().release(1);
  return {};
}

}  // namespace rowtide
