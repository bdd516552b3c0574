// What one read costs: distinct random blocks in batches of 8,192, in the order of the file, a full queue kept and half
// of it reaped at a time, as the store's readers do. Reads a second, processor time a read (user and system, of the
// whole process), and reaps a batch, each of which is one system call by io_uring.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "io/block_source.h"
#include "samples.h"

namespace rowtide::bench {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr std::size_t kBatch = 8192;
constexpr std::size_t kBufferBytes = std::size_t{4} << 20;  // as a reader's

template <class T>
T must(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "read_queue_bench: {}\n", result.error().message);
    std::exit(4);
  }
  return std::move(*result);
}

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::vector<std::uint64_t> distinct_offsets(std::uint64_t blocks, std::uint32_t block_bytes, std::mt19937_64& random) {
  std::vector<std::uint64_t> offsets;
  while (offsets.size() < kBatch) {
    while (offsets.size() < kBatch) offsets.push_back(random() % blocks * block_bytes);
    std::ranges::sort(offsets);
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
  }
  return offsets;
}

struct Measured {
  Samples reads_per_s, cpu_us_per_read, reaps;
};

/// Reads one batch through the queue; gives back the number of reaps.
std::size_t read_batch(io::ReadQueue& queue, std::span<const std::uint64_t> offsets, std::uint32_t block_bytes,
                       std::uint32_t depth, std::byte* buffer) {
  const std::size_t slots = kBufferBytes / block_bytes;
  std::vector<io::ReadRequest> requests;
  std::vector<io::Completion> completions(depth);
  std::size_t next = 0, done = 0, reaps = 0;
  while (done < offsets.size()) {
    requests.clear();
    for (; next < offsets.size() && next - done < depth; ++next) {
      requests.push_back({0, block_bytes, offsets[next], buffer + next % slots * block_bytes, next});
    }
    if (auto submitted = queue.submit(requests); !submitted) must<int>(submitted.error());
    const std::size_t flying = next - done;
    const std::size_t count = must(queue.reap(next < offsets.size() ? (flying + 1) / 2 : flying, completions));
    for (const io::Completion& completion : std::span(completions).first(count)) {
      if (std::cmp_not_equal(completion.result, block_bytes)) {
        must<int>(
            make_error(ErrorCode::kIo, "a read at offset {} gives {}", offsets[completion.tag], completion.result));
      }
    }
    done += count;
    ++reaps;
  }
  return reaps;
}

json run(const std::string& path, std::uint32_t depth, int repeat) {
  const std::array<std::pair<const char*, bool>, 2> ways{{{"io_uring", true}, {"pread", false}}};
  std::array<Measured, 2> measured;
  std::mt19937_64 random(std::random_device{}());
  const std::unique_ptr<std::byte, decltype(&std::free)> buffer(
      static_cast<std::byte*>(std::aligned_alloc(65536, kBufferBytes)), std::free);
  json report{{"file", path}, {"depth", depth}, {"repeat", repeat}, {"load_average_before", load_average()}};
  for (int i = 0; i < repeat; ++i) {
    for (std::size_t way = 0; way < ways.size(); ++way) {
      auto source = must(io::open_block_source({path}, {.depth = depth, .allow_uring = ways[way].second}));
      const std::uint64_t blocks = source->file_bytes(0) / source->block_bytes();
      if (blocks < 4 * kBatch) must<int>(make_error(ErrorCode::kUsage, "{}: too small, under 128 MiB", path));
      auto queue = must(source->queue(depth, {buffer.get(), kBufferBytes}));
      const auto offsets = distinct_offsets(blocks, source->block_bytes(), random);
      const double cpu = cpu_seconds();
      const auto start = Clock::now();
      const std::size_t reaps = read_batch(*queue, offsets, source->block_bytes(), depth, buffer.get());
      const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
      measured[way].reads_per_s.add(kBatch / seconds);
      measured[way].cpu_us_per_read.add(1e6 * (cpu_seconds() - cpu) / kBatch);
      measured[way].reaps.add(static_cast<double>(reaps));
    }
  }
  for (std::size_t way = 0; way < ways.size(); ++way) {
    report[ways[way].first] = {{"reads_per_s", measured[way].reads_per_s.json()},
                               {"cpu_us_per_read", measured[way].cpu_us_per_read.json()},
                               {"reaps_per_batch", measured[way].reaps.json()}};
  }
  return report;
}

void print(const json& report) {
  fmt::print("{}: batches of {} distinct blocks, depth {}, median of {}, load average before {:.1f}\n",
             report["file"].get<std::string>(), kBatch, report["depth"].get<int>(), report["repeat"].get<int>(),
             report["load_average_before"].get<double>());
  for (const char* way : {"io_uring", "pread"}) {
    const auto range = [&](const char* key, int digits) {
      const json& numbers = report[way][key];
      return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", numbers["median"].get<double>(), digits,
                         numbers["least"].get<double>(), digits, numbers["most"].get<double>(), digits);
    };
    fmt::print("{:<9} {} reads/s, {} us of processor time a read, {} reaps a batch\n", way, range("reads_per_s", 0),
               range("cpu_us_per_read", 2), range("reaps_per_batch", 0));
  }
}

}  // namespace
}  // namespace rowtide::bench

int main(int argc, char** argv) {
  CLI::App app{"What one random read of a block costs, by io_uring and by the pread pool."};
  std::string path;
  std::uint32_t depth = 64;
  int repeat = 9;
  bool as_json = false;
  app.add_option("FILE", path, "a file of 128 MiB or more")->required();
  app.add_option("--depth", depth, "reads in flight")->check(CLI::Range(1, 1024));
  app.add_option("--repeat", repeat, "batches of each way")->check(CLI::Range(1, 1000));
  app.add_flag("--json", as_json, "one JSON document on standard output");
  CLI11_PARSE(app, argc, argv);
  const auto report = rowtide::bench::run(path, depth, repeat);
  if (as_json) {
    std::cout << report.dump(2) << '\n';
  } else {
    rowtide::bench::print(report);
  }
  return 0;
}
