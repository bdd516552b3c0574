// A decode client beside a prefill client: how long batches of 16 rows take while another thread reads batches of
// 32,768 rows back to back from the same store, against the same batches alone. Cold, uniform rows, each checked.
#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>
#include <vector>

#include "address/splitmix64.h"
#include "base/error.h"
#include "row_rule.h"
#include "rowtide/checkpoint.h"
#include "rowtide/store.h"
#include "samples.h"

namespace rowtide::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::size_t kUrgentRows = 16, kBulkRows = 32'768;

template <class T>
T must(Result<T> result) {
  if (result) return std::move(*result);
  fmt::print(stderr, "urgent_bench: {}\n", result.error().message);
  std::exit(4);
}
void must(Result<void> result) {
  if (result) return;
  fmt::print(stderr, "urgent_bench: {}\n", result.error().message);
  std::exit(4);
}

/// Rows nobody has asked for before, in this run or another.
class Client {
 public:
  Client(Store& store, std::size_t rows)
      : reader_(must(store.reader())), table_rows_(store.table().rows), ids_(rows), out_(rows * kRowBytes) {}

  double batch_us() {
    for (RowId& id : ids_) id = random_() % table_rows_;
    const auto start = Clock::now();
    must(reader_->read(ids_, raw(out_)));
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
    for (std::size_t i = 0; i < ids_.size(); ++i) {
      if (!is_row(ids_[i], &out_[i * kRowBytes]))
        must(Result<void>(make_error(ErrorCode::kMismatch, "a row is wrong")));
    }
    return us;
  }

 private:
  std::unique_ptr<Reader> reader_;
  std::uint64_t table_rows_;
  std::mt19937_64 random_{std::random_device{}()};
  std::vector<RowId> ids_;
  std::vector<std::byte> out_;
};

Samples decode(Store& store, std::size_t batches, std::chrono::microseconds pause) {
  Client client(store, kUrgentRows);
  Samples us;
  for (std::size_t i = 0; i < batches; ++i) {
    us.add(client.batch_us());
    std::this_thread::sleep_for(pause);
  }
  return us;
}

json figures(const Samples& us) { return {{"p50_us", us.at(0.5)}, {"p90_us", us.at(0.9)}, {"p99_us", us.at(0.99)}}; }

json run(const std::string& path, std::size_t batches, std::chrono::microseconds pause, int repeat) {
  const double load = load_average();
  const auto checkpoint = must(Checkpoint::open(path));
  auto store = must(Store::open(checkpoint.tables().front(), {.mode = Mode::kDisk}));
  json rounds = json::array();
  Samples ratios;
  for (int round = 0; round < repeat; ++round) {
    const Samples idle = decode(*store, batches, pause);
    std::atomic<bool> done = false;
    Samples bulk_us;
    std::thread bulk([&] {
      for (Client client(*store, kBulkRows); !done;) bulk_us.add(client.batch_us());
    });
    const Samples beside = decode(*store, batches, pause);
    done = true;
    bulk.join();
    ratios.add(beside.at(0.99) / idle.at(0.99));
    rounds.push_back({{"idle", figures(idle)},
                      {"beside_bulk", figures(beside)},
                      {"bulk_rows_per_s", 1e6 * kBulkRows / bulk_us.median()},
                      {"p99_ratio", beside.at(0.99) / idle.at(0.99)}});
  }
  return {{"file", path},
          {"method", store->method()},
          {"load_average_before", load},
          {"batches", batches},
          {"pause_us", pause.count()},
          {"rounds", std::move(rounds)},
          {"p99_ratio", ratios.json()}};
}

void print(const json& report) {
  fmt::print("{}: {}, batches of {} rows, {} each way, {} us apart; load average before {:.1f}\n",
             report["file"].get<std::string>(), report["method"].get<std::string>(), kUrgentRows,
             report["batches"].get<std::size_t>(), report["pause_us"].get<int>(),
             report["load_average_before"].get<double>());
  fmt::print("{:>10} {:>10} {:>10} {:>12} {:>12} {:>12} {:>14} {:>8}\n", "idle p50", "p90", "p99", "beside p50", "p90",
             "p99 us", "bulk rows/s", "p99 ratio");
  for (const json& round : report["rounds"]) {
    fmt::print("{:>10.0f} {:>10.0f} {:>10.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>14.0f} {:>8.2f}\n",
               round["idle"]["p50_us"].get<double>(), round["idle"]["p90_us"].get<double>(),
               round["idle"]["p99_us"].get<double>(), round["beside_bulk"]["p50_us"].get<double>(),
               round["beside_bulk"]["p90_us"].get<double>(), round["beside_bulk"]["p99_us"].get<double>(),
               round["bulk_rows_per_s"].get<double>(), round["p99_ratio"].get<double>());
  }
  fmt::print("p99 beside bulk against idle: {:.2f} ({:.2f} to {:.2f})\n", report["p99_ratio"]["median"].get<double>(),
             report["p99_ratio"]["least"].get<double>(), report["p99_ratio"]["most"].get<double>());
}

}  // namespace
}  // namespace rowtide::bench

int main(int argc, char** argv) {
  CLI::App app{"Small batches while large ones are read from the same store."};
  std::string path;
  std::size_t batches = 1000;
  int repeat = 3, pause_us = 0;
  bool as_json = false;
  app.add_option("MODEL", path, "a file that make_table wrote")->required();
  app.add_option("--batches", batches, "small batches of each kind")->check(CLI::Range(10, 1'000'000));
  app.add_option("--pause-us", pause_us, "between two small batches, as a decoder computes")
      ->check(CLI::Range(0, 1'000'000));
  app.add_option("--repeat", repeat, "rounds")->check(CLI::Range(1, 1000));
  app.add_flag("--json", as_json, "one JSON document on standard output");
  CLI11_PARSE(app, argc, argv);
  const auto report = rowtide::bench::run(path, batches, std::chrono::microseconds(pause_us), repeat);
  if (as_json) {
    std::cout << report.dump(2) << '\n';
  } else {
    rowtide::bench::print(report);
  }
  return 0;
}
