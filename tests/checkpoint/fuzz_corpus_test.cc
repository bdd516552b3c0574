// The fuzzers' seeds keep their meaning: those named "refused_*" are refused, those named "opens_*" open.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>

#include "checkpoint/model_config.h"
#include "checkpoint/safetensors.h"
#include "support/memory_disk.h"
#include "support/safetensors_writer.h"

namespace rowtide::checkpoint {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

/// `opens` tells of one seed's content.
void expect_meanings(const std::string& corpus, int seeds_at_least,
                     const std::function<bool(const std::string&)>& opens) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ROWTIDE_SOURCE_DIR "/fuzz/corpus/" + corpus)) {
    const std::string name = entry.path().filename();
    EXPECT_TRUE(name.starts_with("refused_") || name.starts_with("opens_")) << name;
    EXPECT_EQ(opens(content_of(entry.path())), name.starts_with("opens_")) << name;
    ++seeds;
  }
  EXPECT_GE(seeds, seeds_at_least);
}

TEST(FuzzCorpus, OfSafetensorsFiles) {
  expect_meanings("safetensors", 47, [](const std::string& content) {
    MemoryDisk disk("fuzz.safetensors", content);
    return open_safetensors("fuzz.safetensors", disk.disk()).ok();
  });
}

TEST(FuzzCorpus, OfIndices) {
  SafetensorsWriter first, second;
  first.add_hole("a", "F32", {}, 4);
  first.add_hole("b", "U8", {8}, 8);
  second.add_hole("c", "BF16", {1, 1}, 2);
  expect_meanings("index", 34, [&](const std::string& content) {
    MemoryDisk disk("m/s-1", first.bytes());
    disk.add("m/s-2", second.bytes());
    disk.add("m/x.json", content);
    return open_safetensors("m/x.json", disk.disk()).ok();
  });
}

TEST(FuzzCorpus, OfConfigs) {
  expect_meanings("config", 24, [](const std::string& content) {
    MemoryDisk disk("config.json", content);
    auto file = disk.opener()("config.json");
    return ModelConfig::read(**file).ok();
  });
}

}  // namespace
}  // namespace rowtide::checkpoint
