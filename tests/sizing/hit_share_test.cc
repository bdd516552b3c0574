#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/bundle_cache.h"
#include "cache/segment_arena.h"
#include "sizing/speed.h"
#include "sizing/text_in_cache.h"

namespace rowtide::sizing {
namespace {

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20, kGibi = std::uint64_t{1} << 30;

Model qwen_of_rows(std::uint64_t row_bytes) {
  Model model;
  model.tables = {{.name = "n-grams",
                   .layer = 1,
                   .rows = 320'001'536,
                   .row_bytes = row_bytes,
                   .row_values = 160,
                   .rows_per_token = 16,
                   .heads_per_order = 8}};
  return model;
}

Model deepseek() {
  Model model;
  const TableShape table = {.name = "engram",
                            .layer = 1,
                            .rows = 384'006'168,
                            .row_bytes = 264,
                            .row_values = 256,
                            .rows_per_token = 24,
                            .heads_per_order = 8,
                            .components = 2};
  model.tables = {table, table};
  return model;
}

TEST(HitShareTest, IsWhatWasMeasuredOnTheTableItWasMeasuredOn) {
  const auto mean_of = [](auto... shares) { return (shares + ...) / sizeof...(shares); };
  EXPECT_NEAR(hit_share(qwen_of_rows(90), 64 * kMebi), mean_of(.512, .565, .558, .429, .758), 1e-9);
  EXPECT_NEAR(hit_share(qwen_of_rows(90), kGibi), mean_of(.641, .667, .674, .466, .829), 1e-9);
  EXPECT_NEAR(hit_share(qwen_of_rows(90), 4 * kGibi), mean_of(.644, .667, .698, .466, .834), 1e-9);
}

TEST(HitShareTest, BetweenMeasuredSizesLiesBetween) {
  const double share = hit_share(qwen_of_rows(90), 512 * kMebi);
  EXPECT_GT(share, hit_share(qwen_of_rows(90), 256 * kMebi));
  EXPECT_LT(share, hit_share(qwen_of_rows(90), kGibi));
}

TEST(HitShareTest, NoMemoryServesNothingAndNoTableHasNoCurve) {
  EXPECT_EQ(hit_share(qwen_of_rows(90), 0), 0);
  EXPECT_EQ(hit_share(Model{}, kGibi), 0);
  EXPECT_TRUE(hit_share_curve(Model{}).empty());
}

TEST(HitShareTest, LargerRowsAreFewerInTheSameMemory) {
  // Rows of 160 bytes: a bundle takes 1,330 bytes where one of 90 takes 786.
  EXPECT_LT(hit_share(qwen_of_rows(160), 256 * kMebi), hit_share(qwen_of_rows(90), 256 * kMebi));
  const double scale = bundle_bytes_in_cache(8, 160, 320'001'536) / bundle_bytes_in_cache(8, 90, 320'001'536);
  EXPECT_NEAR(hit_share(qwen_of_rows(160), static_cast<std::uint64_t>(256 * kMebi * scale)),
              hit_share(qwen_of_rows(90), 256 * kMebi), 1e-6);
}

TEST(HitShareTest, ATokenOfSeveralTablesTakesTheBundlesOfEach) {
  EXPECT_NEAR(tokens_in_cache(deepseek(), kGibi),
              static_cast<double>(kGibi) / (6 * bundle_bytes_in_cache(8, 264, 384'006'168)), 1e-6);
  EXPECT_LT(hit_share(deepseek(), kGibi), hit_share(qwen_of_rows(160), kGibi));
}

TEST(HitShareTest, MoreMemoryNeverServesLess) {
  for (const Model& model : {qwen_of_rows(90), qwen_of_rows(320), deepseek()}) {
    double before = 0;
    for (std::uint64_t bytes = kMebi; bytes <= 64 * kGibi; bytes += bytes / 3 + 1) {
      const double share = hit_share(model, bytes);
      EXPECT_GE(share, before) << bytes;
      EXPECT_LE(share, 1);
      before = share;
    }
  }
}

TEST(HitShareTest, TheCurveGoesTo16GibAndIsFlatWhereNothingWasMeasured) {
  const auto curve = hit_share_curve(qwen_of_rows(90));
  ASSERT_EQ(curve.size(), 9);
  EXPECT_EQ(curve.front().memory_bytes, 64 * kMebi);
  EXPECT_EQ(curve.back().memory_bytes, 16 * kGibi);
  EXPECT_EQ(curve.back().share, curve[6].share);
  EXPECT_NEAR(curve.front().least, .429, 1e-9);
  EXPECT_NEAR(curve.front().most, .758, 1e-9);
  for (const auto& point : curve) {
    EXPECT_LE(point.least, point.share);
    EXPECT_LE(point.share, point.most);
  }
}

// The cache itself is asked what it takes, lest the two drift apart.
TEST(HitShareTest, ABundleTakesWhatTheCacheSays) {
  constexpr std::uint32_t kSegments = 512;
  constexpr std::uint64_t kRows = 320'001'536;
  const BundleCache cache(kSegments);
  const double segment_bytes = static_cast<double>(kSegments) * SegmentArena::kSegmentBytes;
  for (const std::uint64_t row_bytes : {90, 160, 264}) {
    const double whole = segment_bytes + static_cast<double>(cache.index_bytes(8, row_bytes, kRows));
    const double per_bundle = bundle_bytes_in_cache(8, row_bytes, kRows);
    const double entries = segment_bytes / (per_bundle - 12.8 - 16.0 / 3);
    EXPECT_NEAR(whole / entries / per_bundle, 1, 0.02) << row_bytes;
  }
}

TEST(UniqueShareTest, FallsWithTheChunkAsMeasured) {
  EXPECT_DOUBLE_EQ(unique_share(1), 1);
  EXPECT_DOUBLE_EQ(unique_share(512), (.64 + .76) / 2);
  EXPECT_DOUBLE_EQ(unique_share(2048), (.54 + .68) / 2);
  EXPECT_DOUBLE_EQ(unique_share(8192), (.49 + .64) / 2);
  EXPECT_DOUBLE_EQ(unique_share(65536), unique_share(8192));
  EXPECT_GT(unique_share(100), unique_share(512));
}

}  // namespace
}  // namespace rowtide::sizing
