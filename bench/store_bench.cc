// Cold batches through the store: rows a second by batch size, by io_uring and by the pread pool that stands in where
// io_uring is refused, on one file in one run, beside fio's random reads of the same block and depth. Every row is
// checked against the rule it was made by.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include "address/splitmix64.h"
#include "base/error.h"
#include "io/block_source.h"
#include "io/page_cache.h"
#include "row_rule.h"
#include "rowtide/checkpoint.h"
#include "rowtide/store.h"
#include "samples.h"
#include "store/open_store.h"

namespace rowtide::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::uint32_t kDepth = 64;
constexpr std::size_t kRowsEachTime = 32'768;  // so many at least in every measurement, however small the batch

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void fail(const Error& error) {
  fmt::print(stderr, "store_bench: {}\n", error.message);
  std::exit(error.code == ErrorCode::kMismatch ? 1 : 4);
}

template <class T>
T must(Result<T> result) {
  if (!result) fail(result.error());
  return std::move(*result);
}
void must(Result<void> result) {
  if (!result) fail(result.error());
}

std::vector<RowId> distinct_rows(std::size_t count, std::uint64_t rows, std::uint64_t seed) {
  std::vector<RowId> ids;
  std::unordered_set<RowId> seen;
  for (std::uint64_t i = 0; ids.size() < count; ++i) {
    const RowId id = splitmix64(seed * kSplitmix64Gamma + i) % rows;
    if (seen.insert(id).second) ids.push_back(id);
  }
  return ids;
}

struct Way {
  std::string name;
  io::BlockSourceOptions options;
};

struct Measured {
  Samples rows_per_s, reads_per_s, batch_us;
};

/// One measurement: kRowsEachTime cold rows or one batch of them, whichever is more.
void measure(const Table& table, const Way& way, std::size_t batch, std::uint64_t seed, Measured& measured) {
  const std::string& path = table.components.front().extents.front().path;
  must(io::make_cold(path));
  auto source = must(io::open_block_source({path}, way.options));
  auto store = must(open_store(table, std::move(source), {.mode = Mode::kDisk, .queue_depth = kDepth}));
  auto reader = must(store->reader());
  const auto ids = distinct_rows(std::max(batch, kRowsEachTime), table.rows, seed);
  std::vector<std::byte> rows(batch * kRowBytes);
  double busy = 0;
  for (std::size_t at = 0; at + batch <= ids.size(); at += batch) {
    const std::span<const RowId> asked(&ids[at], batch);
    const auto start = Clock::now();
    must(reader->read(asked, raw(rows)));
    const double seconds = seconds_since(start);
    busy += seconds;
    measured.batch_us.add(1e6 * seconds);
    for (std::size_t i = 0; i < batch; ++i) {
      if (!is_row(asked[i], &rows[i * kRowBytes])) {
        fail(make_error(ErrorCode::kMismatch, "{}: row {} is wrong", table.name, asked[i]));
      }
    }
  }
  const Counters counters = store->counters();
  measured.rows_per_s.add(static_cast<double>(counters.rows) / busy);
  measured.reads_per_s.add(static_cast<double>(counters.reads) / busy);
}

/// From the first look at the checkpoint to the first row, cold.
double seconds_to_first_row(const std::string& path) {
  must(io::make_cold(path));
  const auto start = Clock::now();
  auto checkpoint = must(Checkpoint::open(path));
  auto store = must(Store::open(checkpoint.tables().front(), {.mode = Mode::kDisk}));
  auto reader = must(store->reader());
  std::vector<std::byte> row(kRowBytes);
  const RowId id = store->table().rows / 2;
  must(reader->read({&id, 1}, raw(row)));
  return seconds_since(start);
}

/// fio's random reads a second of one block at the store's depth; nothing where fio is not installed.
std::optional<double> fio_reads_per_s(const std::string& path, std::uint32_t block_bytes) {
  const std::string command = fmt::format(
      "fio --name=random --randrepeat=0 --filename='{}' --readonly --direct=1 --rw=randread --bs={} --iodepth={} "
      "--ioengine=io_uring "
      "--time_based --runtime=2 --output-format=json 2>/dev/null",
      path, block_bytes, kDepth);
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, got);
  if (pclose(pipe) != 0) return std::nullopt;
  const json parsed = json::parse(output.substr(output.find('{')), nullptr, false);
  if (parsed.is_discarded()) return std::nullopt;
  return parsed["jobs"][0]["read"]["iops"].get<double>();
}

json run(const std::string& path, int repeat) {
  const double load = load_average();
  const auto checkpoint = must(Checkpoint::open(path));
  if (checkpoint.tables().empty() || checkpoint.tables().front().row_bytes != kRowBytes) {
    fail(make_error(ErrorCode::kUsage, "{}: holds no table that make_table wrote", path));
  }
  const Table& table = checkpoint.tables().front();
  const std::vector<Way> ways{{"io_uring", {.depth = kDepth}}, {"pread", {.depth = kDepth, .allow_uring = false}}};
  const std::uint32_t block = must(io::open_block_source({path}, ways[0].options))->block_bytes();
  Samples first_row, fio;
  for (int i = 0; i < repeat; ++i) first_row.add(seconds_to_first_row(path));

  json batches = json::array();
  // Never the rows of another measurement, of this run or of an earlier one: what lies below a virtual disk keeps what
  // was read last, and the second to read it would look three times as fast.
  std::uint64_t seed = std::uint64_t{std::random_device{}()} << 32;
  for (const std::size_t batch : {1u, 16u, 128u, 2048u, 8192u, 32768u}) {
    std::map<std::string, Measured> measured;
    for (int i = 0; i < repeat; ++i) {
      for (const Way& way : ways) measure(table, way, batch, ++seed, measured[way.name]);
      if (batch == 8192) {
        if (const auto reads = fio_reads_per_s(path, block)) fio.add(*reads);
      }
    }
    json entry{{"rows", batch}};
    for (const auto& [name, numbers] : measured) {
      entry[name] = {{"rows_per_s", numbers.rows_per_s.json()},
                     {"reads_per_s", numbers.reads_per_s.json()},
                     {"batch_us", {{"p50", numbers.batch_us.median()}, {"p99", numbers.batch_us.at(0.99)}}}};
    }
    entry["pread_to_io_uring"] = measured["pread"].rows_per_s.median() / measured["io_uring"].rows_per_s.median();
    batches.push_back(std::move(entry));
  }
  json report{{"file", path},
              {"rows", table.rows},
              {"state", "cold"},
              {"load_average_before", load},
              {"block", block},
              {"depth", kDepth},
              {"repeat", repeat},
              {"open_to_first_row_seconds", first_row.json()},
              {"batches", std::move(batches)}};
  if (!fio.empty()) {
    report["fio_reads_per_s"] = fio.json();
    report["reads_to_fio"] = report["batches"][4]["io_uring"]["reads_per_s"]["median"].get<double>() / fio.median();
  }
  return report;
}

void print(const json& report) {
  fmt::print("{}: {} rows, cold, {}-byte blocks, depth {}, median of {}, load average before {:.1f}\n",
             report["file"].get<std::string>(), report["rows"].get<std::uint64_t>(),
             report["block"].get<std::uint32_t>(), kDepth, report["repeat"].get<int>(),
             report["load_average_before"].get<double>());
  fmt::print("open to first row: {:.1f} ms\n", 1e3 * report["open_to_first_row_seconds"]["median"].get<double>());
  fmt::print("{:>8} {:>14} {:>16} {:>12} {:>14} {:>16} {:>12} {:>7}\n", "batch", "io_uring row/s", "(least to most)",
             "p50 us", "pread row/s", "(least to most)", "p50 us", "ratio");
  for (const auto& batch : report["batches"]) {
    fmt::print("{:>8}", batch["rows"].get<std::size_t>());
    for (const char* way : {"io_uring", "pread"}) {
      const auto& rows = batch[way]["rows_per_s"];
      fmt::print(" {:>14.0f} {:>16} {:>12.0f}", rows["median"].get<double>(),
                 fmt::format("{:.0f}-{:.0f}", rows["least"].get<double>(), rows["most"].get<double>()),
                 batch[way]["batch_us"]["p50"].get<double>());
    }
    fmt::print(" {:>7.2f}\n", batch["pread_to_io_uring"].get<double>());
  }
  if (report.contains("fio_reads_per_s")) {
    fmt::print("fio: {:.0f} reads/s; batches of 8,192 by io_uring make {:.2f} of that\n",
               report["fio_reads_per_s"]["median"].get<double>(), report["reads_to_fio"].get<double>());
  }
}

}  // namespace
}  // namespace rowtide::bench

int main(int argc, char** argv) {
  CLI::App app{"Cold batches through the store, by io_uring and by the pread pool, beside fio."};
  std::string path;
  int repeat = 5;
  bool as_json = false;
  app.add_option("MODEL", path, "a file that make_table wrote")->required();
  app.add_option("--repeat", repeat, "measurements of each kind")->check(CLI::Range(1, 1000));
  app.add_flag("--json", as_json, "one JSON document on standard output");
  CLI11_PARSE(app, argc, argv);
  const auto report = rowtide::bench::run(path, repeat);
  if (as_json) {
    std::cout << report.dump(2) << '\n';
  } else {
    rowtide::bench::print(report);
  }
  return 0;
}
