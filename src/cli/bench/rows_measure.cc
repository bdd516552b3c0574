#include "cli/bench/rows_measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <utility>

#include "address/splitmix64.h"
#include "cli/bench/rows_fio.h"
#include "cli/bench/rows_state.h"
#include "cli/failure.h"

namespace rowtide::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kColdRows = 8192;
constexpr std::uint64_t kWarmRows = 131'072;
constexpr double kColdSecondsMax = 2;
constexpr double kWarmSecondsMin = 0.25, kWarmRoundSecondsMin = 0.025;
constexpr std::size_t kRoundBytes = std::size_t{8} << 20;  // of output between two checks
constexpr std::size_t kBatchTimesMax = 16'384;
constexpr double kWarmShare = 0.99;

double seconds_between(Clock::time_point begin, Clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

template <class T>
std::optional<T> difference(const std::optional<T>& after, const std::optional<T>& before) {
  if (!after || !before) return std::nullopt;
  return *after - *before;
}

Failure no_warm_state() {
  return {kExitFailed, "unsupported", "it reads past the page cache, so it has no warm state"};
}

void add(std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& more) {
  if (more) sum = sum.value_or(0) + *more;
}

}  // namespace

RowsBench::RowsBench(const BenchRowsOptions& options, const BenchSource& source, const BenchTraceMaker& trace)
    : options_(options), source_(source), trace_(trace) {
  // What lies below a virtual disk remembers blocks for hours, so no run asks for the rows of an earlier one.
  constexpr int kRunBits = 20, kMeasurementBits = 16;
  const std::uint64_t run = std::random_device{}() & ((1u << kRunBits) - 1);
  salt_ = (run + 1) << kMeasurementBits;
  for (std::uint32_t file = 0; file < source.paths().size(); ++file) {
    blocks_read_.emplace_back(source.range(file).end / source.block_bytes + 1);
  }
}

RowsBench::~RowsBench() = default;

bool RowsBench::is_cold() const { return options_.state == BenchState::kCold || options_.state == BenchState::kMixed; }

std::uint64_t RowsBench::rows_wanted(std::size_t batch) const {
  std::uint64_t rows = options_.rows;
  if (rows == 0) rows = is_cold() ? kColdRows : std::min(kWarmRows, source_.table.rows);
  return std::max<std::uint64_t>((rows + batch - 1) / batch, 1) * batch;
}

/// Cold, the trace of no other measurement; warm, always the same.
RowsBench::Trace RowsBench::next_trace(std::size_t batch) {
  constexpr std::size_t kWakeRows = 256;
  std::vector<RowId> wake;
  if (is_cold()) {
    wake = trace_.ids(++salt_, batch, batch);
    wake.resize(std::min(batch, kWakeRows));
    ++salt_;
  }
  const std::uint64_t before = (options_.rows_before + batch - 1) / batch * batch;
  const std::uint64_t timed = rows_wanted(batch);
  const std::uint64_t counted = syscalls_.works() ? batch : 0;
  const auto ids = trace_.ids(salt_, batch, before + timed + counted);
  const auto timed_begin = ids.begin() + static_cast<std::ptrdiff_t>(before);
  const auto timed_end = timed_begin + static_cast<std::ptrdiff_t>(timed);
  return {std::move(wake), {ids.begin(), timed_begin}, {timed_begin, timed_end}, {timed_end, ids.end()}};
}

Measurement RowsBench::measure(const std::string& name, std::size_t batch) {
  if (name == "fio") return measure_fio(batch);
  const Trace trace = next_trace(batch);
  if (is_cold()) {
    open_.clear();
    cold_share_ = std::max(cold_share_, evict_rows(source_));
  }
  GatherMethod& method = opened_method(name, trace);
  if (!is_cold() && method.warmth() == Warmth::kNowhere) {
    open_.erase(name);
    throw no_warm_state();
  }
  const std::size_t round_rows = std::max<std::size_t>(kRoundBytes / source_.table.row_bytes / batch, 1) * batch;
  output_.resize(std::min<std::size_t>(round_rows, trace.timed.size()) * source_.table.row_bytes);
  if (!name.starts_with("mmap")) wake(method, trace.wake, batch);
  serve(method, trace.before, batch);
  Measurement ignored;
  count(trace.before, batch, ignored);
  warm_up(name, method, trace, batch);

  Measurement measured;
  if (method.warmth() == Warmth::kPageCache) measured.hit_share = cached_share(source_, trace.timed);
  const MethodCounts before = method.counts();
  time(name, method, trace.timed, batch, measured);
  const MethodCounts after = method.counts();
  measured.reads = difference(after.reads, before.reads);
  if (const auto bytes = difference(after.bytes_read, before.bytes_read)) measured.bytes_read = bytes;
  if (const auto wait = difference(after.wait_ns, before.wait_ns)) {
    measured.wait_seconds = 1e-9 * static_cast<double>(*wait);
  }
  if (const auto hits = difference(after.hits, before.hits)) {
    measured.hit_share = static_cast<double>(*hits) / static_cast<double>(measured.rows);
  }
  if (method.warmth() == Warmth::kCopy) measured.hit_share = 1;
  if (!trace.counted.empty()) {
    syscalls_.start();
    method.gather(trace.counted, output_.data());
    measured.syscalls_of_a_batch = syscalls_.stop();
  }
  if (method.warmth() == Warmth::kStore) {
    auto& use = rowtide_use_;
    use.way = method.way();
    use.budget_bytes = after.budget_bytes;
    use.memory_bytes = std::max(use.memory_bytes, after.memory_bytes);
    use.private_bytes = std::max(use.private_bytes, private_memory());
  }
  if (is_cold()) open_.clear();
  return measured;
}

GatherMethod& RowsBench::opened_method(const std::string& name, const Trace& trace) {
  const MethodSettings settings{options_.memory_bytes, options_.state == BenchState::kResident};
  auto& method = open_[name];
  if (name == "memcpy" && !settings.resident) method.reset();  // what it copied, another batch size does not ask for
  if (!method) {
    std::vector<RowId> copied;
    if (name == "memcpy") {
      for (const auto* part : {&trace.wake, &trace.before, &trace.timed, &trace.counted}) {
        copied.insert(copied.end(), part->begin(), part->end());
      }
    }
    method = open_method(name, source_, settings, copied);
  }
  return *method;
}

/// Has a method touch its threads and buffers, by some rows that nobody asks for again. A mapping has none, and would
/// keep what it reads around these rows in memory.
void RowsBench::wake(GatherMethod& method, std::span<const RowId> ids, std::size_t batch) {
  serve(method, ids, batch);
  if (is_cold() && method.warmth() == Warmth::kPageCache) evict_rows(source_);
}

/// Brings `method` into the state that is measured, and checks that it is there.
void RowsBench::warm_up(const std::string& name, GatherMethod& method, const Trace& trace, std::size_t batch) {
  if (options_.state == BenchState::kCold) return;
  if (options_.state == BenchState::kMixed) {
    const auto warm = warm_part(trace.timed);
    if (method.warmth() == Warmth::kStore) serve(method, warm, batch);
    if (method.warmth() == Warmth::kPageCache) cache_rows(source_, warm);
    return;
  }
  if (method.warmth() == Warmth::kPageCache) {
    if (options_.state == BenchState::kResident && cached_share(source_, trace.timed) < kWarmShare)
      cache_table(source_);
    cache_rows(source_, trace.timed);
    const double share = cached_share(source_, trace.timed);
    if (share < kWarmShare) {
      throw Failure(kExitFailed, "resource",
                    fmt::format("{}: only {:.1f} % of the rows asked for stay in the page cache; lower --rows", name,
                                100 * share));
    }
  }
  if (method.warmth() == Warmth::kStore) warm_store(method, trace.timed, batch);
  serve(method, trace.timed, batch);  // maps pages, fills the CPU's caches
}

void RowsBench::warm_store(GatherMethod& method, std::span<const RowId> ids, std::size_t batch) {
  constexpr int kPasses = 8;
  const bool fills = options_.state == BenchState::kResident;  // in the background, as fast as the disk is read
  const auto deadline = Clock::now() + std::chrono::seconds(60 + (source_.table.bytes() >> 27));
  double share = 0;
  for (int pass = 0; fills ? Clock::now() < deadline : pass < kPasses; ++pass) {
    share = serve(method, ids, batch);
    if (share >= kWarmShare) return;
    if (fills) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  throw Failure(kExitFailed, "resource",
                fmt::format("only {:.1f} % of the {} rows asked for come from Rowtide's memory; raise --memory "
                            "or lower --rows",
                            100 * share, ids.size()));
}

/// Gathers `ids` untimed; the share of them that the method found in its memory.
double RowsBench::serve(GatherMethod& method, std::span<const RowId> ids, std::size_t batch) {
  const auto before = method.counts().hits;
  for (std::size_t at = 0; at < ids.size(); at += batch) {
    const auto some = ids.subspan(at, std::min(batch, ids.size() - at));
    output_.resize(std::max<std::size_t>(output_.size(), some.size() * source_.table.row_bytes));
    method.gather(some, output_.data());
  }
  const auto hits = difference(method.counts().hits, before);
  return hits && !ids.empty() ? static_cast<double>(*hits) / static_cast<double>(ids.size()) : 0;
}

/// The share of the bundles, or rows, that a mixed state has in memory. Which, follows from the ids.
std::vector<RowId> RowsBench::warm_part(std::span<const RowId> ids) const {
  const std::size_t unit = source_.table.bundle_rows;
  std::vector<RowId> warm;
  for (std::size_t at = 0; at < ids.size(); at += unit) {
    const double draw = static_cast<double>(splitmix64(ids[at]) >> 11) * 0x1p-53;
    if (draw >= options_.warm_share) continue;
    const auto some = ids.subspan(at, std::min(unit, ids.size() - at));
    warm.insert(warm.end(), some.begin(), some.end());
  }
  return warm;
}

/// Batch after batch, and after each round of batches a check: cold, until all are done or, where nobody said how many,
/// two seconds are over; where the rows lie in memory, over and over for a quarter of a second at least.
void RowsBench::time(const std::string& name, GatherMethod& method, std::span<const RowId> ids, std::size_t batch,
                     Measurement& measured) {
  const std::size_t round_rows = output_.size() / source_.table.row_bytes / batch * batch;
  const bool once = is_cold() && method.warmth() != Warmth::kCopy;
  const RoundLimits limits{once ? 0 : kWarmRoundSecondsMin, once && options_.rows == 0 ? kColdSecondsMax : 1e9};
  std::uint64_t counted_rows = 0;
  for (std::size_t at = 0;;) {
    const auto round = ids.subspan(at, std::min(round_rows, ids.size() - at));
    const std::size_t done = time_round(method, round, batch, limits, measured);
    check_bench_rows(source_, name, round.first(done), output_);
    if (counted_rows == at) {  // the first time round
      count(round.first(done), batch, measured);
      counted_rows += done;
    }
    at += done;
    if (done < round.size()) break;  // out of time
    if (at < ids.size()) continue;
    if (once || measured.seconds >= kWarmSecondsMin) break;
    at = 0;
  }
  measured.batches = measured.rows / batch;
  measured.unique_rows = measured.unique_rows * measured.rows / counted_rows;
  measured.blocks_needed = measured.blocks_needed * measured.rows / counted_rows;
}

/// The batches of one round, again and again for seconds_min, broken off once the measurement has taken seconds_max;
/// rows of `round` gathered at least once.
std::size_t RowsBench::time_round(GatherMethod& method, std::span<const RowId> round, std::size_t batch,
                                  const RoundLimits& limits, Measurement& measured) {
  const ProcessUsage usage_before = process_usage();
  const auto begin = Clock::now();
  auto batch_begin = begin, end = begin;
  std::size_t done = 0;
  for (bool again = true; again;) {
    for (done = 0; done < round.size(); done += batch) {
      if (measured.seconds + seconds_between(begin, end) > limits.seconds_max) break;
      method.gather(round.subspan(done, batch), output_.data() + done * source_.table.row_bytes);
      end = Clock::now();
      if (measured.batch_us.size() < kBatchTimesMax) {
        measured.batch_us.push_back(static_cast<float>(1e6 * seconds_between(batch_begin, end)));
      }
      batch_begin = end;
    }
    measured.rows += done;
    again = done == round.size() && seconds_between(begin, end) < limits.seconds_min;
  }
  const ProcessUsage usage_after = process_usage();
  measured.seconds += seconds_between(begin, end);
  measured.cpu_seconds += usage_after.cpu_seconds - usage_before.cpu_seconds;
  measured.switches = measured.switches.value_or(0) + usage_after.switches - usage_before.switches;
  add(measured.bytes_read, difference(usage_after.read_bytes, usage_before.read_bytes));
  return done;
}

/// What the batches needed, whoever gathers them.
void RowsBench::count(std::span<const RowId> ids, std::size_t batch, Measurement& measured) {
  std::vector<RowId> sorted;
  std::vector<Page> blocks;
  std::vector<Page> fresh;
  for (std::size_t at = 0; at < ids.size(); at += batch) {
    const auto some = ids.subspan(at, batch);
    sorted.assign(some.begin(), some.end());
    std::sort(sorted.begin(), sorted.end());
    measured.unique_rows += static_cast<std::uint64_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
    pages_of(source_, some, blocks, source_.block_bytes);
    measured.blocks_needed += blocks.size();
    for (const Page& block : blocks) {
      if (blocks_read_[block.file][block.index]) {
        ++measured.blocks_before;
      } else {
        fresh.push_back(block);
      }
    }
  }
  for (const Page& block : fresh) blocks_read_[block.file][block.index] = true;
}

Measurement RowsBench::measure_fio(std::size_t batch) {
  if (!is_cold()) throw no_warm_state();
  const auto ran = run_fio(source_, batch, rows_wanted(batch));
  if (const auto* reason = std::get_if<std::string>(&ran)) throw Failure(kExitFailed, "unsupported", *reason);
  const auto& run = std::get<FioRun>(ran);
  Measurement measured;
  measured.reads = run.reads;
  measured.seconds = static_cast<double>(run.reads) / run.reads_per_s;
  measured.cpu_seconds = 1e-6 * run.cpu_us_per_read * static_cast<double>(run.reads);
  measured.bytes_read = run.reads * source_.block_bytes;
  return measured;
}

}  // namespace rowtide::cli
