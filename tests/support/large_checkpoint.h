// Checkpoints with headers of real size, in sparse files: all of the tensors and none of their bytes.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/safetensors_writer.h"

namespace rowtide {

struct LargeCheckpoint {
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;         // of all files
  std::uint64_t header_bytes = 0;  // of all headers, and of the index
};

/// Spreads tensors over numbered shards, and writes shards and index when all are added.
class ShardedWriter {
 public:
  ShardedWriter(std::string folder, int shards) : folder_(std::move(folder)), shards_(shards), writers_(shards) {}

  void add(int shard, const std::string& name, const std::string& dtype, std::vector<std::uint64_t> shape,
           std::uint64_t value_bytes) {
    std::uint64_t bytes = value_bytes;
    for (const std::uint64_t dimension : shape) bytes *= dimension;
    writers_[shard].add_hole(name, dtype, std::move(shape), bytes);
    map_.emplace_back(name, file_name(shard));
    total_bytes_ += bytes;
  }

  /// A tensor with content, before all others of its shard: holes before it would be filled.
  void add_bytes(int shard, const std::string& name, const std::string& dtype, std::vector<std::uint64_t> shape,
                 std::string_view data) {
    writers_[shard].add(name, dtype, std::move(shape), data);
    map_.emplace_back(name, file_name(shard));
    total_bytes_ += data.size();
  }

  LargeCheckpoint write() const {
    LargeCheckpoint written;
    written.tensors = map_.size();
    for (int shard = 0; shard < shards_; ++shard) {
      writers_[shard].write(folder_ + "/" + file_name(shard));
      written.header_bytes += writers_[shard].header_bytes();
    }
    const std::string index = safetensors_index(map_, total_bytes_);
    std::ofstream(folder_ + "/model.safetensors.index.json") << index;
    written.bytes = total_bytes_ + written.header_bytes;
    written.header_bytes += index.size();
    return written;
  }

 private:
  std::string file_name(int shard) const { return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, shards_); }

  const std::string folder_;
  const int shards_;
  std::vector<SafetensorsWriter> writers_;
  std::vector<std::pair<std::string, std::string>> map_;
  std::uint64_t total_bytes_ = 0;
};

/// As Qwen3.8-Flash-Next in NVFP4 with an expert's tensors apart: 48 layers of 512 experts with 3 projections of 4
/// tensors.
inline LargeCheckpoint write_large_qwen(const std::string& folder, int shards) {
  ShardedWriter writer(folder, shards);
  for (int layer = 0; layer < 48; ++layer) {
    for (int expert = 0; expert < 512; ++expert) {
      for (const char* projection : {"down_proj", "gate_proj", "up_proj"}) {
        const std::string stem =
            fmt::format("model.language_model.layers.{}.mlp.experts.{}.{}", layer, expert, projection);
        const int shard = layer * shards / 48;
        writer.add(shard, stem + ".input_scale", "F32", {}, 4);
        writer.add(shard, stem + ".weight", "U8", {640, 1280}, 1);
        writer.add(shard, stem + ".weight_scale", "F8_E4M3", {640, 160}, 1);
        writer.add(shard, stem + ".weight_scale_2", "F32", {}, 4);
      }
    }
  }
  for (int part = 0; part < 128; ++part) {
    const std::string stem =
        fmt::format("model.language_model.layers.1.ple.ple_embedding.ngram_embedding.shard_{}", part);
    writer.add(part * shards / 128, stem + ".weight", "F8_E4M3", {2500012, 160}, 1);
  }
  return writer.write();
}

/// As DeepSeek-V4.1-Flash: 48 shards, 40 layers of 384 experts with 3 projections of weight and scale, the n-gram
/// tables of two layers in the last two shards.
inline LargeCheckpoint write_large_deepseek(const std::string& folder) {
  constexpr int kShards = 48;
  ShardedWriter writer(folder, kShards);
  for (int layer = 0; layer < 40; ++layer) {
    for (int expert = 0; expert < 384; ++expert) {
      for (const char* projection : {"w1", "w2", "w3"}) {
        const std::string stem = fmt::format("layers.{}.ffn.experts.{}.{}", layer, expert, projection);
        writer.add(layer, stem + ".weight", "F8_E4M3", {1536, 5120}, 1);
        writer.add(layer, stem + ".scale", "F8_E8M0", {48, 160}, 1);
      }
    }
  }
  for (int shard = 40; shard < 46; ++shard) writer.add(shard, fmt::format("mtp.{}.weight", shard), "BF16", {5120}, 2);
  constexpr std::array<std::pair<int, std::uint64_t>, 2> kTables = {{{1, 384006168}, {14, 384016682}}};
  for (int i = 0; i < 2; ++i) {
    const auto [layer, rows] = kTables[i];
    writer.add(46 + i, fmt::format("layers.{}.engram.embed.weight", layer), "F8_E4M3", {rows, 256}, 1);
    writer.add(46 + i, fmt::format("layers.{}.engram.embed.scale", layer), "F8_E8M0", {rows, 8}, 1);
  }
  return writer.write();
}

}  // namespace rowtide
