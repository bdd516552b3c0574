// Drives told apart, figures kept for them, and what is measured.
#include "io/drive.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fault/faulty_source.h"
#include "io/measure_drive.h"
#include "io/scratch_file.h"
#include "rowtide/log.h"
#include "support/memory_disk.h"
#include "support/random_table.h"

namespace rowtide::io {
namespace {

/// Figures are kept in a folder of the test's own, and the library's log lines are heard.
class DriveTest : public testing::Test {
 protected:
  DriveTest() {
    ::setenv("XDG_CACHE_HOME", dir_.file("cache").c_str(), 1);
    set_log_sink([this](LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; });
  }
  ~DriveTest() override {
    set_log_sink({});
    ::unsetenv("XDG_CACHE_HOME");
  }

  std::string here() const { return dir_.file(""); }
  std::string kept() const { return figures_path(*drive_of(here())); }
  void keep_text(const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(kept()).parent_path());
    std::filesystem::remove(kept());
    std::ofstream(kept()) << text;
  }

  TempDir dir_;
  std::string log_;
};

TEST_F(DriveTest, IsOneForFilesOfOneFolderAndHasAName) {
  write_file(dir_.file("a"), std::vector<std::byte>(10));
  const auto folder = drive_of(here()), file = drive_of(dir_.file("a"));
  ASSERT_TRUE(folder.ok() && file.ok());
  EXPECT_EQ(folder->identity, file->identity);
  EXPECT_EQ(figures_path(*folder), figures_path(*file));
  EXPECT_FALSE(folder->name.empty());
  const auto other = drive_of("/proc");
  EXPECT_NE(folder->identity, other->identity);
  EXPECT_NE(figures_path(*folder), figures_path(*other));
  expect_refused(drive_of(dir_.file("absent")), ErrorCode::kNotFound, {"absent"});
}

TEST_F(DriveTest, TheBestDepthIsKeptForTheStore) {
  EXPECT_EQ(calibrated_depth(here()), std::nullopt);
  DriveFigures figures{4096, 85.5, {{1, 11'000}, {2, 20'000}}, 2e9, 2};
  ASSERT_TRUE(keep_figures(*drive_of(here()), figures).ok());
  EXPECT_EQ(calibrated_depth(here()), 2u);
  figures.best_depth = kDepthMax;
  ASSERT_TRUE(keep_figures(*drive_of(here()), figures).ok()) << "a second time, over the first";
  EXPECT_EQ(calibrated_depth(here()), kDepthMax);
  EXPECT_EQ(calibrated_depth(dir_.file("absent")), std::nullopt);
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(dir_.file("cache"))) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  EXPECT_EQ(files, 1) << "nothing is left of the writing";
  EXPECT_EQ(log_, "");
}

TEST_F(DriveTest, AllFiguresComeBack) {
  EXPECT_FALSE(calibrated_figures(here()).has_value());
  const DriveFigures figures{4096, 85.5, {{1, 11'000}, {2, 20'000}, {256, 1'200'000}}, 14.5e9, 256};
  ASSERT_TRUE(keep_figures(*drive_of(here()), figures).ok());
  const auto kept = calibrated_figures(here());
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(kept->block_bytes, 4096u);
  EXPECT_EQ(kept->serial_us, 85.5);
  EXPECT_EQ(kept->depth_curve, figures.depth_curve);
  EXPECT_EQ(kept->sequential_bytes_per_s, 14.5e9);
  EXPECT_EQ(kept->best_depth, 256u);
  EXPECT_EQ(log_, "");
}

TEST_F(DriveTest, FiguresThatLackSomeAreNone) {
  const std::string whole =
      "rowtide drive 1\nbest_depth 2\nblock_bytes 4096\nserial_us 85.5\nsequential_bytes_per_s 2e9\n"
      "reads_per_s 2 20000\n";
  keep_text(whole);
  ASSERT_TRUE(calibrated_figures(here()).has_value());
  for (const char* key : {"block_bytes", "serial_us", "sequential_bytes_per_s", "reads_per_s"}) {
    for (const char* instead : {"other", "0"}) {
      std::string text = whole;
      const auto at = text.find(key), gap = text.find(' ', at);
      if (*instead == 'o') text.replace(at, gap - at, instead);
      if (*instead == '0') text.replace(gap + 1, text.find('\n', at) - gap - 1, "-1 nan");
      keep_text(text);
      EXPECT_FALSE(calibrated_figures(here()).has_value()) << text;
      EXPECT_EQ(calibrated_depth(here()), 2u) << text;
    }
  }
}

TEST_F(DriveTest, AFileThatHoldsNoDepthIsIgnoredWithOneLine) {
  const std::string first = "rowtide drive 1\n";
  const std::vector<std::string> bad = {"",
                                        "best_depth 64\n",
                                        first,
                                        first + "best_depth 64",
                                        first + "best_depth 0\n",
                                        first + "best_depth 1025\n",
                                        first + "best_depth -1\n",
                                        first + "best_depth 99999999999999999999\n",
                                        first + "best_depth 64 \n",
                                        first + "best_depth  64\n",
                                        first + "best_depth 0x40\n",
                                        first + "xbest_depth 64\n",
                                        "rowtide drive 2\nbest_depth 64\n",
                                        first + std::string(5000, 'x') + "\nbest_depth 64\n",
                                        std::string(3000, '\0')};
  for (const std::string& text : bad) {
    keep_text(text);
    EXPECT_EQ(calibrated_depth(here()), std::nullopt) << text;
  }
  keep_text(first + "name x\nbest_depth 32\nmore 1\n");
  EXPECT_EQ(calibrated_depth(here()), 32u);
  keep_text("nonsense");
  log_.clear();
  set_log_sink([this](LogLevel, std::string_view line) { log_ += std::string(line) + "\n"; });
  calibrated_depth(here());
  calibrated_depth(here());
  EXPECT_LE(std::count(log_.begin(), log_.end(), '\n'), 1);
}

TEST_F(DriveTest, SomethingElseInThePlaceOfTheFileIsIgnored) {
  std::filesystem::create_directories(kept());
  EXPECT_EQ(calibrated_depth(here()), std::nullopt) << "a folder";
  EXPECT_NE(log_.find(kept()), std::string::npos) << log_;
  EXPECT_FALSE(keep_figures(*drive_of(here()), {4096, 1, {{1, 1}}, 1, 1}).ok());
  std::filesystem::remove(kept());
  ASSERT_EQ(::mkfifo(kept().c_str(), 0600), 0);
  EXPECT_EQ(calibrated_depth(here()), std::nullopt) << "a pipe, which nobody writes to";
}

TEST_F(DriveTest, WithoutAFolderForCachesNothingIsKept) {
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  const char* const home = std::getenv("HOME");
  const std::string before = home != nullptr ? home : "";
  ::setenv("HOME", "/nowhere", 1);
  EXPECT_TRUE(kept().starts_with("/nowhere/.cache/rowtide/drive-")) << kept();
  ::unsetenv("HOME");
  EXPECT_EQ(kept(), "");
  EXPECT_EQ(calibrated_depth(here()), std::nullopt);
  expect_refused(keep_figures(*drive_of(here()), {}), ErrorCode::kIo, {"XDG_CACHE_HOME", "HOME"});
  if (home != nullptr) ::setenv("HOME", before.c_str(), 1);
}

TEST(BestDepth, IsTheLeastWithinFivePercent) {
  using Curve = std::vector<std::pair<std::uint32_t, double>>;
  EXPECT_EQ(best_depth(Curve{{1, 100}}), 1u);
  EXPECT_EQ(best_depth(Curve{{1, 10}, {2, 20}, {4, 40}, {8, 80}}), 8u);
  EXPECT_EQ(best_depth(Curve{{1, 10}, {2, 95}, {4, 99}, {8, 100}}), 2u);
  EXPECT_EQ(best_depth(Curve{{1, 10}, {2, 94}, {4, 100}, {8, 60}}), 4u) << "deeper may be slower";
}

TEST_F(DriveTest, IsMeasuredByReadingAFile) {
  write_file(dir_.file("file"), std::vector<std::byte>(std::size_t{4} << 20, std::byte{7}));
  auto source = *open_block_source({dir_.file("file")}, {.depth = kDepthMeasuredMax});
  std::vector<double> shares;
  const auto figures = measure_drive(*source, 1, [&](double share) { shares.push_back(share); });
  ASSERT_TRUE(figures.ok()) << figures.error().message;
  EXPECT_EQ(figures->block_bytes, source->block_bytes());
  EXPECT_GT(figures->serial_us, 0);
  EXPECT_GT(figures->sequential_bytes_per_s, 0);
  ASSERT_FALSE(figures->depth_curve.empty());
  std::uint32_t depth = 1;
  for (const auto& [measured, rate] : figures->depth_curve) {
    EXPECT_EQ(measured, depth);
    EXPECT_GT(rate, 0);
    depth *= 2;
  }
  EXPECT_EQ(figures->best_depth, best_depth(figures->depth_curve));
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
}

TEST_F(DriveTest, AGlanceReadsAtTheDepthAskedFor) {
  write_file(dir_.file("file"), std::vector<std::byte>(std::size_t{4} << 20, std::byte{7}));
  auto source = *open_block_source({dir_.file("file")}, {.depth = kDepthMeasuredMax});
  std::vector<double> shares;
  for (const auto& [asked, most] : {std::pair{16u, 16u}, {0u, 1u}, {1000u, kDepthMeasuredMax}}) {
    shares.clear();
    const auto glance = glance_at_drive(*source, asked, 1, [&](double share) { shares.push_back(share); });
    ASSERT_TRUE(glance.ok()) << glance.error().message;
    EXPECT_GT(glance->serial_us, 0);
    EXPECT_GT(glance->reads_per_s, 0);
    EXPECT_TRUE(1 <= glance->depth && glance->depth <= most) << glance->depth;  // fewer on a slow drive
  }
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
}

TEST_F(DriveTest, AGlanceNeedsWhatCanBeRead) {
  const std::string path = dir_.file("file");
  write_file(path, std::vector<std::byte>(256 * 4096 - 1));
  expect_refused(glance_at_drive(**open_block_source({path}, {}), 8, 1, [](double) {}), ErrorCode::kUsage,
                 {"too small"});
  write_file(path, std::vector<std::byte>(std::size_t{4} << 20));
  FaultySource source(*open_block_source({path}, {}), [](std::uint64_t number, const ReadRequest&,
                                                         std::int32_t result) { return number == 3 ? -EIO : result; });
  expect_refused(glance_at_drive(source, 8, 1, [](double) {}), ErrorCode::kIo, {"offset", "error"});
}

TEST_F(DriveTest, IsNotMeasuredByWhatCannotBeRead) {
  const std::string path = dir_.file("file");
  write_file(path, std::vector<std::byte>(256 * 4096 - 1));
  expect_refused(measure_drive(**open_block_source({path}, {}), 1, [](double) {}), ErrorCode::kUsage, {"too small"});
  write_file(path, std::vector<std::byte>(std::size_t{4} << 20));
  for (const std::uint64_t bad : {0u, 1u, 100u}) {
    FaultySource source(
        *open_block_source({path}, {}),
        [bad](std::uint64_t number, const ReadRequest&, std::int32_t result) { return number == bad ? -EIO : result; });
    expect_refused(measure_drive(source, 1, [](double) {}), ErrorCode::kIo, {"offset", "error"});
  }
  auto source = *open_block_source({path}, {});
  std::filesystem::resize_file(path, 4096);
  expect_refused(measure_drive(*source, 1, [](double) {}), ErrorCode::kIo, {"the file ends there"});
}

TEST(ScratchFileTest, IsReadableAndNobodySeesIt) {
  TempDir dir;
  double share = 0;
  {
    auto scratch = ScratchFile::make(dir.file(""), ScratchFile::kBytesLeast, [&](double done) { share = done; });
    ASSERT_TRUE(scratch.ok()) << scratch.error().message;
    EXPECT_EQ(share, 1);
    EXPECT_EQ(scratch->bytes(), ScratchFile::kBytesLeast);
    EXPECT_TRUE(std::filesystem::is_empty(dir.file("")));
    auto source = open_block_source({scratch->path()}, {});
    ASSERT_TRUE(source.ok()) << source.error().message;
    EXPECT_EQ((*source)->file_bytes(0), scratch->bytes());
    std::ifstream file(scratch->path(), std::ios::binary);
    std::string first(64, '\0'), later(64, '\0');
    file.read(first.data(), 64);
    file.seekg(static_cast<std::streamoff>(scratch->bytes() - (4 << 20)));
    file.read(later.data(), 64);
    EXPECT_NE(first, std::string(64, '\0'));
    EXPECT_NE(first, later);
  }
  expect_refused(ScratchFile::make(dir.file("absent"), 1, [](double) {}), ErrorCode::kNotFound, {"absent"});
}

}  // namespace
}  // namespace rowtide::io
