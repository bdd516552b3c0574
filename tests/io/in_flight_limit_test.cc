// The limit on reads in flight: who gets how much beside whom.
#include "io/in_flight_limit.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

namespace rowtide::io {
namespace {

constexpr auto kUrgent = Urgency::kUrgent;
constexpr auto kBulk = Urgency::kBulk;
constexpr auto kPrefetch = Urgency::kPrefetch;

std::atomic<std::int64_t> clock_ms = 1;  // moved by hand
std::chrono::steady_clock::time_point test_clock() {
  return std::chrono::steady_clock::time_point(std::chrono::milliseconds(clock_ms));
}

/// A party that keeps count of what it holds.
class Party {
 public:
  Party(InFlightLimit& limit, Urgency urgency) : limit_(limit), urgency_(urgency) { limit.join(urgency); }
  ~Party() {
    limit_.release(held_);
    limit_.leave(urgency_);
  }
  Party(const Party&) = delete;
  Party& operator=(const Party&) = delete;

  /// How many it got.
  std::uint32_t take(std::uint32_t wanted) {
    const std::uint32_t taken = limit_.acquire(wanted, held_, urgency_);
    held_ += taken;
    return taken;
  }
  void give(std::uint32_t permits) {
    limit_.release(permits);
    held_ -= permits;
  }
  std::uint32_t held() const { return held_; }

 private:
  InFlightLimit& limit_;
  const Urgency urgency_;
  std::uint32_t held_ = 0;
};

TEST(InFlightLimit, OneAloneMayTakeAllOfIt) {
  for (const Urgency urgency : {kUrgent, kBulk, kPrefetch}) {
    InFlightLimit limit(8);
    Party party(limit, urgency);
    EXPECT_EQ(party.take(5), 5u);
    EXPECT_EQ(party.take(100), 3u);
    EXPECT_EQ(party.take(100), 0u);
    party.give(2);
    EXPECT_EQ(party.take(1), 1u);
  }
}

TEST(InFlightLimit, PartiesOfOneUrgencyShareEvenly) {
  for (const Urgency urgency : {kBulk, kPrefetch}) {
    InFlightLimit limit(8);
    Party first(limit, urgency);
    EXPECT_EQ(first.take(100), 8u);
    Party second(limit, urgency);
    EXPECT_EQ(second.take(5), 1u);  // none free: one all the same
    first.give(6);
    EXPECT_EQ(first.take(100), 2u) << "grows to its half";
    EXPECT_EQ(second.take(100), 3u) << "grows to its half";
    EXPECT_EQ(second.take(1), 0u);
  }
}

TEST(InFlightLimit, AShareIsWhatTheOthersLeaveWhenTheyGo) {
  InFlightLimit limit(12);
  Party first(limit, kBulk);
  {
    Party second(limit, kBulk), third(limit, kBulk);
    EXPECT_EQ(first.take(100), 4u);
    EXPECT_EQ(second.take(100), 4u);
    EXPECT_EQ(third.take(100), 4u);
  }
  EXPECT_EQ(first.take(100), 8u);
}

TEST(InFlightLimit, BulkTogetherKeepsToAThirdWhileAnUrgentPartyIsThere) {
  InFlightLimit limit(60, test_clock);
  Party one(limit, kBulk), other(limit, kBulk);
  EXPECT_EQ(one.take(100), 30u);
  {
    Party urgent(limit, kUrgent);
    EXPECT_EQ(other.take(100), 10u);
    EXPECT_EQ(one.take(100), 0u);
    one.give(25);
    EXPECT_EQ(one.take(100), 5u);
    EXPECT_EQ(one.held() + other.held(), 20u);
    EXPECT_EQ(urgent.take(100), 60u) << "20 of them beyond the limit";
  }
  clock_ms += InFlightLimit::kUrgentLingers.count() - 1;
  EXPECT_EQ(one.take(100), 0u) << "the urgent one may come back";
  clock_ms += 1;
  EXPECT_EQ(one.take(100), 20u);
  EXPECT_EQ(other.take(100), 20u);
}

TEST(InFlightLimit, UrgentPartiesMayGoAThirdBeyondTheLimit) {
  InFlightLimit limit(60);
  Party bulk(limit, kBulk);
  EXPECT_EQ(bulk.take(100), 60u);
  Party urgent(limit, kUrgent);
  EXPECT_EQ(urgent.take(16), 16u);
  EXPECT_EQ(urgent.take(16), 4u) << "that is the third";
  Party second(limit, kUrgent);
  EXPECT_EQ(second.take(16), 1u) << "one all the same";
  bulk.give(30);
  EXPECT_EQ(urgent.take(100), 10u) << "grows to its half of the limit";
  EXPECT_EQ(second.take(100), 19u);
  EXPECT_EQ(bulk.take(100), 0u);
}

TEST(InFlightLimit, PrefetchTakesNothingWhileAnUrgentPartyIsThere) {
  InFlightLimit limit(60);
  Party fresh(limit, kPrefetch), begun(limit, kPrefetch);
  EXPECT_EQ(begun.take(10), 10u);
  {
    Party urgent(limit, kUrgent);
    EXPECT_EQ(begun.take(1), 0u);
    EXPECT_EQ(fresh.take(1), 0u) << "not even the one that others get";
    begun.give(10);
    EXPECT_EQ(begun.take(1), 0u);
    EXPECT_EQ(urgent.take(100), 60u);
  }
  EXPECT_EQ(begun.take(100), 30u);
  EXPECT_EQ(fresh.take(100), 30u);
}

TEST(InFlightLimit, PrefetchTogetherKeepsToAThirdWhileABulkPartyIsThere) {
  InFlightLimit limit(60);
  Party one(limit, kPrefetch), other(limit, kPrefetch), bulk(limit, kBulk);
  EXPECT_EQ(one.take(100), 10u);
  EXPECT_EQ(other.take(100), 10u);
  EXPECT_EQ(bulk.take(100), 40u);
  one.give(10);
  EXPECT_EQ(bulk.take(100), 10u) << "bulk may take the whole limit beside prefetch";
  EXPECT_EQ(one.take(100), 1u) << "none free: one all the same";
}

TEST(InFlightLimit, WhoeverWaitsGetsOneHoweverSmallTheLimit) {
  for (const std::uint32_t size : {1u, 2u, 3u}) {
    InFlightLimit limit(size);
    Party urgent(limit, kUrgent), second(limit, kUrgent), bulk(limit, kBulk), another(limit, kBulk);
    EXPECT_EQ(bulk.take(100), 1u);
    EXPECT_EQ(another.take(100), 1u);
    EXPECT_EQ(urgent.take(100), 1u);
    EXPECT_EQ(second.take(100), 1u);
    EXPECT_EQ(bulk.take(100), 0u);
  }
}

TEST(InFlightLimit, IsOneForADevice) {
  auto first = InFlightLimit::of_device(42, 16);
  EXPECT_EQ(InFlightLimit::of_device(42, 32), first) << "the first to ask decides";
  EXPECT_NE(InFlightLimit::of_device(43, 16), first);
  std::weak_ptr<InFlightLimit> gone = first;
  first.reset();
  EXPECT_TRUE(gone.expired());
}

TEST(InFlightLimit, CountsRightlyFromManyThreads) {
  InFlightLimit limit(24, test_clock);
  std::atomic<std::int64_t> out = 0, most_out = 0;
  std::vector<std::thread> threads;
  constexpr int kParties = 6;
  for (unsigned t = 0; t < kParties; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      const auto urgency = static_cast<Urgency>(t % 3);
      for (int batch = 0; batch < 2000; ++batch) {
        Party party(limit, urgency);
        for (int step = 0; step < 8; ++step) {
          const std::uint32_t taken = party.take(static_cast<std::uint32_t>(1 + random() % 24));
          if (urgency != kPrefetch && party.held() == 0) ADD_FAILURE() << "one that waits got nothing";
          const std::int64_t now = out += taken;
          for (std::int64_t most = most_out; now > most && !most_out.compare_exchange_weak(most, now);) continue;
          const std::uint32_t given = static_cast<std::uint32_t>(random() % (party.held() + 1));
          out -= given;
          party.give(given);
        }
        out -= party.held();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_LE(most_out, 24 + 24 / 3 + kParties);
  clock_ms += InFlightLimit::kUrgentLingers.count();
  Party last(limit, kBulk);
  EXPECT_EQ(last.take(100), 24u) << "all have come back";
}

}  // namespace
}  // namespace rowtide::io
