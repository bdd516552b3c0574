#include "store/store_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "base/error.h"
#include "base/log.h"

namespace rowtide {
namespace {

constexpr std::size_t kPartRows = 8192;  // of a batch that helpers work on
// A batch of so many reads shows what its drive can do; below so many a second it is slow.
constexpr std::uint64_t kJudgedByReads = 256;
constexpr double kSlowReadsPerS = 2000;
constexpr std::size_t kBatchRowsMax = std::size_t{1} << 20;
// What a reader keeps of a large batch's memory for the next one.
constexpr std::uint64_t kKeptBytesMax = std::uint64_t{16} << 20;
constexpr std::uint32_t kRunBytesMax = 64 * 1024;  // one read; neighbours beyond it are read apart
// Many times the queue's depth in blocks, so that one slow read stalls nobody.
constexpr std::uint64_t kBufferBytesMin = std::uint64_t{4} << 20;

std::uint64_t buffer_bytes_for(const io::BlockSource& source, std::uint64_t row_bytes) {
  const std::uint64_t row_run = row_bytes + 2ull * source.block_bytes();
  return std::max<std::uint64_t>(kBufferBytesMin, 4 * std::max<std::uint64_t>(kRunBytesMax, row_run));
}

std::uint64_t row_bytes_as(Output::Form form, const Table& table) {
  switch (form) {
    case Output::Form::kRaw: return table.row_bytes;
    case Output::Form::kF32: return table.row_values * sizeof(float);
    case Output::Form::kBf16: return table.row_values * sizeof(std::uint16_t);
  }
  return 0;
}

/// `vector = {}` would keep it.
template <class Item>
void free_memory(std::vector<Item>& vector) {
  std::vector<Item>().swap(vector);
}

}  // namespace

StoreReader::StoreReader(std::shared_ptr<StoreShared> store)
    : store_(std::move(store)),
      table_(store_->table),
      coding_(table_.coding()),
      heads_(table_.bundle_rows),
      run_reader_(*store_->source, store_->map, table_, store_->depth,
                  buffer_bytes_for(*store_->source, table_.row_bytes)) {
  if (store_->cache != nullptr) lookup_.emplace(*store_->cache);
  if (store_->map.parts().size() > 1) gathered_.resize(table_.row_bytes);
}

Result<std::unique_ptr<StoreReader>> StoreReader::make(std::shared_ptr<StoreShared> store) {
  std::unique_ptr<StoreReader> reader(new StoreReader(std::move(store)));
  auto memory = reader->store_->budget->take(MemoryBudget::Use::kBuffers, reader->run_reader_.memory_bytes());
  if (!memory) return memory.error();
  reader->memory_ = *std::move(memory);
  if (auto opened = reader->run_reader_.open(); !opened) return opened.error();
  return reader;
}

StoreReader::~StoreReader() {
  if (busy_) end(false);
}

Result<void> StoreReader::check(std::span<const RowId> ids, Output output) const {
  if (busy_) return make_error(ErrorCode::kUsage, "table {}: a batch is in flight; finish() it first", table_.name);
  if (ids.size() > kBatchRowsMax) {
    return make_error(ErrorCode::kUsage, "table {}: a batch of {} rows; at most {} at once", table_.name, ids.size(),
                      kBatchRowsMax);
  }
  const std::uint64_t bytes = ids.size() * row_bytes_as(output.form, table_);
  if (output.bytes != bytes) {
    return make_error(ErrorCode::kUsage, "table {}: {} rows need {} bytes of output, {} were given", table_.name,
                      ids.size(), bytes, output.bytes);
  }
  const auto outside = std::find_if(ids.begin(), ids.end(), [this](RowId id) { return id >= table_.rows; });
  if (outside == ids.end()) return {};
  return make_error(ErrorCode::kOutOfRange, "table {}: row {} is not within its {} rows", table_.name, *outside,
                    table_.rows);
}

Result<void> StoreReader::begin(std::span<const RowId> ids, Output output) {
  if (auto valid = check(ids, output); !valid) return valid;
  output_ = output;
  output_row_bytes_ = row_bytes_as(output.form, table_);
  for_cache_ = false;
  given_up_ = nullptr;
  ++store_->demand;
  return start(ids, ids.size() <= kUrgentRowsMax ? io::Urgency::kUrgent : io::Urgency::kBulk);
}

Result<void> StoreReader::prefetch(std::span<const RowId> ids, const std::atomic<bool>& given_up) {
  for_cache_ = true;
  given_up_ = &given_up;
  if (auto started = start(ids.first(ids.size() / heads_ * heads_), io::Urgency::kPrefetch); !started) return started;
  return finish();
}

Result<void> StoreReader::start(std::span<const RowId> ids, io::Urgency urgency) {
  busy_ = true;
  auto started = without_throwing([&]() -> Result<void> {
    rows_ = ids.size();
    hits_ = prefetched_used_ = 0;
    missed_.clear();
    repeated_.clear();
    plan_.clear();
    if (gather_resident(ids)) return {};
    look_up(ids);
    if (auto planned = plan(ids); !planned) return planned;
    return read_planned(urgency);
  });
  if (!started) end(false);
  return started;
}

/// The whole batch from a table that is all in memory; false if it is not.
bool StoreReader::gather_resident(std::span<const RowId> ids) {
  if (!store_->resident || store_->resident->filled() != table_.rows) return false;
  constexpr std::size_t kAhead = 16;  // rows whose cache lines are on their way
  const ResidentRows& resident = *store_->resident;
  auto gather_part = [&](std::size_t part) {
    const std::size_t end = std::min(ids.size(), (part + 1) * kPartRows);
    for (std::size_t i = part * kPartRows; i < end; ++i) {
      const std::byte* const coming = resident.row(ids[std::min(i + kAhead, end - 1)]);
      __builtin_prefetch(coming);
      __builtin_prefetch(coming + table_.row_bytes - 1);
      emit(resident.row(ids[i]), 1, i);
    }
  };
  if (!for_cache_) {
    HelperThreads::of_process().run(resident_habit_, (ids.size() + kPartRows - 1) / kPartRows, gather_part);
  }
  hits_ = ids.size();
  return true;
}

/// Copies what is in the cache; the rest of the whole bundles goes to missed_ and repeated_.
void StoreReader::look_up(std::span<const RowId> ids) {
  const std::size_t bundles = ids.size() / heads_;
  if (!lookup_) {
    // Without a cache one row may as well be planned as another; the plan drops duplicates.
    for (std::size_t bundle = 0; bundle < bundles; ++bundle) {
      missed_.push_back({0, static_cast<std::uint32_t>(bundle), 0, nullptr, 0});
    }
    return;
  }
  seen_.assign(std::bit_ceil(2 * bundles + 1), 0);
  looked_up_.resize(bundles);
  auto probe_part = [&](std::size_t part) { probe(ids, part); };
  const std::size_t part_bundles = std::max<std::size_t>(1, kPartRows / heads_);
  HelperThreads::of_process().run(cache_habit_, (bundles + part_bundles - 1) / part_bundles, probe_part);
  const auto missed = std::count_if(looked_up_.begin(), looked_up_.end(), [](const LookedUp& l) { return l.missed; });
  missed_.reserve(static_cast<std::size_t>(missed));  // growing step by step would take half as much again meanwhile
  for (std::size_t bundle = 0; bundle < bundles; ++bundle) {
    if (looked_up_[bundle].missed) miss(ids, bundle, looked_up_[bundle].hash);
  }
  hits_ = heads_ * (bundles - missed_.size() - repeated_.size());
}

void StoreReader::probe(std::span<const RowId> ids, std::size_t part) {
  const std::size_t part_bundles = std::max<std::size_t>(1, kPartRows / heads_);
  const std::size_t first = part * part_bundles;
  const std::size_t end = std::min(ids.size() / heads_, first + part_bundles);
  const auto hit = [&](std::size_t bundle, const std::byte* rows) {
    looked_up_[bundle].missed = false;
    if (!for_cache_) emit(rows, heads_, bundle * heads_);
  };
  const auto miss = [&](std::size_t bundle, std::uint64_t hash) { looked_up_[bundle] = {hash, true}; };
  const auto use = for_cache_ ? BundleCache::Use::kLook : BundleCache::Use::kTouch;
  if (first == 0) {
    prefetched_used_ += lookup_->probe(*store_->cached, ids, first, end, use, hit, miss);
  } else {  // maybe on another thread, beside this one
    prefetched_used_ += BundleCache::Lookup(*store_->cache).probe(*store_->cached, ids, first, end, use, hit, miss);
  }
}

void StoreReader::miss(std::span<const RowId> ids, std::size_t bundle, std::uint64_t hash) {
  const RowId* const key = &ids[bundle * heads_];
  const std::size_t mask = seen_.size() - 1;
  std::size_t at = hash & mask;
  for (; seen_[at] != 0; at = (at + 1) & mask) {
    const std::uint32_t index = seen_[at] - 1;
    Missed& earlier = missed_[index];
    if (earlier.hash != hash || !std::equal(key, key + heads_, &ids[earlier.bundle * heads_])) continue;
    ++earlier.touches;
    repeated_.push_back({static_cast<std::uint32_t>(bundle), index});
    return;
  }
  missed_.push_back({hash, static_cast<std::uint32_t>(bundle), 0, nullptr, 0});
  seen_[at] = static_cast<std::uint32_t>(missed_.size());
}

/// What must be read. Positions in the plan count the rows of missed_, then those of a last, incomplete bundle.
Result<void> StoreReader::plan(std::span<const RowId> ids) {
  // What a large plan takes is asked for before it is taken: the cache gives way first.
  const std::uint64_t rows = (missed_.size() + 1) * heads_;
  if (const std::uint64_t most = BatchPlan::memory_bytes_most(rows, store_->map.parts().size()); most > kKeptBytesMax) {
    if (auto accounted = account_memory(most); !accounted) return accounted;
  }
  if (store_->cache != nullptr) store_->cache->reserve(*store_->cached, ids, missed_, for_cache_);
  plan_.reserve(rows);
  for (std::size_t i = 0; i < missed_.size(); ++i) {
    if (for_cache_ && missed_[i].rows == nullptr) continue;
    plan_bundle(&ids[missed_[i].bundle * heads_], heads_, i * heads_);
  }
  const std::size_t whole = ids.size() / heads_ * heads_;
  plan_bundle(ids.data() + whole, ids.size() - whole, missed_.size() * heads_);
  plan_.make(store_->map, table_.rows, store_->source->block_bytes(), kRunBytesMax);
  return {};
}

void StoreReader::plan_bundle(const RowId* ids, std::uint64_t rows, std::uint64_t position) {
  const RowId resident = store_->resident ? store_->resident->filled() : 0;
  for (std::uint64_t head = 0; head < rows; ++head) {
    if (ids[head] >= resident) {
      plan_.add(ids[head], position + head);
      continue;
    }
    ++hits_;
    deliver_row(position + head, store_->resident->row(ids[head]));
  }
}

Result<void> StoreReader::read_planned(io::Urgency urgency) {
  if (plan_.runs().empty()) return {};
  if (auto accounted = account_memory(plan_.memory_bytes()); !accounted) return accounted;
  if (auto started = run_reader_.start(plan_.runs(), *this, urgency, given_up_); !started) return started;
  reading_ = true;
  return {};
}

Result<void> StoreReader::finish() {
  if (!busy_) return {};
  RunTotals run_totals;
  if (reading_) {
    auto finished = without_throwing([&] { return run_reader_.finish(); });
    if (!finished) {
      end(false);
      return finished.error();
    }
    run_totals = *finished;
    reading_ = false;
  }
  if (!for_cache_) {
    if (output_.form != Output::Form::kRaw && store_->map.parts().size() > 1) decode_gathered();
    copy_repeated();
  }
  judge_drive(run_totals);
  const Counters batch = counted(run_totals);
  end(true);
  store_->totals.add(batch);  // whoever sees that rows were brought finds them
  return {};
}

void StoreReader::deliver(const Run& run, const std::byte* bytes) {
  const RowMap::Part& part = store_->map.parts()[run.component];
  const auto requests = plan_.requests().subspan(run.first_request, run.end_request - run.first_request);
  const auto each = [&](auto take) {
    for (const Request request : requests) {
      take(request.position(), bytes + (part.place(request.row()).offset - run.offset));
    }
  };
  if (store_->map.parts().size() == 1) {
    each([this](std::uint64_t position, const std::byte* row) { deliver_row(position, row); });
  } else {
    each([&](std::uint64_t position, const std::byte* row_part) { deliver_part(position, part, row_part); });
  }
}

/// Where in the cache it goes; null if it does not.
std::byte* StoreReader::cache_place(const Planned& row) const {
  if (row.index >= missed_.size() || missed_[row.index].rows == nullptr) return nullptr;
  return missed_[row.index].rows + row.head * table_.row_bytes;
}

/// Which row of the output it is.
std::uint64_t StoreReader::output_row(const Planned& row) const {
  const std::uint64_t bundle = row.index < missed_.size() ? missed_[row.index].bundle : rows_ / heads_;
  return bundle * heads_ + row.head;
}

/// A row that was not in the cache: to the output, and to its place there.
void StoreReader::deliver_row(std::uint64_t position, const std::byte* bytes) {
  const Planned row = planned(position);
  if (std::byte* const place = cache_place(row)) std::memcpy(place, bytes, table_.row_bytes);
  if (!for_cache_) emit(bytes, 1, output_row(row));
}

/// The same for what one of several components holds of it. Decoding waits until all parts are there.
void StoreReader::deliver_part(std::uint64_t position, const RowMap::Part& part, const std::byte* bytes) {
  const Planned row = planned(position);
  if (std::byte* const place = cache_place(row)) std::memcpy(place + part.at, bytes, part.bytes);
  if (!for_cache_) std::memcpy(gathered_row(output_row(row)) + part.at, bytes, part.bytes);
}

/// Where the parts of a raw row meet: at the end of its place in the output, where a raw row has room in any form.
std::byte* StoreReader::gathered_row(std::uint64_t at) const {
  return output_.data + (at + 1) * output_row_bytes_ - table_.row_bytes;
}

void StoreReader::decode_gathered() {
  for (const Request request : plan_.requests()) {
    const std::uint64_t at = output_row(planned(request.position()));
    std::memcpy(gathered_.data(), gathered_row(at), table_.row_bytes);
    emit(gathered_.data(), 1, at);
  }
}

/// `count` raw rows that lie next to each other, to the output's rows from `at` on.
void StoreReader::emit(const std::byte* rows, std::uint64_t count, std::uint64_t at) const {
  std::byte* const to = output_.data + at * output_row_bytes_;
  switch (output_.form) {
    case Output::Form::kRaw: std::memcpy(to, rows, count * table_.row_bytes); return;
    case Output::Form::kF32: decode_f32(coding_, rows, count, reinterpret_cast<float*>(to)); return;
    case Output::Form::kBf16: decode_bf16(coding_, rows, count, reinterpret_cast<std::uint16_t*>(to)); return;
  }
}

void StoreReader::copy_repeated() const {
  const std::uint64_t bytes = heads_ * output_row_bytes_;
  for (const Repeated& repeated : repeated_) {
    std::memcpy(output_.data + repeated.bundle * bytes, output_.data + missed_[repeated.missed].bundle * bytes, bytes);
  }
}

/// Says once that a drive is too slow for what it is used for.
void StoreReader::judge_drive(const RunTotals& run_totals) const {
  if (run_totals.reads < kJudgedByReads || for_cache_) return;
  const double reads_per_s = 1e9 * static_cast<double>(run_totals.reads) / static_cast<double>(run_totals.wait_ns + 1);
  if (reads_per_s >= kSlowReadsPerS || store_->slow_drive_told.exchange(true)) return;
  log(LogLevel::kWarn,
      "{}: its drive gives no more than {:.0f} random reads a second, as a hard disk or a throttled "
      "volume does: move the file to flash storage, or make the table resident",
      store_->map.paths().front(), reads_per_s);
}

Counters StoreReader::counted(const RunTotals& run_totals) const {
  Counters batch;
  if (for_cache_) {
    batch.prefetched_rows =
        heads_ * static_cast<std::uint64_t>(
                     std::count_if(missed_.begin(), missed_.end(), [](const Missed& m) { return m.rows != nullptr; }));
    batch.prefetch_reads = run_totals.reads;
    batch.prefetch_bytes_read = run_totals.bytes_read;
  } else {
    batch.batches = 1;
    batch.rows = rows_;
    if (heads_ > 1) batch.bundles = rows_ / heads_;
    batch.hits = hits_;
    batch.unique_rows = plan_.unique_rows();
    batch.blocks = plan_.blocks();
    batch.reads = run_totals.reads;
    batch.bytes_read = run_totals.bytes_read;
    batch.wait_ns = run_totals.wait_ns;
    batch.prefetched_rows_used = prefetched_used_ * heads_;
  }
  return batch;
}

/// Lets go of everything the batch holds: its rows may be found in the cache from now on, or never.
void StoreReader::end(bool succeeded) {
  if (reading_) run_reader_.abandon();
  reading_ = busy_ = false;
  if (store_->cache != nullptr) {
    if (succeeded) {
      store_->cache->publish(*store_->cached, missed_);
    } else {
      store_->cache->cancel(*store_->cached, missed_);
    }
  }
  missed_.clear();
  if (!for_cache_ && store_->demand.fetch_sub(1) == 1) store_->demand.notify_all();
  if (lookup_bytes() + plan_.memory_bytes() > kKeptBytesMax) {
    free_memory(missed_);
    free_memory(repeated_);
    free_memory(looked_up_);
    free_memory(seen_);
    plan_ = {};
  }
  // Less than before is always granted.
  if (memory_.bytes() > run_reader_.memory_bytes() + kKeptBytesMax) (void)account_memory(plan_.memory_bytes());
}

/// What the batch takes beside its plan and its reads.
std::uint64_t StoreReader::lookup_bytes() const {
  return missed_.capacity() * sizeof(Missed) + looked_up_.capacity() * sizeof(LookedUp) +
         repeated_.capacity() * sizeof(Repeated) + seen_.capacity() * sizeof(std::uint32_t);
}

/// With a plan that takes so much.
Result<void> StoreReader::account_memory(std::uint64_t plan_bytes) {
  const std::uint64_t bytes = run_reader_.memory_bytes() + plan_bytes + lookup_bytes();
  return bytes == memory_.bytes() ? Result<void>() : memory_.resize(bytes);
}

}  // namespace rowtide
