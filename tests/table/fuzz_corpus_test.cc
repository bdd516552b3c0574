// The fuzzer's seeds keep their meaning: "table_*" hold a table, "refused_*" are refused, the rest opens without one.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/memory_disk.h"
#include "table/checkpoint_opener.h"

namespace rowtide {
namespace {

std::string content_of(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

TEST(FuzzCorpus, SeedsKeepTheirMeaning) {
  const std::string first = "fuzz-00001-of-00002.gguf";
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::string(ROWTIDE_SOURCE_DIR) + "/fuzz/corpus/gguf")) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const std::string content = content_of(entry.path());
    MemoryDisk disk(first, content);
    disk.add("fuzz-00002-of-00002.gguf", content.substr(content.rfind("GGUF")));
    auto checkpoint = CheckpointOpener(disk.opener()).open(first);
    EXPECT_EQ(checkpoint.ok(), !name.starts_with("refused_"));
    if (checkpoint) {
      EXPECT_EQ(checkpoint->tables().size(), name.starts_with("table_") ? 1u : 0u);
    }
    ++seeds;
  }
  EXPECT_GE(seeds, 14);
}

}  // namespace
}  // namespace rowtide
