#include "store/disk_reader.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include "base/checked.h"
#include "base/error.h"
#include "store/run_buffer.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kRunBytesMax = 64 * 1024;  // one read; neighbours beyond it are read apart
// Many times the queue's depth in blocks, so that one slow read stalls nobody.
constexpr std::size_t kBufferBytesMin = std::size_t{4} << 20;
constexpr std::uint32_t kRetriesMax = 8;  // of one read, after EINTR, EAGAIN or a short read

std::uint64_t row_bytes_as(Output::Form form, const Table& table) {
  switch (form) {
    case Output::Form::kRaw: return table.row_bytes;
    case Output::Form::kF32: return table.row_values * sizeof(float);
    case Output::Form::kBf16: return table.row_values * sizeof(std::uint16_t);
  }
  return 0;
}

class DiskReader final : public Reader {
 public:
  DiskReader(std::shared_ptr<StoreShared> store, std::size_t buffer_bytes)
      : store_(std::move(store)), buffer_(buffer_bytes) {}

  Result<void> init() {
    if (buffer_.data() == nullptr) {
      return make_error(ErrorCode::kResource, "table {}: no memory for a reader's buffer", store_->table.name);
    }
    if (auto opened = open_queue(); !opened) return opened;
    wanted_.reserve(store_->depth);
    completions_.resize(store_->depth);
    account_memory();
    return {};
  }

  ~DiskReader() override {
    if (busy_) abandon();
    store_->totals.add_memory(-accounted_bytes_);
  }

  Result<void> begin(std::span<const RowId> ids, Output output) override;
  Result<void> finish() override;

 private:
  /// One run on its way.
  struct Flight {
    std::size_t buffer_at = 0;
    std::uint32_t got = 0;  // bytes read so far
    std::uint32_t retries = 0;
    bool done = false;
  };

  Result<void> open_queue();
  Result<void> check(std::span<const RowId> ids, Output output) const;
  Result<void> start(std::span<const RowId> ids, Output output);
  Result<void> complete_all();
  Result<void> pump();
  Result<void> submit_wanted();
  Result<void> reap(std::uint32_t at_least);
  Result<void> complete(const io::Completion& completion);
  void deliver(const Run& run, const std::byte* bytes);
  void emit(const std::byte* row, std::byte* to) const;
  void land(std::uint32_t run_index);
  void abandon();
  void end_batch();
  void account_memory();
  std::uint32_t needed_bytes(const Run& run) const;
  Error read_error(const Run& run, const std::string& why) const;
  io::ReadRequest request_for(std::uint32_t run_index) const;

  std::shared_ptr<StoreShared> store_;
  RunBuffer buffer_;
  std::unique_ptr<io::ReadQueue> queue_;  // after buffer_: destroyed first, when no read is in flight any more
  BatchPlan plan_;
  std::vector<Flight> flights_;  // one for each run of the plan
  std::vector<io::ReadRequest> wanted_;
  std::vector<io::Completion> completions_;
  Output output_{};
  std::uint64_t output_row_bytes_ = 0;
  std::uint32_t next_ = 0;       // first run not yet submitted
  std::uint32_t oldest_ = 0;     // first run still in the buffer
  std::uint32_t in_flight_ = 0;  // reads, each with a permit of the device-wide limit
  std::uint64_t wait_ns_ = 0;
  std::uint64_t reads_ = 0;
  std::uint64_t bytes_read_ = 0;
  std::int64_t accounted_bytes_ = 0;
  bool busy_ = false;
};

Result<void> DiskReader::open_queue() {
  auto queue = store_->source->queue(store_->depth, {buffer_.data(), buffer_.bytes()});
  if (!queue) return queue.error();
  queue_ = *std::move(queue);
  return {};
}

Result<void> DiskReader::check(std::span<const RowId> ids, Output output) const {
  const Table& table = store_->table;
  if (busy_) return make_error(ErrorCode::kUsage, "table {}: a batch is in flight; finish() it first", table.name);
  if (ids.size() > Request::kBatchRowsMax) {
    return make_error(ErrorCode::kUsage, "table {}: a batch of {} rows; at most {} at once", table.name, ids.size(),
                      Request::kBatchRowsMax);
  }
  const std::uint64_t bytes = ids.size() * row_bytes_as(output.form, table);
  if (output.bytes != bytes) {
    return make_error(ErrorCode::kUsage, "table {}: {} rows need {} bytes of output, {} were given", table.name,
                      ids.size(), bytes, output.bytes);
  }
  for (const RowId id : ids) {
    if (id >= table.rows) {
      return make_error(ErrorCode::kOutOfRange, "table {}: row {} is not within its {} rows", table.name, id,
                        table.rows);
    }
  }
  return {};
}

Result<void> DiskReader::begin(std::span<const RowId> ids, Output output) {
  if (auto valid = check(ids, output); !valid) return valid;
  auto started = without_throwing([&] { return start(ids, output); });
  if (!started && busy_) abandon();
  return started;
}

Result<void> DiskReader::start(std::span<const RowId> ids, Output output) {
  if (!queue_) {
    if (auto opened = open_queue(); !opened) return opened;
  }
  const Table& table = store_->table;
  plan_.make(ids, store_->map, table.rows, table.row_bytes, store_->source->block_bytes(), kRunBytesMax);
  flights_.assign(plan_.runs().size(), Flight{});
  account_memory();
  output_ = output;
  output_row_bytes_ = row_bytes_as(output.form, table);
  next_ = oldest_ = in_flight_ = 0;
  wait_ns_ = reads_ = bytes_read_ = 0;
  busy_ = true;
  store_->source->limit().join(io::Urgency::kBulk);
  if (auto pumped = pump(); !pumped) return pumped;
  return reap(0);  // the caller may compute before it calls finish()
}

Result<void> DiskReader::finish() {
  if (!busy_) return {};
  auto completed = without_throwing([&] { return complete_all(); });
  if (!completed) {
    abandon();
    return completed;
  }
  Counters batch;
  batch.batches = 1;
  batch.rows = plan_.requests().size();
  batch.unique_rows = plan_.unique_rows();
  if (store_->table.addressing) batch.bundles = batch.rows / store_->table.addressing->heads_per_order();
  batch.blocks = plan_.blocks();
  batch.reads = reads_;
  batch.bytes_read = bytes_read_;
  batch.wait_ns = wait_ns_;
  store_->totals.add(batch);
  end_batch();
  return {};
}

Result<void> DiskReader::complete_all() {
  while (oldest_ < plan_.runs().size()) {
    if (auto pumped = pump(); !pumped) return pumped;
    // Half the queue at a time: few system calls, and the device still has the other half to work on.
    const std::uint32_t half = std::max(1u, next_ < plan_.runs().size() ? in_flight_ / 2 : in_flight_);
    if (auto reaped = reap(half); !reaped) return reaped;
  }
  return {};
}

/// Submits as many runs as the device-wide limit and the buffer have room for.
Result<void> DiskReader::pump() {
  const auto runs = static_cast<std::uint32_t>(plan_.runs().size());
  const std::uint32_t room = std::min(store_->depth - in_flight_, runs - next_);
  if (room == 0) return {};
  io::InFlightLimit& limit = store_->source->limit();
  const std::uint32_t permits = limit.acquire(room, in_flight_, io::Urgency::kBulk);
  wanted_.clear();
  while (wanted_.size() < permits) {
    const auto at = buffer_.place(plan_.runs()[next_].bytes);
    if (!at) break;
    flights_[next_].buffer_at = *at;
    wanted_.push_back(request_for(next_++));
  }
  limit.release(permits - static_cast<std::uint32_t>(wanted_.size()));
  return submit_wanted();
}

Result<void> DiskReader::submit_wanted() {
  if (wanted_.empty()) return {};
  in_flight_ += static_cast<std::uint32_t>(wanted_.size());
  reads_ += wanted_.size();
  return queue_->submit(wanted_);
}

io::ReadRequest DiskReader::request_for(std::uint32_t run_index) const {
  const Run& run = plan_.runs()[run_index];
  const Flight& flight = flights_[run_index];
  return {run.file, run.bytes - flight.got, run.offset + flight.got, buffer_.data() + flight.buffer_at + flight.got,
          run_index};
}

Result<void> DiskReader::reap(std::uint32_t at_least) {
  const auto start = std::chrono::steady_clock::now();
  auto count = queue_->reap(at_least, completions_);
  wait_ns_ += static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start).count());
  if (!count) return count.error();

  wanted_.clear();
  Result<void> outcome;
  std::uint32_t landed = 0;
  for (std::size_t i = 0; i < *count; ++i) {
    const std::size_t resubmissions = wanted_.size();
    auto completed = complete(completions_[i]);
    if (wanted_.size() == resubmissions) ++landed;
    if (!completed && outcome) outcome = completed;
  }
  in_flight_ -= static_cast<std::uint32_t>(*count);
  store_->source->limit().release(landed);
  auto submitted = submit_wanted();  // reads that came back short keep their permit
  return outcome ? submitted : outcome;
}

/// Takes one completion: delivers the run's rows, asks again for what is missing (wanted_), or fails.
Result<void> DiskReader::complete(const io::Completion& completion) {
  const auto index = static_cast<std::uint32_t>(completion.tag);
  const Run& run = plan_.runs()[index];
  Flight& flight = flights_[index];
  const bool again = completion.result == -EINTR || completion.result == -EAGAIN;
  if (completion.result < 0 && !again) return read_error(run, errno_text(-completion.result));
  if (completion.result > 0) {
    flight.got += static_cast<std::uint32_t>(completion.result);
    bytes_read_ += static_cast<std::uint64_t>(completion.result);
  }
  if (flight.got >= needed_bytes(run)) {
    deliver(run, buffer_.data() + flight.buffer_at);
    land(index);
    return {};
  }
  const bool whole_blocks = flight.got % store_->source->block_bytes() == 0;
  if ((!again && completion.result == 0) || !whole_blocks) {
    return read_error(
        run, fmt::format("the file ends at byte {}; it was cut short after it was opened", run.offset + flight.got));
  }
  if (++flight.retries > kRetriesMax) return read_error(run, "the device keeps giving less than was asked for");
  wanted_.push_back(request_for(index));
  return {};
}

/// Bytes of the run that its rows need: all but what lies behind the end of the file.
std::uint32_t DiskReader::needed_bytes(const Run& run) const {
  const std::uint64_t in_file = store_->source->file_bytes(run.file) - run.offset;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(run.bytes, in_file));
}

void DiskReader::deliver(const Run& run, const std::byte* bytes) {
  const auto requests = plan_.requests().subspan(run.first_request, run.end_request - run.first_request);
  const std::byte* previous = nullptr;
  RowId previous_row = 0;
  for (const Request request : requests) {
    std::byte* to = output_.data + request.position() * output_row_bytes_;
    if (previous != nullptr && request.row() == previous_row) {
      std::memcpy(to, previous, output_row_bytes_);
    } else {
      emit(bytes + (store_->map.place(request.row()).offset - run.offset), to);
    }
    previous = to;
    previous_row = request.row();
  }
}

void DiskReader::emit(const std::byte* row, std::byte* to) const {
  const Table& table = store_->table;
  switch (output_.form) {
    case Output::Form::kRaw: std::memcpy(to, row, table.row_bytes); return;
    case Output::Form::kF32: decode_f32(table.row_format, row, table.row_values, reinterpret_cast<float*>(to)); return;
    case Output::Form::kBf16:
      decode_bf16(table.row_format, row, table.row_values, reinterpret_cast<std::uint16_t*>(to));
      return;
  }
}

/// The run's buffer is free once every older run is done as well.
void DiskReader::land(std::uint32_t run_index) {
  flights_[run_index].done = true;
  while (oldest_ < next_ && flights_[oldest_].done) {
    ++oldest_;
    buffer_.release_oldest(oldest_ < next_ ? std::optional(flights_[oldest_].buffer_at) : std::nullopt);
  }
}

Error DiskReader::read_error(const Run& run, const std::string& why) const {
  return make_error(ErrorCode::kIo, "{}: reading {} bytes at offset {} for row {} of table {} failed: {}",
                    store_->map.paths()[run.file], run.bytes, run.offset, plan_.requests()[run.first_request].row(),
                    store_->table.name, why);
}

/// Gives the batch up: waits for reads in flight, whose buffers must stay until then.
void DiskReader::abandon() {
  const std::uint32_t permits = in_flight_;
  while (in_flight_ > 0) {
    auto count = queue_->reap(in_flight_, completions_);
    if (!count || *count == 0) break;
    in_flight_ -= static_cast<std::uint32_t>(*count);
  }
  if (in_flight_ > 0) queue_.reset();  // it lost count of its reads; the next batch opens another
  store_->source->limit().release(permits);
  buffer_.release_oldest(std::nullopt);
  end_batch();
}

void DiskReader::end_batch() {
  store_->source->limit().leave(io::Urgency::kBulk);
  busy_ = false;
}

void DiskReader::account_memory() {
  const auto now =
      static_cast<std::int64_t>(buffer_.bytes() + plan_.memory_bytes() + flights_.capacity() * sizeof(Flight) +
                                completions_.capacity() * sizeof(io::Completion));
  store_->totals.add_memory(now - accounted_bytes_);
  accounted_bytes_ = now;
}

}  // namespace

void Totals::add(const Counters& batch) {
  const auto relaxed = std::memory_order_relaxed;
  batches_.fetch_add(batch.batches, relaxed);
  rows_.fetch_add(batch.rows, relaxed);
  unique_rows_.fetch_add(batch.unique_rows, relaxed);
  bundles_.fetch_add(batch.bundles, relaxed);
  blocks_.fetch_add(batch.blocks, relaxed);
  reads_.fetch_add(batch.reads, relaxed);
  bytes_read_.fetch_add(batch.bytes_read, relaxed);
  wait_ns_.fetch_add(batch.wait_ns, relaxed);
}

Counters Totals::snapshot() const {
  Counters now;
  now.batches = batches_;
  now.rows = rows_;
  now.unique_rows = unique_rows_;
  now.bundles = bundles_;
  now.blocks = blocks_;
  now.reads = reads_;
  now.bytes_read = bytes_read_;
  now.wait_ns = wait_ns_;
  now.memory_bytes = static_cast<std::uint64_t>(memory_bytes_.load());
  return now;
}

Result<std::unique_ptr<Reader>> make_disk_reader(std::shared_ptr<StoreShared> store) {
  const std::uint64_t row_run = store->table.row_bytes + 2ull * store->source->block_bytes();
  const std::uint64_t largest_run = std::max<std::uint64_t>(kRunBytesMax, row_run);
  auto reader =
      std::make_unique<DiskReader>(std::move(store), std::max<std::uint64_t>(kBufferBytesMin, 4 * largest_run));
  if (auto ready = reader->init(); !ready) return ready.error();
  return std::unique_ptr<Reader>(std::move(reader));
}

}  // namespace rowtide
