// The seeds of the tokenizer's fuzzer keep their meaning: "pieces_*" are read, "refused_*" are refused.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "checkpoint/tokenizer_json.h"
#include "support/memory_disk.h"

namespace rowtide::checkpoint {
namespace {

TEST(TokenizerCorpus, SeedsKeepTheirMeaning) {
  int seeds = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ROWTIDE_SOURCE_DIR "/fuzz/corpus/tokenizer")) {
    const std::string name = entry.path().filename();
    SCOPED_TRACE(name);
    std::ostringstream content;
    content << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    MemoryDisk disk(name, content.str());
    auto file = disk.opener()(name);
    auto pieces = read_tokenizer_pieces(**file);
    EXPECT_EQ(pieces.ok(), name.starts_with("pieces_"));
    EXPECT_NE(pieces.ok(), name.starts_with("refused_"));
    ++seeds;
  }
  EXPECT_GE(seeds, 15);
}

}  // namespace
}  // namespace rowtide::checkpoint
