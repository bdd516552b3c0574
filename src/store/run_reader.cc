#include "store/run_reader.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kRetriesMax = 8;  // of one read, after EINTR, EAGAIN or a short read
// How long a prefetch that may not read just now waits before it asks again.
constexpr std::chrono::microseconds kPermitWait{200};

// A queue so short is for long reads, of which each is worth a system call.
constexpr std::uint32_t kShortDepth = 8;

}  // namespace

RunReader::RunReader(io::BlockSource& source, const RowMap& map, const Table& table, std::uint32_t depth,
                     std::uint64_t buffer_bytes)
    : source_(source), map_(map), table_(table), depth_(depth), buffer_(buffer_bytes) {}

RunReader::~RunReader() { abandon(); }

Result<void> RunReader::open() {
  if (buffer_.data() == nullptr) {
    return make_error(ErrorCode::kResource, "table {}: no memory for a reader's buffer", table_.name);
  }
  auto queue = source_.queue(depth_, {buffer_.data(), buffer_.bytes()});
  if (!queue) return queue.error();
  queue_ = *std::move(queue);
  wanted_.reserve(depth_);
  completions_.resize(depth_);
  return {};
}

Result<void> RunReader::start(std::span<const Run> runs, Sink& sink, io::Urgency urgency,
                              const std::atomic<bool>* given_up) {
  if (!queue_) {
    if (auto opened = open(); !opened) return opened;
  }
  flights_.assign(runs.size(), Flight{});
  runs_ = runs;
  sink_ = &sink;
  urgency_ = urgency;
  given_up_ = given_up;
  next_ = oldest_ = in_flight_ = 0;
  totals_ = {};
  source_.limit().join(urgency_);
  auto begun = pump();
  if (begun) begun = reap(0);  // the caller may compute before it calls finish()
  if (!begun) abandon();
  return begun;
}

Result<RunTotals> RunReader::finish() {
  if (auto completed = complete_all(); !completed) {
    abandon();
    return completed.error();
  }
  source_.limit().leave(urgency_);
  sink_ = nullptr;
  return totals_;
}

Result<void> RunReader::complete_all() {
  while (oldest_ < runs_.size()) {
    if (given_up_ != nullptr && *given_up_) {
      return make_error(ErrorCode::kUsage, "table {}: nobody wants its rows any more", table_.name);
    }
    if (auto pumped = pump(); !pumped) return pumped;
    if (in_flight_ == 0) {
      std::this_thread::sleep_for(kPermitWait);
      continue;
    }
    // Half the queue at a time: few system calls, and the device still has the other half to work on.
    const std::uint32_t half = std::max(1u, next_ < runs_.size() ? in_flight_ / 2 : in_flight_);
    if (auto reaped = reap(depth_ <= kShortDepth ? 1 : half); !reaped) return reaped;
  }
  return {};
}

/// Submits as many runs as the device-wide limit and the buffer have room for.
Result<void> RunReader::pump() {
  const std::uint32_t room = std::min(depth_ - in_flight_, static_cast<std::uint32_t>(runs_.size()) - next_);
  if (room == 0) return {};
  const std::uint32_t permits = source_.limit().acquire(room, in_flight_, urgency_);
  wanted_.clear();
  while (wanted_.size() < permits) {
    const auto at = buffer_.place(runs_[next_].bytes);
    if (!at) break;
    flights_[next_].buffer_at = static_cast<std::uint32_t>(*at);
    wanted_.push_back(request_for(next_++));
  }
  source_.limit().release(permits - static_cast<std::uint32_t>(wanted_.size()));
  return submit_wanted();
}

Result<void> RunReader::submit_wanted() {
  if (wanted_.empty()) return {};
  in_flight_ += static_cast<std::uint32_t>(wanted_.size());
  totals_.reads += wanted_.size();
  return queue_->submit(wanted_);
}

io::ReadRequest RunReader::request_for(std::uint32_t run_index) const {
  const Run& run = runs_[run_index];
  const Flight& flight = flights_[run_index];
  return {run.file, run.bytes - flight.got, run.offset + flight.got, buffer_.data() + flight.buffer_at + flight.got,
          run_index};
}

Result<void> RunReader::reap(std::uint32_t at_least) {
  const auto start = std::chrono::steady_clock::now();
  auto count = queue_->reap(at_least, completions_);
  totals_.wait_ns += static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start).count());
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
  source_.limit().release(landed);
  auto submitted = submit_wanted();  // reads that came back short keep their permit
  return outcome ? submitted : outcome;
}

/// Takes one completion: delivers the run, asks again for what is missing (wanted_), or fails.
Result<void> RunReader::complete(const io::Completion& completion) {
  const auto index = static_cast<std::uint32_t>(completion.tag);
  const Run& run = runs_[index];
  Flight& flight = flights_[index];
  const bool again = completion.result == -EINTR || completion.result == -EAGAIN;
  if (completion.result < 0 && !again) return read_error(run, errno_text(-completion.result));
  if (completion.result > 0) {
    flight.got += static_cast<std::uint32_t>(completion.result);
    totals_.bytes_read += static_cast<std::uint64_t>(completion.result);
  }
  if (flight.got >= needed_bytes(run)) {
    sink_->deliver(run, buffer_.data() + flight.buffer_at);
    land(index);
    return {};
  }
  const bool whole_blocks = flight.got % source_.block_bytes() == 0;
  if ((!again && completion.result == 0) || !whole_blocks) {
    return read_error(run, fmt::format("the file has nothing from byte {} on; it was cut short after it was opened",
                                       run.offset + flight.got));
  }
  if (++flight.retries > kRetriesMax) return read_error(run, "the device keeps giving less than was asked for");
  wanted_.push_back(request_for(index));
  return {};
}

/// Bytes of the run that its rows need: all but what lies behind the end of the file.
std::uint32_t RunReader::needed_bytes(const Run& run) const {
  const std::uint64_t in_file = source_.file_bytes(run.file) - run.offset;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(run.bytes, in_file));
}

/// The run's buffer is free once every older run is done as well.
void RunReader::land(std::uint32_t run_index) {
  flights_[run_index].done = true;
  while (oldest_ < next_ && flights_[oldest_].done) {
    ++oldest_;
    buffer_.release_oldest(oldest_ < next_ ? std::optional<std::size_t>(flights_[oldest_].buffer_at) : std::nullopt);
  }
}

Error RunReader::read_error(const Run& run, const std::string& why) const {
  return make_error(ErrorCode::kIo, "{}: reading {} bytes at offset {} for row {} of table {} failed: {}",
                    map_.paths()[run.file], run.bytes, run.offset, sink_->row_of(run), table_.name, why);
}

void RunReader::abandon() {
  if (sink_ == nullptr) return;
  const std::uint32_t permits = in_flight_;
  while (in_flight_ > 0) {
    auto count = queue_->reap(in_flight_, completions_);
    if (!count || *count == 0) break;
    in_flight_ -= static_cast<std::uint32_t>(*count);
  }
  if (in_flight_ > 0) queue_.reset();  // it lost count of its reads; the next batch opens another
  source_.limit().release(permits);
  source_.limit().leave(urgency_);
  buffer_.release_oldest(std::nullopt);
  sink_ = nullptr;
}

std::uint64_t RunReader::memory_bytes() const {
  return buffer_.bytes() + flights_.capacity() * sizeof(Flight) + completions_.capacity() * sizeof(io::Completion) +
         wanted_.capacity() * sizeof(io::ReadRequest);
}

}  // namespace rowtide
