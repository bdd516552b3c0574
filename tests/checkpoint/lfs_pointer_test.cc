// What a clone without Git LFS has in place of a checkpoint's files is named as such, whichever file it is.
#include "checkpoint/lfs_pointer.h"

#include <gtest/gtest.h>

#include <string>

#include "checkpoint/gguf.h"
#include "checkpoint/model_config.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tokenizer_json.h"
#include "support/memory_disk.h"
#include "support/safetensors_writer.h"
#include "table/token_map_file.h"

namespace rowtide::checkpoint {
namespace {

const std::string kPointer =
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 4967215360\n";
constexpr char kSaid[] = "is a Git LFS pointer, not the file itself: run git lfs pull";

std::unique_ptr<io::File> file_of(MemoryDisk& disk, const std::string& path) { return *disk.opener()(path); }

TEST(LfsPointer, IsNamedInPlaceOfAnyFile) {
  MemoryDisk disk;
  disk.add("m/model.safetensors.index.json", safetensors_index({{"a", "s-1.safetensors"}}));
  disk.add("m/s-1.safetensors", kPointer);
  expect_refused(open_safetensors("m", disk.disk()), ErrorCode::kMalformed, {"m/s-1.safetensors", kSaid});
  disk.add("m/model.safetensors.index.json", kPointer);
  expect_refused(open_safetensors("m", disk.disk()), ErrorCode::kMalformed, {"m/model.safetensors.index.json", kSaid});
  disk.add("m/config.json", kPointer);
  expect_refused(ModelConfig::read(*file_of(disk, "m/config.json")), ErrorCode::kMalformed, {"m/config.json", kSaid});
  disk.add("m/tokenizer.json", kPointer);
  expect_refused(read_tokenizer_pieces(*file_of(disk, "m/tokenizer.json")), ErrorCode::kMalformed,
                 {"m/tokenizer.json", kSaid});
  disk.add("m/x.gguf", kPointer);
  expect_refused(open_gguf("m/x.gguf", disk.opener()), ErrorCode::kMalformed, {"m/x.gguf", kSaid});
}

/// A pointer whose length is a multiple of four could pass for a map of int32 numbers.
TEST(LfsPointer, IsNoTokenMap) {
  for (const char* path : {"tokenizer.json", "map.bin"}) {
    for (std::size_t more = 0; more < 4; ++more) {
      MemoryDisk disk(path, kPointer + std::string(more, '\n'));
      expect_refused(read_token_map(path, disk.opener()), ErrorCode::kMalformed, {path, kSaid});
    }
  }
  MemoryDisk disk("tokenizer.json", "12345678");
  expect_refused(read_token_map("tokenizer.json", disk.opener()), ErrorCode::kMalformed, {"tokenizer.json"});
  disk.add("map.bin", std::string(8, '\0'));
  EXPECT_TRUE(read_token_map("map.bin", disk.opener()).ok());
}

TEST(LfsPointer, NothingIsReadOfWhatIsTooLongForOne) {
  MemoryDisk disk("long", kPointer + std::string(1024, ' '));
  EXPECT_TRUE(refuse_lfs_pointer(*file_of(disk, "long")).ok());
  EXPECT_EQ(disk.bytes_read(), 0u);
  disk.add("short", "version https://git");
  EXPECT_TRUE(refuse_lfs_pointer(*file_of(disk, "short")).ok());
}

}  // namespace
}  // namespace rowtide::checkpoint
