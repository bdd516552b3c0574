// The cache against what it must never do: give wrong bytes, hold more than it may, forget what is asked for
// again and again.
#include "cache/bundle_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "address/splitmix64.h"

namespace rowtide {
namespace {

constexpr std::uint64_t kTableRows = 1ull << 34;  // eight-byte ids

/// A table's bundles, and the rows they must have: each word follows from table, row id and place.
struct Bundles {
  std::uint32_t heads;
  std::uint64_t row_bytes;
  std::uint64_t salt;
  std::uint64_t table_rows = kTableRows;

  std::vector<RowId> ids(std::span<const std::uint64_t> numbers) const {
    std::vector<RowId> out;
    for (const std::uint64_t number : numbers) {
      for (std::uint32_t head = 0; head < heads; ++head) out.push_back(splitmix64(number * heads + head) % table_rows);
    }
    return out;
  }
  std::vector<std::byte> rows(const RowId* key) const {
    std::vector<std::byte> out(heads * row_bytes);
    for (std::size_t at = 0; at < out.size(); at += sizeof(std::uint64_t)) {
      const std::uint64_t word = splitmix64(key[at / row_bytes] ^ salt ^ at);
      std::memcpy(&out[at], &word, std::min(sizeof(word), out.size() - at));
    }
    return out;
  }
};

/// One batch as a reader does it. Returns how many bundles hit; their rows are checked.
class Client {
 public:
  Client(BundleCache& cache, const Bundles& bundles)
      : cache_(cache),
        bundles_(bundles),
        table_(cache.add_table(bundles.heads, bundles.row_bytes, bundles.table_rows)),
        lookup_(cache) {}
  Client(const Client& other, int) : Client(other.cache_, other.bundles_, other.table_) {}

  std::size_t ask(std::span<const std::uint64_t> numbers) {
    const std::vector<RowId> ids = bundles_.ids(numbers);
    std::size_t hits = 0;
    std::vector<Missed> missed;
    lookup_.probe(
        *table_, ids, 0, numbers.size(), BundleCache::Use::kTouch,
        [&](std::size_t bundle, const std::byte* rows) {
          ++hits;
          const auto expected = bundles_.rows(&ids[bundle * bundles_.heads]);
          ASSERT_EQ(std::memcmp(rows, expected.data(), expected.size()), 0) << "bundle " << numbers[bundle];
        },
        [&](std::size_t bundle, std::uint64_t hash) {
          missed.push_back({hash, static_cast<std::uint32_t>(bundle), 0, nullptr, 0});
        });
    cache_.reserve(*table_, ids, missed, false);
    for (const Missed& bundle : missed) {
      if (bundle.rows == nullptr) continue;
      const auto rows = bundles_.rows(&ids[bundle.bundle * bundles_.heads]);
      std::memcpy(bundle.rows, rows.data(), rows.size());
    }
    if (++batches_ % 16 == 0) {
      cache_.cancel(*table_, missed);  // as if the reads had failed
    } else {
      cache_.publish(*table_, missed);
    }
    return hits;
  }

  bool holds(std::uint64_t number) {
    const std::vector<RowId> ids = bundles_.ids({&number, 1});
    return holds_ids(ids);
  }
  bool holds_ids(std::span<const RowId> ids) {
    bool held = false;
    lookup_.probe(
        *table_, ids, 0, 1, BundleCache::Use::kLook, [&](std::size_t, const std::byte*) { held = true; },
        [](std::size_t, std::uint64_t) {});
    return held;
  }

 private:
  Client(BundleCache& cache, const Bundles& bundles, std::shared_ptr<CachedTable> table)
      : cache_(cache), bundles_(bundles), table_(std::move(table)), lookup_(cache) {}

  BundleCache& cache_;
  const Bundles bundles_;
  std::shared_ptr<CachedTable> table_;
  BundleCache::Lookup lookup_;
  int batches_ = 0;
};

std::uint64_t skewed(std::mt19937_64& random, std::uint64_t among) {
  const double u = std::uniform_real_distribution<double>(0, 1)(random);
  return static_cast<std::uint64_t>(static_cast<double>(among) * u * u * u * u);
}

void use_at_random(Client& client, unsigned seed, int batches, std::uint64_t among, std::size_t& hits) {
  std::mt19937_64 random(seed);
  for (int batch = 0; batch < batches; ++batch) {
    std::vector<std::uint64_t> numbers(1 + random() % 300);
    for (auto& number : numbers) number = skewed(random, among);
    hits += client.ask(numbers);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(BundleCache, RowsAreRightAndMemoryIsBoundedThroughManyEvictions) {
  for (const Bundles& bundles : {Bundles{8, 90, 1}, Bundles{8, 90, 1, 1u << 30}, Bundles{4, 512, 2}, Bundles{1, 90, 3},
                                 Bundles{8, 1, 4}, Bundles{2, 40'000, 5}}) {
    constexpr std::uint32_t kSegments = 8;
    BundleCache cache(kSegments);
    Client client(cache, bundles);
    const std::uint64_t capacity = kSegments * SegmentArena::kSegmentBytes / (bundles.heads * bundles.row_bytes + 48);
    std::size_t hits = 0;
    use_at_random(client, 1, static_cast<int>(4 * capacity / 150) + 50, 20 * capacity, hits);
    EXPECT_GT(hits, 0u);
    EXPECT_LE(cache.memory_bytes(), kSegments * SegmentArena::kSegmentBytes);
  }
}

TEST(BundleCache, OnlyTheWholeKeyHits) {
  BundleCache cache(8);
  const Bundles bundles{8, 90, 1};
  Client client(cache, bundles);
  std::vector<std::uint64_t> numbers = {7, 8};
  client.ask(numbers);
  EXPECT_TRUE(client.holds(7));
  EXPECT_TRUE(client.holds(8));
  EXPECT_FALSE(client.holds(9));
  for (std::uint32_t head = 0; head < 8; ++head) {  // seven ids of one n-gram, one of another
    std::vector<RowId> mixed = bundles.ids({&numbers[0], 1});
    mixed[head] = bundles.ids({&numbers[1], 1})[head];
    EXPECT_FALSE(client.holds_ids(mixed)) << head;
  }
}

TEST(BundleCache, WhatIsAskedForAgainOutlivesAScan) {
  BundleCache cache(16);
  Client client(cache, {8, 90, 1});
  std::vector<std::uint64_t> hot(1000);
  for (std::uint64_t i = 0; i < hot.size(); ++i) hot[i] = i;
  std::uint64_t next = 1'000'000;
  for (int round = 0; round < 300; ++round) {
    client.ask(hot);
    std::vector<std::uint64_t> scan(500);
    for (auto& number : scan) number = next++;
    client.ask(scan);
  }
  std::size_t held = 0;
  for (const std::uint64_t number : hot) held += client.holds(number);
  EXPECT_EQ(held, hot.size());
  EXPECT_FALSE(client.holds(1'000'000));
}

TEST(BundleCache, GivesMemoryBackAndGrowsAgain) {
  BundleCache cache(32);
  Client client(cache, {8, 90, 1});
  std::size_t hits = 0;
  use_at_random(client, 2, 2000, 10'000'000, hits);
  EXPECT_GT(cache.memory_bytes(), 30 * SegmentArena::kSegmentBytes);
  cache.set_segments(10);
  EXPECT_LE(cache.memory_bytes(), 10 * SegmentArena::kSegmentBytes);
  use_at_random(client, 3, 500, 10'000'000, hits);
  EXPECT_LE(cache.memory_bytes(), 10 * SegmentArena::kSegmentBytes);
  cache.set_segments(0);
  EXPECT_EQ(cache.memory_bytes(), cache.segments_min() * SegmentArena::kSegmentBytes);
  cache.set_segments(32);
  use_at_random(client, 4, 2000, 10'000'000, hits);
  EXPECT_GT(cache.memory_bytes(), 30 * SegmentArena::kSegmentBytes);
}

TEST(BundleCache, TablesOfDifferentShapesShareIt) {
  BundleCache cache(8);
  Client one(cache, {8, 90, 1});
  std::size_t hits = 0;
  for (unsigned round = 0; round < 20; ++round) {
    Client other(cache, {4, 512, 2});  // comes and goes
    use_at_random(one, round, 40, 50'000, hits);
    use_at_random(other, round, 40, 50'000, hits);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(hits, 0u);
}

TEST(BundleCache, AWholeBatchMoreThanItsMemoryIsNoHarm) {
  BundleCache cache(8);
  Client client(cache, {8, 90, 1});
  std::vector<std::uint64_t> numbers(60'000);  // 45 MiB
  for (std::uint64_t i = 0; i < numbers.size(); ++i) numbers[i] = i;
  EXPECT_EQ(client.ask(numbers), 0u);
  EXPECT_LE(cache.memory_bytes(), 8 * SegmentArena::kSegmentBytes);
  EXPECT_GT(client.ask(numbers), 0u);
}

TEST(BundleCache, ReadersAdmissionsAndShrinkingAtOnce) {
  BundleCache cache(128);  // two shards
  Client first(cache, {8, 90, 1});
  std::atomic<bool> done = false;
  std::atomic<std::size_t> hits = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Client client(first, 0);
      std::size_t own = 0;
      use_at_random(client, 100 + t, 600, 40'000, own);
      hits += own;
    });
  }
  std::thread shrinker([&] {
    for (std::uint32_t round = 0; !done; ++round) {
      cache.set_segments(round % 2 == 0 ? 16 : 128);
      std::this_thread::yield();
    }
  });
  for (auto& thread : threads) thread.join();
  done = true;
  shrinker.join();
  EXPECT_GT(hits, 0u);
}

}  // namespace
}  // namespace rowtide
