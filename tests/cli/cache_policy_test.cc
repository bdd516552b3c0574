// The models of caches against slower ones that are plainly right, on small traces.
#include "cli/bench/cache_policy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <map>
#include <random>
#include <set>

#include "address/qwen_ple.h"
#include "cli/bench/cache_s3fifo.h"
#include "cli/failure.h"

namespace rowtide::cli {
namespace {

using Batches = std::vector<std::vector<BundleNumber>>;

constexpr std::uint32_t kRowsPerBundle = 3;
constexpr std::uint64_t kRowBytes = 900, kTableRows = 60;

/// 54,000 bytes of rows in two places; neither begins with a page, and most pages hold parts of several rows.
Table sample_table() {
  Table table;
  table.rows = kTableRows;
  table.row_bytes = kRowBytes;
  table.components = {{"values", kRowBytes, {{"a", 5000, 0, 25, 0}, {"b", 12345, 25, 35, 0}}}};
  return table;
}

/// Few bundles are asked for often, many seldom; some several times in a batch.
Batches random_batches(std::mt19937_64& random, BundleNumber bundles, std::size_t count, std::size_t longest) {
  Batches batches(count);
  for (auto& batch : batches) {
    batch.resize(1 + random() % longest);
    for (BundleNumber& bundle : batch) bundle = static_cast<BundleNumber>(random() % (1 + random() % bundles));
  }
  return batches;
}

std::vector<RowId> random_rows(std::mt19937_64& random, BundleNumber bundles) {
  std::vector<RowId> rows(std::size_t{bundles} * kRowsPerBundle);
  for (RowId& row : rows) row = random() % kTableRows;
  return rows;
}

struct Sample {
  Sample(std::uint64_t seed, BundleNumber bundles, std::size_t count, std::size_t longest)
      : random(seed),
        batches(random_batches(random, bundles, count, longest)),
        rows(random_rows(random, bundles)),
        trace(rows, kRowsPerBundle, batches) {}

  /// Memory for exactly `bundles`, at `extra` bytes each beside record and index.
  CacheCase with_room_for(std::uint64_t bundles, double extra) const {
    CacheCase of{trace, table, 0};
    while (of.bundles(extra) < bundles) ++of.memory_bytes;
    EXPECT_EQ(of.bundles(extra), bundles);
    return of;
  }

  std::mt19937_64 random;
  Batches batches;
  std::vector<RowId> rows;
  BundleTrace trace;
  Table table = sample_table();
};

std::vector<std::uint64_t> served(const std::string& name, const CacheCase& of) {
  auto policy = make_cache_policy(name, of);
  std::vector<std::uint64_t> found;
  for (std::size_t i = 0; i < of.trace.batches(); ++i) found.push_back(policy->serve(of.trace.batch(i)));
  return found;
}

/// Each bundle of a batch once, in the order first asked.
std::vector<BundleNumber> distinct(const std::vector<BundleNumber>& batch) {
  std::vector<BundleNumber> once;
  for (BundleNumber bundle : batch) {
    if (std::ranges::find(once, bundle) == once.end()) once.push_back(bundle);
  }
  return once;
}

/// Moves `number` to the front of at most `room`; whether it was there.
template <class Number>
bool touch(std::list<Number>& recent, Number number, std::size_t room) {
  bool there = std::erase(recent, number) > 0;
  recent.push_front(number);
  if (recent.size() > room) recent.pop_back();
  return there;
}

TEST(CachePolicy, LruHoldsTheBundlesAskedForLast) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Sample sample(seed, 20, 60, 8);
    std::size_t room = seed % 12;
    std::vector<std::uint64_t> expected;
    std::list<BundleNumber> recent;
    for (const auto& batch : sample.batches) {
      std::uint64_t found = 0;
      for (BundleNumber bundle : distinct(batch)) {
        if (std::ranges::find(recent, bundle) != recent.end()) found += kRowsPerBundle;
      }
      for (BundleNumber bundle : distinct(batch)) touch(recent, bundle, room);
      expected.push_back(found);
    }
    EXPECT_EQ(served("lru", sample.with_room_for(room, 8)), expected) << "seed " << seed;
  }
}

TEST(CachePolicy, ThePageCacheHoldsThePagesAskedForLast) {
  using Page = std::pair<std::string, std::uint64_t>;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Sample sample(seed, 20, 60, 8);
    std::uint64_t pages = seed % 12;
    std::vector<std::uint64_t> expected;
    std::list<Page> recent;
    auto touch_row = [&](RowId row) {
      const Extent& extent = sample.table.components[0].extents[row < 25 ? 0 : 1];
      std::uint64_t first = extent.offset + (row - extent.first_row) * kRowBytes, last = first + kRowBytes - 1;
      bool there = touch(recent, Page(extent.path, first / 4096), pages);
      if (last / 4096 == first / 4096) return there;
      return touch(recent, Page(extent.path, last / 4096), pages) && there;
    };
    for (const auto& batch : sample.batches) {
      std::uint64_t found = 0;
      for (BundleNumber bundle : distinct(batch)) {
        for (RowId row : sample.trace.rows(bundle)) found += touch_row(row) ? 1 : 0;
      }
      expected.push_back(found);
    }
    EXPECT_EQ(served("page_cache", {sample.trace, sample.table, pages * 4096 + 4095}), expected) << "seed " << seed;
  }
}

/// The most bundles that any cache can have served when it may hold every choice of `room` of those that were there or
/// have just been read. Sets are bits.
std::uint64_t best_of_all(const Batches& batches, BundleNumber bundles, int room) {
  std::map<std::uint32_t, std::uint64_t> best = {{0, 0}};
  for (const auto& batch : batches) {
    std::uint32_t asked = 0;
    for (BundleNumber bundle : batch) asked |= 1u << bundle;
    std::map<std::uint32_t, std::uint64_t> after;
    for (auto [held, total] : best) {
      std::uint64_t now = total + static_cast<std::uint64_t>(__builtin_popcount(held & asked));
      for (std::uint32_t next = 0; next < 1u << bundles; ++next) {
        if (__builtin_popcount(next) > room || (next & ~(held | asked)) != 0) continue;
        auto& most = after[next];
        most = std::max(most, now);
      }
    }
    best = std::move(after);
  }
  std::uint64_t most = 0;
  for (auto [held, total] : best) most = std::max(most, total);
  return most;
}

TEST(CachePolicy, NothingServesMoreThanTheOptimum) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    constexpr BundleNumber kBundles = 7;
    Sample sample(seed, kBundles, 25, 4);
    int room = static_cast<int>(seed % 6);
    std::uint64_t total = 0;
    for (std::uint64_t found : served("optimum", sample.with_room_for(static_cast<std::uint64_t>(room), 0))) {
      total += found;
    }
    EXPECT_EQ(total, kRowsPerBundle * best_of_all(sample.batches, kBundles, room)) << "seed " << seed;
  }
}

TEST(CachePolicy, TheOptimumKeepsTheNearest) {
  // 0 is asked for again soon, 1 late, 2 never; there is room for one.
  BundleTrace trace({1, 2, 3}, 1, {{0, 1, 2}, {0}, {1}});
  Table table = sample_table();
  CacheCase of{trace, table, 0};
  while (of.bundles(0) < 1) ++of.memory_bytes;
  EXPECT_EQ(served("optimum", of), (std::vector<std::uint64_t>{0, 1, 0}));
  while (of.bundles(0) < 2) ++of.memory_bytes;
  EXPECT_EQ(served("optimum", of), (std::vector<std::uint64_t>{0, 1, 1}));
}

TEST(CachePolicy, TheStaticSetIsWhatTheFirstHalfAskedForMost) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Sample sample(seed, 20, 61, 8);
    std::size_t room = seed % 25;
    std::map<BundleNumber, int> count;
    for (std::size_t i = 0; i < 30; ++i) {
      for (BundleNumber bundle : sample.batches[i]) ++count[bundle];
    }
    std::vector<std::pair<int, BundleNumber>> order;
    for (auto [bundle, times] : count) order.emplace_back(-times, bundle);
    std::ranges::sort(order);
    std::set<BundleNumber> held;
    for (std::size_t i = 0; i < std::min(room, order.size()); ++i) held.insert(order[i].second);

    CacheCase of = sample.with_room_for(room, 0);
    std::uint64_t asked = 0, hits = 0;
    for (std::size_t i = 30; i < sample.batches.size(); ++i) {
      std::set<BundleNumber> seen;
      for (BundleNumber bundle : sample.batches[i]) {
        hits += held.contains(bundle) || !seen.insert(bundle).second ? 1 : 0;
        ++asked;
      }
    }
    auto policy = make_cache_policy("static", of);
    EXPECT_EQ(policy->first_counted_batch(), 30u);
    EXPECT_DOUBLE_EQ(hit_share(sample.trace, *policy), static_cast<double>(hits) / static_cast<double>(asked));
  }
}

/// S3-FIFO with every segment and every bundle in a container of its own.
class PlainS3Fifo {
 public:
  PlainS3Fifo(const S3FifoSettings& settings, std::size_t room, std::size_t in_segment)
      : settings_(settings), in_segment_(in_segment) {
    small_target_ = static_cast<std::size_t>(settings.small * static_cast<double>(room));
    most_segments_ = room / in_segment - (settings.segment_bytes > 0 ? 1 : 0);
    ghosts_ = static_cast<std::size_t>(settings.ghost * (1 - settings.small) * static_cast<double>(room));
  }

  std::uint64_t serve(const std::vector<BundleNumber>& batch) {
    std::map<BundleNumber, std::uint32_t> times;
    for (BundleNumber bundle : batch) ++times[bundle];
    std::uint64_t found = 0;
    std::vector<BundleNumber> missing;
    for (BundleNumber bundle : distinct(batch)) {
      auto held = touches_.find(bundle);
      if (held == touches_.end()) {
        missing.push_back(bundle);
        continue;
      }
      found += kRowsPerBundle;
      held->second = std::min(held->second + times[bundle], settings_.touches);
    }
    for (BundleNumber bundle : missing) admit(bundle, times[bundle] - 1);
    return found;
  }

 private:
  using Segment = std::vector<BundleNumber>;
  using Queue = std::deque<Segment>;

  void admit(BundleNumber bundle, std::uint32_t more) {
    std::size_t remembered = std::min(ghosts_, left_.size());
    auto ghost = std::find(left_.end() - static_cast<std::ptrdiff_t>(remembered), left_.end(), bundle);
    Queue& queue = ghost != left_.end() ? main_ : small_;
    std::ranges::replace(left_, bundle, kNone);
    while ((queue.empty() || queue.back().size() == in_segment_) && small_.size() + main_.size() >= most_segments_) {
      make_room();
    }
    append(queue, bundle);
    touches_[bundle] = std::min(more, settings_.touches);
  }

  void append(Queue& queue, BundleNumber bundle) {
    if (queue.empty() || queue.back().size() == in_segment_) queue.emplace_back();
    queue.back().push_back(bundle);
  }

  void make_room() {
    std::size_t in_small = 0;
    for (const Segment& segment : small_) in_small += segment.size();
    bool from_small = main_.empty() || (in_small >= in_segment_ && in_small >= small_target_);
    Queue& queue = from_small ? small_ : main_;
    Segment oldest = queue.front();
    queue.pop_front();
    for (BundleNumber bundle : oldest) {
      std::uint32_t& touches = touches_[bundle];
      if (from_small ? touches >= settings_.promote : touches > 0) {
        touches = from_small ? 0 : touches - 1;
        append(main_, bundle);
      } else {
        touches_.erase(bundle);
        if (from_small) left_.push_back(bundle);
      }
    }
  }

  static constexpr BundleNumber kNone = 0xFFFFFFFF;
  S3FifoSettings settings_;
  std::size_t in_segment_, most_segments_, small_target_, ghosts_;
  Queue small_, main_;
  std::map<BundleNumber, std::uint32_t> touches_;  // of what is held
  std::vector<BundleNumber> left_;                 // the small queue for good, in order
};

TEST(CachePolicy, S3FifoIsThreeQueues) {
  const char* all[] = {"", "small=0.3", "ghost=0.5:promote=2", "touches=1:ghost=2", "promote=3:small=0.5"};
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Sample sample(seed, 60, 200, 12);
    std::string text = all[seed % 5];
    S3FifoSettings settings = parse_s3fifo(text);
    std::uint64_t room = 1 + seed % 37;
    PlainS3Fifo plain(settings, room, 1);
    std::vector<std::uint64_t> expected;
    for (const auto& batch : sample.batches) expected.push_back(plain.serve(batch));
    CacheCase of = sample.with_room_for(room, 5 * settings.ghost * (1 - settings.small));
    EXPECT_EQ(served(text.empty() ? "s3fifo" : "s3fifo:" + text, of), expected) << "seed " << seed << " " << text;
  }
}

TEST(CachePolicy, S3FifoInSegments) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Sample sample(seed, 60, 200, 12);
    std::uint64_t in_segment = 2 + seed % 4, room = in_segment * (3 + seed % 7) + seed % in_segment;
    CacheCase of = sample.with_room_for(room, 5 * 0.8);
    std::string text = fmt::format("small=0.2:segment={}", in_segment * of.record_bytes() + 7);
    PlainS3Fifo plain(parse_s3fifo(text), room, in_segment);
    std::vector<std::uint64_t> expected;
    for (const auto& batch : sample.batches) expected.push_back(plain.serve(batch));
    EXPECT_EQ(served("s3fifo:" + text, of), expected) << "seed " << seed;
  }
}

TEST(CachePolicy, TheCacheItselfDoesAsItsModel) {
  constexpr BundleNumber kBundles = 60'000;
  std::mt19937_64 random(6);
  std::vector<RowId> rows(std::size_t{kBundles} * kRowsPerBundle);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  Batches batches = random_batches(random, kBundles, 4000, 100);
  BundleTrace trace(rows, kRowsPerBundle, batches);
  Table table;
  table.rows = rows.size();
  table.row_bytes = 1500;  // a batch is a small part of a segment, as it is with real rows
  table.components = {{"values", table.row_bytes, {{"a", 0, 0, table.rows, 0}}}};
  CacheCase of{trace, table, 64 << 20};
  auto share = [&](const std::string& name) { return hit_share(trace, *make_cache_policy(name, of)); };
  EXPECT_NEAR(share("rowtide"), share("s3fifo:segment=2MiB"), 0.02);
  EXPECT_LT(share("rowtide"), share("optimum"));

  of.memory_bytes = 512 << 20;  // all that is ever asked for; the index may forget a few
  EXPECT_NEAR(share("rowtide"), share("optimum"), 0.001);
}

TEST(CachePolicy, NoMemoryServesNothing) {
  Sample sample(1, 20, 60, 8);
  for (const std::string& name : cache_policies()) {
    for (std::uint64_t found : served(name, {sample.trace, sample.table, 1})) EXPECT_EQ(found, 0u) << name;
  }
}

TEST(CachePolicy, RepeatsWithinABatchCountAsServed) {
  BundleTrace trace({1, 2}, 1, {{0, 0, 0}, {0, 1}});
  Table table = sample_table();
  EXPECT_EQ(trace.lookups(), 5u);
  EXPECT_EQ(trace.distinct(), 2u);
  auto none = make_cache_policy("lru", {trace, table, 1});
  EXPECT_DOUBLE_EQ(hit_share(trace, *none), 2.0 / 5);
  auto all = make_cache_policy("lru", {trace, table, 1 << 20});
  EXPECT_DOUBLE_EQ(hit_share(trace, *all), 3.0 / 5);
}

TEST(CachePolicy, RefusesWhatItDoesNotKnow) {
  Sample sample(1, 20, 60, 8);
  CacheCase of{sample.trace, sample.table, 1 << 20};
  for (const char* name : {"", "lruu", "lru:small=1", "s3fifo:smal=1", "s3fifo:small", "s3fifo:small=2",
                           "s3fifo:promote=-1", "s3fifo:ghost=1x", "s3fifo:segment=2Q"}) {
    EXPECT_THROW(make_cache_policy(name, of), Failure) << name;
  }
}

TEST(BundleTrace, NumbersBundlesByAllTheirRows) {
  QwenPleConfig config{
      .vocab_size = 512, .eos_token_id = 5, .image_token_id = {}, .base = 11, .ngram_size = 3, .heads_per_order = 2};
  auto addressing = make_qwen_ple(config, *derive_qwen_ple(config));  // few rows: bundles share some of them
  std::mt19937_64 random(3);
  std::vector<std::int32_t> tokens(3000);
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % (1 + random() % 512));
  std::vector<TokenId> ids(tokens.begin(), tokens.end());
  std::vector<RowId> rows(tokens.size() * 4);
  History history = addressing->start();
  addressing->rows(ids, history, rows);

  for (std::size_t chunk : {1u, 7u, 512u, 4000u}) {
    BundleTrace trace(*addressing, tokens, chunk);
    EXPECT_EQ(trace.lookups(), 2 * tokens.size());
    EXPECT_EQ(trace.batches(), (tokens.size() + chunk - 1) / chunk);
    std::set<std::vector<RowId>> all;
    for (std::size_t i = 0; i < trace.batches(); ++i) {
      std::map<std::vector<RowId>, std::uint32_t> expected, found;
      for (std::size_t row = i * chunk * 4; row < std::min((i + 1) * chunk * 4, rows.size()); row += 2) {
        ++expected[{rows[row], rows[row + 1]}];
      }
      for (const Touch& touch : trace.batch(i)) {
        auto of = trace.rows(touch.bundle);
        found[{of.begin(), of.end()}] += touch.count;
      }
      EXPECT_EQ(found, expected);
      for (const auto& [bundle, count] : expected) all.insert(bundle);
    }
    EXPECT_EQ(trace.distinct(), all.size());
  }
}

}  // namespace
}  // namespace rowtide::cli
