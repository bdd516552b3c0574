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

/// `open` gives what a seed is opened as. Counts the seeds.
template <class Open>
int replay(const char* corpus, Open open) {
  int seeds = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator(ROWTIDE_SOURCE_DIR "/fuzz/corpus/" + std::string(corpus))) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    const Result<Checkpoint> checkpoint = open(content_of(entry.path()));
    EXPECT_EQ(checkpoint.ok(), !name.starts_with("refused_")) << (checkpoint ? "" : checkpoint.error().message);
    if (checkpoint) {
      EXPECT_EQ(checkpoint->tables().size(), name.starts_with("table_") ? 1u : 0u);
    }
    ++seeds;
  }
  return seeds;
}

TEST(FuzzCorpus, SeedsOfGgufKeepTheirMeaning) {
  const int seeds = replay("gguf", [](const std::string& content) {
    MemoryDisk disk("fuzz-00001-of-00002.gguf", content);
    disk.add("fuzz-00002-of-00002.gguf", content.substr(content.rfind("GGUF")));
    return CheckpointOpener(disk.disk()).open("fuzz-00001-of-00002.gguf");
  });
  EXPECT_GE(seeds, 14);
}

TEST(FuzzCorpus, SeedsOfModelsKeepTheirMeaning) {
  const int seeds = replay("model", [](const std::string& content) {
    MemoryDisk disk("m/config.json", content.substr(0, content.find('\0')));
    disk.add("m/model.safetensors", content.substr(content.find('\0') + 1));
    return CheckpointOpener(disk.disk(), {.token_map = "identity"}).open("m");
  });
  EXPECT_GE(seeds, 13);
}

}  // namespace
}  // namespace rowtide
