// Helpers do each part once, and are asked only where that is the faster way.
#include "store/helper_threads.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>
#include <thread>
#include <vector>

namespace rowtide {
namespace {

TEST(HelperThreads, EachPartIsDoneOnce) {
  HelperThreads helpers(3);
  HelperThreads::Habit habit;
  for (const std::size_t parts : {0u, 1u, 2u, 7u, 500u}) {
    std::vector<std::atomic<int>> done(parts);
    auto work = [&](std::size_t part) { ++done[part]; };
    for (int run = 0; run < 40; ++run) helpers.run(habit, parts, work);
    for (const auto& times : done) ASSERT_EQ(times, 40);
  }
}

TEST(HelperThreads, SeveralMayAskAtOnce) {
  HelperThreads helpers(2);
  std::atomic<int> done = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 4; ++client) {
    clients.emplace_back([&] {
      HelperThreads::Habit habit;
      auto work = [&](std::size_t) { ++done; };
      for (int run = 0; run < 200; ++run) helpers.run(habit, 5, work);
    });
  }
  for (auto& client : clients) client.join();
  EXPECT_EQ(done, 4 * 200 * 5);
}

TEST(HelperThreads, WithoutAnyTheWorkIsDoneAlone) {
  HelperThreads none(0);
  HelperThreads::Habit habit;
  std::set<std::thread::id> who;
  auto work = [&](std::size_t) { who.insert(std::this_thread::get_id()); };
  none.run(habit, 9, work);
  EXPECT_EQ(who, std::set{std::this_thread::get_id()});
}

/// Of 100 runs of 4 parts, those that helpers took part in; a part takes so long here, and so long on a helper.
int helped_runs(std::chrono::microseconds here, std::chrono::microseconds on_a_helper) {
  HelperThreads helpers(3);
  HelperThreads::Habit habit;
  const auto caller = std::this_thread::get_id();
  int helped_runs = 0;
  for (int run = 0; run < 100; ++run) {
    std::atomic<bool> helped = false;
    auto work = [&](std::size_t) {
      const bool is_helper = std::this_thread::get_id() != caller;
      if (is_helper) helped = true;
      std::this_thread::sleep_for(is_helper ? on_a_helper : here);
    };
    helpers.run(habit, 4, work);
    helped_runs += helped ? 1 : 0;
  }
  return helped_runs;
}

// Threads that make a warm copy slower than one alone would be: they are tried, and let be.
TEST(HelperThreads, ThatAreSlowerAreLetBe) {
  EXPECT_LE(helped_runs(std::chrono::microseconds(100), std::chrono::milliseconds(20)), 10);
}

TEST(HelperThreads, ThatAreFasterAreAsked) {
  EXPECT_GE(helped_runs(std::chrono::milliseconds(2), std::chrono::milliseconds(2)), 80);
}

}  // namespace
}  // namespace rowtide
