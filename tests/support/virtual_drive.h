// A drive whose time is counted in turns instead of measured, below tables whose rows follow a rule. So a test can tell
// exactly what a batch asks of a drive and how long it would wait for it, and a table of any size needs no file.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "address/splitmix64.h"
#include "io/block_source.h"
#include "rowtide/store.h"
#include "store/batch_plan.h"
#include "store/open_store.h"

namespace rowtide {

inline constexpr std::uint64_t kMiB = 1 << 20;

/// Row `id` of a rule table.
inline void rule_row(const Table& table, RowId id, std::byte* out) {
  const std::uint64_t words = (table.row_bytes + 7) / 8;
  for (std::uint64_t k = 0; k < words; ++k) {
    const std::uint64_t word = splitmix64(id * words + k);
    std::memcpy(out + 8 * k, &word, std::min<std::uint64_t>(8, table.row_bytes - 8 * k));
  }
}

/// A table of BF16 rows of `row_bytes` bytes, each of `extent_rows` in a file of its own that does not exist. With
/// `split`, the last so many bytes of a row are a component of their own, cut into as many files at other rows.
inline Table rule_table(std::uint64_t row_bytes, std::vector<std::uint64_t> extent_rows, std::uint32_t bundle_rows = 1,
                        std::uint64_t split = 0) {
  constexpr std::uint64_t kOffset = 12345;  // no alignment
  Table table;
  table.name = "table.weight";
  table.row_format = RowFormat::kBf16;
  table.row_values = row_bytes / 2;
  table.row_bytes = row_bytes;
  table.bundle_rows = bundle_rows;
  std::size_t files = 0;
  const auto add = [&](const char* name, std::uint64_t bytes) {
    Component& component = table.components.emplace_back(Component{name, bytes, {}});
    table.rows = 0;
    for (const std::uint64_t rows : extent_rows) {
      component.extents.push_back({"no-such-folder/extent-" + std::to_string(files++), kOffset, table.rows, rows});
      table.rows += rows;
    }
  };
  add("values", row_bytes - split);
  std::reverse(extent_rows.begin(), extent_rows.end());
  if (split != 0) add("scales", split);
  return table;
}

inline ::testing::AssertionResult are_rule_rows(const Table& table, std::span<const RowId> ids,
                                                std::span<const std::byte> rows) {
  std::vector<std::byte> row(table.row_bytes);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    rule_row(table, ids[i], row.data());
    if (std::memcmp(row.data(), rows.data() + i * table.row_bytes, row.size()) != 0) {
      return ::testing::AssertionFailure() << "position " << i << " of " << ids.size() << " is not row " << ids[i];
    }
  }
  return ::testing::AssertionSuccess();
}

/// Reads the batch and compares each row with the rule.
inline ::testing::AssertionResult reads_rule_rows(Reader& reader, const Table& table, std::span<const RowId> ids) {
  std::vector<std::byte> out(ids.size() * table.row_bytes);
  const auto read = reader.read(ids, raw(out));
  if (!read) return ::testing::AssertionFailure() << read.error().message;
  return are_rule_rows(table, ids, out);
}

/// The drive: so many reads at once, each for one turn; the rest wait in the order in which they came. Queues are
/// numbered in the order in which they were opened. Threads: any.
class VirtualDrive {
  template <class Work>
  auto locked(Work&& work) const {
    std::lock_guard lock(mutex_);
    return work();
  }

 public:
  static constexpr std::uint32_t kBlockBytes = 4096;

  explicit VirtualDrive(Table table, std::size_t channels = 64) : table_(std::move(table)), free_from_(channels, 0) {
    std::uint64_t at = 0;
    for (const Component& component : table_.components) {
      for (const Extent& extent : component.extents) files_.push_back({extent, at, component.row_bytes});
      at += component.row_bytes;
    }
  }

  const Table& table() const { return table_; }

  std::uint64_t turns() const {
    return locked([&] { return now_; });
  }
  std::uint64_t reads() const {
    return locked([&] { return reads_; });
  }
  std::uint64_t bytes() const {
    return locked([&] { return bytes_; });
  }
  std::size_t queues_opened() const {
    return locked([&] { return opened_; });
  }

  struct Queue {
    std::uint64_t submitted = 0, completed = 0;
    std::uint64_t in_flight_most = 0;
    std::uint64_t turns_most = 0;  // of one read, from its submission until it was done
    bool held = false;
    std::uint64_t let_go = 0;  // of a held queue, reads that may yet complete
  };
  Queue queue(std::size_t number) const {
    return locked([&] { return at(number); });
  }

  /// Its in_flight_most counts from now on.
  void restart_most(std::size_t number) {
    locked([&] { at(number).in_flight_most = 0; });
  }
  /// From now on the reads of this queue, which may not have been opened yet, do not complete: reap() waits.
  void hold(std::size_t number) {
    locked([&] { at(number).held = true; });
  }
  /// But for so many.
  void let_go(std::size_t number, std::uint64_t reads) {
    locked([&] { at(number).let_go += reads; });
    changed_.notify_all();
  }
  void let_all_go(std::size_t number) {
    locked([&] { at(number).held = false; });
    changed_.notify_all();
  }

  /// Blocks that were read, and how many of them a second time.
  void watch_blocks() {
    locked([&] { watching_ = true; });
  }
  std::size_t blocks_seen() const {
    return locked([&] { return seen_.size(); });
  }
  std::uint64_t blocks_again() const {
    return locked([&] { return again_; });
  }

  std::uint64_t file_bytes(std::uint32_t file) const {
    return files_[file].extent.offset + files_[file].extent.rows * files_[file].row_bytes;
  }

 private:
  friend class VirtualQueue;

  Queue& at(std::size_t number) const {
    while (queues_.size() <= number) queues_.emplace_back();
    return queues_[number];
  }

  /// When a read that comes now will be done.
  std::uint64_t schedule(const io::ReadRequest& request) {
    ++reads_;
    bytes_ += request.bytes;
    for (std::uint64_t block = 0; watching_ && block < request.bytes / kBlockBytes; ++block) {
      again_ += !seen_.insert({request.file, request.offset / kBlockBytes + block}).second;
    }
    const auto next = std::min_element(free_from_.begin(), free_from_.end());
    *next = std::max(*next, now_) + 1;
    return *next;
  }

  /// The bytes of the file; what is not the table's is 0xEE.
  std::int32_t fill(const io::ReadRequest& request) const {
    const auto& [extent, part_at, part_bytes] = files_[request.file];
    const std::uint64_t end = std::min(request.offset + request.bytes, file_bytes(request.file));
    if (end <= request.offset) return 0;
    std::memset(request.into, 0xEE, end - request.offset);
    std::vector<std::byte> row(table_.row_bytes);
    std::uint64_t at = std::max(request.offset, extent.offset);
    while (at < end) {
      const std::uint64_t index = (at - extent.offset) / part_bytes;
      const std::uint64_t begin = extent.offset + index * part_bytes;
      const std::uint64_t stop = std::min(end, begin + part_bytes);
      rule_row(table_, extent.first_row + index, row.data());
      std::memcpy(request.into + (at - request.offset), row.data() + part_at + (at - begin), stop - at);
      at = stop;
    }
    return static_cast<std::int32_t>(end - request.offset);
  }

  struct File {
    Extent extent;
    std::uint64_t part_at, row_bytes;  // what it holds of each of its rows
  };

  const Table table_;
  std::vector<File> files_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t now_ = 0, reads_ = 0, bytes_ = 0, again_ = 0;
  std::vector<std::uint64_t> free_from_;  // by channel
  mutable std::deque<Queue> queues_;
  std::size_t opened_ = 0;
  bool watching_ = false;
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen_;
};

class VirtualQueue final : public io::ReadQueue {
 public:
  explicit VirtualQueue(VirtualDrive& drive) : drive_(drive) {
    number_ = drive_.locked([&] { return drive_.opened_++; });
  }

  Result<void> submit(std::span<const io::ReadRequest> requests) override {
    std::lock_guard lock(drive_.mutex_);
    for (const io::ReadRequest& request : requests) {
      reads_.push_back({request, drive_.now_, drive_.schedule(request)});
    }
    auto& queue = drive_.at(number_);
    queue.submitted += requests.size();
    queue.in_flight_most = std::max<std::uint64_t>(queue.in_flight_most, reads_.size());
    return {};
  }

  Result<std::size_t> reap(std::size_t at_least, std::span<io::Completion> out) override {
    std::unique_lock lock(drive_.mutex_);
    const std::size_t wanted = std::min({at_least, reads_.size(), out.size()});
    const auto may_complete = [&] {
      const auto& queue = drive_.at(number_);
      return queue.held ? std::min<std::size_t>(queue.let_go, reads_.size()) : reads_.size();
    };
    drive_.changed_.wait(lock, [&] { return may_complete() >= wanted; });
    if (wanted > 0) drive_.now_ = std::max(drive_.now_, reads_[wanted - 1].done);
    auto& queue = drive_.at(number_);
    const std::size_t most = std::min(may_complete(), out.size());
    std::vector<Read> done;
    while (done.size() < most && reads_.front().done <= drive_.now_) {
      done.push_back(reads_.front());
      reads_.pop_front();
      queue.turns_most = std::max(queue.turns_most, done.back().done - done.back().came);
    }
    queue.completed += done.size();
    if (queue.held) queue.let_go -= done.size();
    lock.unlock();
    for (std::size_t i = 0; i < done.size(); ++i) out[i] = {done[i].request.tag, drive_.fill(done[i].request)};
    return done.size();
  }

 private:
  struct Read {
    io::ReadRequest request;
    std::uint64_t came, done;
  };

  VirtualDrive& drive_;
  std::size_t number_ = 0;
  std::deque<Read> reads_;  // in the order of their ends
};

class VirtualSource final : public io::BlockSource {
 public:
  /// `depth` is the device-wide limit.
  VirtualSource(std::shared_ptr<VirtualDrive> drive, std::uint32_t depth) : drive_(std::move(drive)), limit_(depth) {}

  std::uint32_t block_bytes() const override { return VirtualDrive::kBlockBytes; }
  std::uint64_t file_bytes(std::uint32_t file) const override { return drive_->file_bytes(file); }
  const std::string& method() const override { return method_; }
  bool direct() const override { return true; }
  io::InFlightLimit& limit() override { return limit_; }
  Result<std::unique_ptr<io::ReadQueue>> queue(std::uint32_t, std::span<std::byte>) override {
    return std::unique_ptr<io::ReadQueue>(std::make_unique<VirtualQueue>(*drive_));
  }

 private:
  std::shared_ptr<VirtualDrive> drive_;
  std::string method_ = "virtual drive";
  io::InFlightLimit limit_;
};

/// A store on the drive, 64 deep unless the options say otherwise.
inline Result<std::shared_ptr<Store>> try_open_on(const std::shared_ptr<VirtualDrive>& drive, StoreOptions options) {
  if (options.queue_depth == 0) options.queue_depth = 64;
  return open_store(drive->table(), std::make_unique<VirtualSource>(drive, options.queue_depth), options);
}
inline std::shared_ptr<Store> open_on(const std::shared_ptr<VirtualDrive>& drive, const StoreOptions& options) {
  auto store = try_open_on(drive, options);
  EXPECT_TRUE(store.ok()) << store.error().message;
  return store.ok() ? *store : nullptr;
}

}  // namespace rowtide
