// What the store's own processor time allows: rows a second of one reader and of two threads, over a simulated drive
// and over one ten times as fast, which shows how threads scale where the first drive is the limit already. Batches of
// distinct blocks, nothing cached; rows are checked against the rule they were made by, outside the time measured.
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "address/splitmix64.h"
#include "base/error.h"
#include "row_rule.h"
#include "rowtide/store.h"
#include "samples.h"
#include "simulated_device.h"
#include "store/open_store.h"

namespace rowtide::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::size_t kBlockBytes = 4096;
constexpr std::uint32_t kDepthMax = 1024;
constexpr std::size_t kRounds = 4;  // over all batches in one measurement: time enough for threads to find their cores

template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "simulated_bench: {}\n", result.error().message);
    std::exit(4);
  }
  return std::move(*result);
}

/// The file: rows by the rule from byte 0 on, in large pages, for a drive has no page table to walk.
std::span<const std::byte> table_in_memory(std::uint64_t rows) {
  const std::size_t bytes = (rows * kRowBytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) must<int>(make_error(ErrorCode::kResource, "no memory for {} rows", rows));
  ::madvise(memory, bytes, MADV_HUGEPAGE);
  auto* const data = static_cast<std::byte*>(memory);
  for (std::uint64_t row = 0; row < rows; ++row) fill_row(row, data + row * kRowBytes);
  return {data, bytes};
}

Table table_of(std::uint64_t rows) {
  Table table;
  table.name = "simulated";
  table.rows = rows;
  table.row_values = kRowValues;
  table.row_bytes = kRowBytes;
  table.row_format = RowFormat::kIq4Nl;
  table.components = {{"values", kRowBytes, {{.path = "simulated", .rows = rows}}}};
  return table;
}

/// Row ids of one batch, each in a block of its own.
std::vector<RowId> distinct_blocks(std::size_t count, std::uint64_t rows, std::uint64_t seed) {
  std::vector<RowId> ids;
  std::vector<bool> taken(rows * kRowBytes / kBlockBytes + 2);
  for (std::uint64_t i = 0; ids.size() < count; ++i) {
    const RowId id = splitmix64(seed * kSplitmix64Gamma + i) % rows;
    const std::uint64_t block = id * kRowBytes / kBlockBytes;
    if ((id + 1) * kRowBytes > (block + 1) * kBlockBytes || taken[block]) continue;  // straddles two, or taken
    taken[block] = true;
    ids.push_back(id);
  }
  return ids;
}

void check_rows(std::span<const RowId> ids, const std::vector<std::byte>& rows) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!is_row(ids[i], &rows[i * kRowBytes])) {
      must<int>(make_error(ErrorCode::kMismatch, "row {} is wrong", ids[i]));
    }
  }
}

/// Rows a second of `threads` readers together, each reading all batches in an order of its own.
double rows_per_s(Store& store, unsigned threads, const std::vector<std::vector<RowId>>& batches) {
  std::barrier ready(threads + 1);
  std::vector<std::thread> readers;
  for (unsigned t = 0; t < threads; ++t) {
    readers.emplace_back([&, t] {
      auto reader = must(store.reader());
      std::vector<std::byte> rows(batches.front().size() * kRowBytes);
      auto read = [&](std::size_t i) {
        const auto& ids = batches[(i + t * batches.size() / threads) % batches.size()];
        must<int>(reader->read(ids, raw(rows)) ? Result<int>(0) : make_error(ErrorCode::kIo, "a batch fails"));
        return std::span<const RowId>(ids);
      };
      check_rows(read(0), rows);  // and brings the reader's memory in
      ready.arrive_and_wait();
      for (std::size_t i = 0; i < kRounds * batches.size(); ++i) read(i);
      ready.arrive_and_wait();
      check_rows(read(0), rows);
    });
  }
  ready.arrive_and_wait();
  const auto start = Clock::now();
  ready.arrive_and_wait();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (std::thread& reader : readers) reader.join();
  return static_cast<double>(threads * kRounds * batches.size() * batches.front().size()) / seconds;
}

/// Nanoseconds in which this machine copies a block out of the table: the drive's work, done by the readers.
double copy_ns(std::span<const std::byte> content, const std::vector<std::vector<RowId>>& batches) {
  std::vector<std::byte> into(std::size_t{4} << 20);
  const auto start = Clock::now();
  std::size_t at = 0;
  for (const auto& batch : batches) {
    for (const RowId id : batch) {
      std::memcpy(&into[at], content.data() + id * kRowBytes / kBlockBytes * kBlockBytes, kBlockBytes);
      at = (at + kBlockBytes) % into.size();
    }
  }
  const double ns = std::chrono::duration<double, std::nano>(Clock::now() - start).count();
  return ns / static_cast<double>(batches.size() * batches.front().size());
}

struct Options {
  std::uint64_t rows = 8'000'000;
  std::uint64_t reads_per_s = 1'000'000;
  std::uint32_t latency_us = 80;
  std::uint32_t depth = 256;
  std::size_t batch = 8192;
  int repeat = 7;
};

struct Measured {
  std::shared_ptr<Store> store;
  Samples one, two, ratio;
};

Measured open_drive(std::span<const std::byte> content, const Options& options, const SimulatedDrive& drive,
                    std::uint32_t depth) {
  auto source = std::make_unique<SimulatedSource>(content, drive, depth);
  return {must(open_store(table_of(options.rows), std::move(source), {.mode = Mode::kDisk, .queue_depth = depth})),
          {},
          {},
          {}};
}

json run(const Options& options) {
  const double load = load_average();
  const auto content = table_in_memory(options.rows);
  std::vector<std::vector<RowId>> batches;
  const std::uint64_t seed = std::uint64_t{std::random_device{}()} << 32;
  for (std::uint64_t i = 0; i < 16; ++i) batches.push_back(distinct_blocks(options.batch, options.rows, seed + i));

  const std::chrono::microseconds latency(options.latency_us);
  std::vector<Measured> drives;
  drives.push_back(open_drive(content, options, {options.reads_per_s, latency}, options.depth));
  drives.push_back(open_drive(content, options, {10 * options.reads_per_s, latency}, kDepthMax));
  Samples copy;
  for (int i = 0; i < options.repeat; ++i) {
    for (Measured& drive : drives) {
      const double alone = rows_per_s(*drive.store, 1, batches), together = rows_per_s(*drive.store, 2, batches);
      drive.one.add(alone);
      drive.two.add(together);
      drive.ratio.add(together / alone);
    }
    copy.add(copy_ns(content, batches));
  }
  json results = json::array();
  for (const Measured& drive : drives) {
    results.push_back({{"method", drive.store->method()},
                       {"rows_per_s_one_reader", drive.one.json()},
                       {"rows_per_s_two_readers", drive.two.json()},
                       {"two_to_one", drive.ratio.json()}});
  }
  return {{"rows", options.rows},        {"batch", options.batch},        {"repeat", options.repeat},
          {"load_average_before", load}, {"results", std::move(results)}, {"copy_ns_per_read", copy.json()}};
}

std::string range(const json& numbers, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", numbers["median"].get<double>(), digits,
                     numbers["least"].get<double>(), digits, numbers["most"].get<double>(), digits);
}

void print(const json& report) {
  fmt::print("batches of {} distinct blocks, median of {}, load average before {:.1f}\n",
             report["batch"].get<std::size_t>(), report["repeat"].get<int>(),
             report["load_average_before"].get<double>());
  for (const json& result : report["results"]) {
    fmt::print("{}\n  one reader   {} rows/s\n  two threads  {} rows/s, {} times one\n",
               result["method"].get<std::string>(), range(result["rows_per_s_one_reader"], 0),
               range(result["rows_per_s_two_readers"], 0), range(result["two_to_one"], 2));
  }
  fmt::print("of each row the copy that a drive makes by itself: {} ns\n", range(report["copy_ns_per_read"], 0));
}

}  // namespace
}  // namespace rowtide::bench

int main(int argc, char** argv) {
  CLI::App app{"Rows a second of one reader and of two threads over a simulated drive."};
  rowtide::bench::Options options;
  bool as_json = false;
  app.add_option("--rows", options.rows, "rows of the table, 90 bytes of memory each")
      ->check(CLI::Range(1'000'000, 200'000'000));
  app.add_option("--reads-per-s", options.reads_per_s, "the drive's rate")->check(CLI::Range(1, 1'000'000'000));
  app.add_option("--latency-us", options.latency_us, "the drive's latency")->check(CLI::Range(0, 1'000'000));
  app.add_option("--depth", options.depth, "reads in flight")->check(CLI::Range(1, 1024));
  app.add_option("--batch", options.batch, "rows in a batch")->check(CLI::Range(1, 16'384));
  app.add_option("--repeat", options.repeat, "measurements of each kind")->check(CLI::Range(1, 1000));
  app.add_flag("--json", as_json, "one JSON document on standard output");
  CLI11_PARSE(app, argc, argv);
  const auto report = rowtide::bench::run(options);
  if (as_json) {
    std::cout << report.dump(2) << '\n';
  } else {
    rowtide::bench::print(report);
  }
  return 0;
}
