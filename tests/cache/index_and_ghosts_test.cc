#include <gtest/gtest.h>

#include <map>
#include <random>

#include "address/splitmix64.h"
#include "cache/bundle_index.h"
#include "cache/ghost_list.h"

namespace rowtide {
namespace {

TEST(BundleIndex, AgreesWithAMap) {
  constexpr std::uint64_t kEntries = 5000;
  BundleIndex index(kEntries);
  std::map<BundleIndex::Place, std::uint64_t> expected;  // place -> hash
  std::mt19937_64 random(1);
  std::size_t forgotten = 0;
  for (std::uint32_t step = 0; step < 100'000; ++step) {
    if (expected.size() < kEntries && random() % 2 == 0) {
      const std::uint64_t hash = random();
      const BundleIndex::Place place = step + 1;
      if (const auto lost = index.insert(hash, place)) {
        ++forgotten;
        ASSERT_EQ(expected.erase(lost), 1u);
      }
      expected[place] = hash;
    } else if (!expected.empty()) {
      auto any = expected.lower_bound(static_cast<BundleIndex::Place>(random() % step));
      if (any == expected.end()) any = expected.begin();
      ASSERT_TRUE(index.replace(any->second, any->first, 0));
      ASSERT_FALSE(index.replace(any->second, any->first, 0));
      expected.erase(any);
    }
  }
  for (const auto& [place, hash] : expected) {
    ASSERT_EQ(index.find(hash, [place = place](BundleIndex::Place found) { return found == place; }), place);
  }
  EXPECT_LT(forgotten, 100'000 / 50u);
  EXPECT_EQ(index.find(random(), [](BundleIndex::Place) { return false; }), 0u);
}

TEST(GhostList, RemembersAboutAsManyAsItIsMadeFor) {
  constexpr std::uint64_t kEntries = 30'000;
  GhostList ghosts(kEntries);
  const std::uint64_t inserted = 10 * kEntries;
  for (std::uint64_t i = 0; i < inserted; ++i) ghosts.insert(splitmix64(i));
  std::uint64_t young = 0, old = 0;
  for (std::uint64_t i = 0; i < kEntries / 2; ++i) {
    young += ghosts.take(splitmix64(inserted - 1 - i));
    old += ghosts.take(splitmix64(i));
  }
  EXPECT_GT(young, kEntries / 2 * 9 / 10);
  EXPECT_LT(old, kEntries / 2 / 20);
  EXPECT_FALSE(ghosts.take(splitmix64(inserted - 1)));  // taken already
}

}  // namespace
}  // namespace rowtide
