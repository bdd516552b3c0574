// The smallest qwen4exp checkpoint that has an n-gram table: 4 heads, 424 rows of 32 values.
#pragma once

#include "checkpoint/gguf_writer.h"
#include "support/memory_disk.h"
#include "table/checkpoint_opener.h"

namespace rowtide {

inline constexpr const char* kQwenPath = "dir/qwen.gguf";
inline constexpr const char* kTableName = "per_layer_token_embd.weight";

/// The "micro" configuration of the golden vectors: vocabulary 32, base 101, two heads per order.
inline GgufWriter qwen_sample() {
  GgufWriter writer;
  writer.set("general.architecture", "qwen4exp");
  writer.set<std::uint32_t>("qwen4exp.block_count", 4);
  writer.set("qwen4exp.ple.layers", std::vector<std::int32_t>{1});
  writer.set<std::uint32_t>("qwen4exp.ple.ngram_size", 3);
  writer.set<std::uint32_t>("qwen4exp.ple.heads_per_ngram", 2);
  writer.set<std::uint32_t>("qwen4exp.ple.eos_token_id", 1);
  writer.set<std::uint32_t>("qwen4exp.embedding_length_per_layer_input", 32);
  writer.set("qwen4exp.ple.layer_multipliers",
             std::vector<std::uint64_t>{256496738022509279, 251627398771002343, 55314113489879221});
  writer.set("qwen4exp.ple.head_vocab_sizes", std::vector<std::uint64_t>{101, 103, 107, 109});
  writer.set("qwen4exp.ple.head_offsets", std::vector<std::uint64_t>{0, 101, 204, 311});
  writer.add_tensor("token_embd.weight", 1, {8, 32}, 512);
  writer.add_tensor(kTableName, 8, {32, 424}, 424 * 34);
  return writer;
}

inline Result<Checkpoint> open_checkpoint_bytes(std::string bytes) {
  MemoryDisk disk(kQwenPath, std::move(bytes));
  return CheckpointOpener(disk.disk()).open(kQwenPath);
}

}  // namespace rowtide
