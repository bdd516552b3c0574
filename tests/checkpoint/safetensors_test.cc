#include "checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "support/memory_disk.h"
#include "support/safetensors_writer.h"

namespace rowtide::checkpoint {
namespace {

constexpr char kPath[] = "m/model.safetensors";

/// Two shards and their index, in the folder m.
struct Sharded {
  SafetensorsWriter first, second;
  std::vector<std::pair<std::string, std::string>> map = {
      {"a", "s-1.safetensors"}, {"b", "s-1.safetensors"}, {"c", "s-2.safetensors"}};

  Sharded() {
    first.add("a", "F32", {2}, "12345678");
    first.add("b", "U8", {3}, "abc");
    second.add("c", "BF16", {1, 2}, "wxyz");
  }

  MemoryDisk disk() const {
    MemoryDisk disk("m/s-1.safetensors", first.bytes());
    disk.add("m/s-2.safetensors", second.bytes());
    disk.add("m/model.safetensors.index.json", safetensors_index(map, 15));
    return disk;
  }
};

std::string content(const Safetensors& opened, const SafetensorsTensor& tensor, const MemoryDisk& disk) {
  return disk.content(opened.path_of(tensor)).substr(tensor.offset, tensor.bytes);
}

TEST(Safetensors, GiveWhatOneFileHolds) {
  SafetensorsWriter writer;
  writer.add_metadata("format", "pt");
  writer.add("scale", "F32", {}, "\1\2\3\4");
  writer.add("layers.0.weight", "F8_E4M3", {2, 3}, "abcdef");
  writer.add("empty", "I64", {0, 5}, "");
  MemoryDisk disk(kPath, writer.bytes());
  disk.add("m/config.json", "{}");
  auto opened = open_safetensors(kPath, disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;

  ASSERT_EQ(opened->files().size(), 1u);
  EXPECT_EQ(opened->files()[0].path, kPath);
  EXPECT_EQ(opened->files()[0].bytes, writer.bytes().size());
  EXPECT_EQ(opened->files()[0].header_bytes, writer.header_bytes());
  EXPECT_EQ(opened->config_path(), "m/config.json");
  EXPECT_EQ(opened->choice(), "");
  ASSERT_EQ(opened->tensors().size(), 3u);
  EXPECT_EQ(opened->tensors()[1].name, "layers.0.weight");

  const auto tensor = opened->tensors().find("layers.0.weight");
  ASSERT_TRUE(tensor.has_value());
  EXPECT_EQ(tensor->dtype, Dtype::kF8E4M3);
  EXPECT_EQ(std::vector(tensor->shape.begin(), tensor->shape.end()), (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(content(*opened, *tensor, disk), "abcdef");
  EXPECT_TRUE(opened->tensors().find("scale")->shape.empty());
  EXPECT_EQ(opened->tensors().find("empty")->bytes, 0u);
  EXPECT_FALSE(opened->tensors().find("layers.0").has_value());
  EXPECT_FALSE(opened->tensors().find("__metadata__").has_value());
  // No byte of a tensor is read but the one that may stand behind an empty header.
  EXPECT_EQ(disk.read_end(kPath), writer.header_bytes());
}

TEST(Safetensors, KnowEveryDtypeAndMarkOthers) {
  const std::map<std::string, std::uint64_t> bits = {
      {"BOOL", 8},    {"F4", 4},      {"F6_E2M3", 6},     {"F6_E3M2", 6},    {"U8", 8},   {"I8", 8},
      {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},     {"I16", 16},       {"U16", 16}, {"F16", 16},
      {"BF16", 16},   {"I32", 32},    {"U32", 32},        {"F32", 32},       {"C64", 64}, {"F64", 64},
      {"I64", 64},    {"U64", 64},    {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}};
  SafetensorsWriter writer;
  for (const auto& [name, width] : bits) writer.add_hole("of " + name, name, {4, 2}, width);
  writer.add("of the future", "F2_E1M0", {1, 1, 1}, "odd");
  MemoryDisk disk(kPath, writer.bytes());
  auto opened = open_safetensors(kPath, disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  for (const auto& [name, width] : bits) {
    const Dtype dtype = opened->tensors().find("of " + name)->dtype;
    EXPECT_EQ(dtype_name(dtype), name);
    EXPECT_EQ(dtype_bits(dtype), width);
    EXPECT_EQ(dtype_of(name), dtype);
  }
  EXPECT_EQ(opened->tensors().find("of the future")->dtype, Dtype::kUnknown);
  EXPECT_EQ(opened->tensors().find("of the future")->bytes, 3u);
}

TEST(Safetensors, OpenShardsByIndexOrFolder) {
  const Sharded sharded;
  MemoryDisk disk = sharded.disk();
  disk.add("m/unrelated.safetensors", "no matter what");
  for (const char* path : {"m", "m/", "m/model.safetensors.index.json"}) {
    auto opened = open_safetensors(path, disk.disk());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    ASSERT_EQ(opened->files().size(), 2u);
    EXPECT_EQ(opened->files()[1].path, "m/s-2.safetensors");
    EXPECT_EQ(opened->tensors().size(), 3u);
    EXPECT_EQ(content(*opened, *opened->tensors().find("b"), disk), "abc");
    EXPECT_EQ(content(*opened, *opened->tensors().find("c"), disk), "wxyz");
    EXPECT_EQ(opened->config_path(), "");
  }
  auto one = open_safetensors("m/s-2.safetensors", disk.disk());
  ASSERT_TRUE(one.ok());
  EXPECT_EQ(one->tensors().size(), 1u);
}

TEST(Safetensors, ChooseAmongTheFilesOfAFolder) {
  SafetensorsWriter writer;
  writer.add("a", "U8", {1}, "x");
  MemoryDisk disk("m/b.safetensors", writer.bytes());
  disk.add("m/readme.md", "");
  auto opened = open_safetensors("m", disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->files()[0].path, "m/b.safetensors");

  disk.add("m/c.safetensors", writer.bytes());
  expect_refused(open_safetensors("m", disk.disk()), ErrorCode::kNotFound,
                 {"m: holds 2 safetensors files (b.safetensors, c.safetensors), but no index "
                  "(*.safetensors.index.json) that names those which belong together: fetch the index, or name one"});
  disk.add("m/other.safetensors.index.json", safetensors_index({{"a", "b.safetensors"}}));
  opened = open_safetensors("m", disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->files()[0].path, "m/b.safetensors");
  disk.add("m/second.safetensors.index.json", safetensors_index({{"a", "c.safetensors"}}));
  expect_refused(open_safetensors("m", disk.disk()), ErrorCode::kNotFound,
                 {"holds several checkpoints (other.safetensors.index.json, second.safetensors.index.json)"});
  disk.add("m/model.safetensors.index.json", safetensors_index({{"a", "c.safetensors"}}));
  opened = open_safetensors("m", disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->files()[0].path, "m/c.safetensors");

  disk.add("m/model.safetensors.index.json", safetensors_index({{"a", "gone.safetensors"}}));  // stale
  disk.add(kPath, writer.bytes());
  opened = open_safetensors("m", disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->files()[0].path, kPath);

  disk.add("n/config.json", "{}");
  expect_refused(open_safetensors("n", disk.disk()), ErrorCode::kNotFound, {"n: holds no *.safetensors file"});
  disk.add("n/x-00001-of-00002.gguf", "");
  expect_refused(open_safetensors("n", disk.disk()), ErrorCode::kNotFound,
                 {"n: holds no *.safetensors file", "name its GGUF file (x-00001-of-00002.gguf)"});
  expect_refused(open_safetensors("absent", disk.disk()), ErrorCode::kNotFound, {"absent"});
}

TEST(Safetensors, NamesThatBeginWithADotAreNone) {
  SafetensorsWriter writer;
  writer.add("a", "U8", {1}, "x");
  MemoryDisk disk("m/b.safetensors", writer.bytes());
  for (const char* name : {"m/._b.safetensors", "m/._model.safetensors", "m/._model.safetensors.index.json"}) {
    disk.add(name, "\x00\x05\x16\x07");
  }
  auto opened = open_safetensors("m", disk.disk());
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(opened->files()[0].path, "m/b.safetensors");
}

TEST(Safetensors, AcceptWhatWritersDoDifferently) {
  SafetensorsWriter writer;
  writer.add("a", "U8", {2}, "xy");
  std::string index = R"({"weight_map": {"a": "model.safetensors"}, "other": [1, {"b": 2}]})";
  for (const char* metadata : {"", R"(, "metadata": null)", R"(, "metadata": {"total_size": 7, "total_parameters": 2})",
                               R"(, "metadata": {"total_size": null})"}) {
    MemoryDisk disk(kPath, writer.bytes());
    disk.add("m/x.json", index.substr(0, index.size() - 1) + metadata + "}");
    auto opened = open_safetensors("m/x.json", disk.disk());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
  }
  for (const char* header : {R"({"__metadata__":null,"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})",
                             R"({"a":{"shape":[2],"data_offsets":[0,2],"note":{"x":[1]},"dtype":"U8"}})",
                             "{\n \"a\" : { \"dtype\":\"U8\",\t\"shape\":[ 2 ],\"data_offsets\":[0, 2]}\n}\n   "}) {
    MemoryDisk disk(kPath, SafetensorsWriter::with_length(header) + "xy");
    auto opened = open_safetensors(kPath, disk.disk());
    EXPECT_TRUE(opened.ok()) << opened.error().message;
  }
  MemoryDisk disk(kPath, SafetensorsWriter::with_length("{}"));
  EXPECT_TRUE(open_safetensors(kPath, disk.disk()).ok());
}

struct RandomTensor {
  Dtype dtype;
  std::vector<std::uint64_t> shape;
  std::string data;
};

/// Numbers below `limit`, by chance.
class Chance {
 public:
  explicit Chance(std::uint64_t seed) : random_(seed) {}
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  RandomTensor tensor() {
    RandomTensor tensor{static_cast<Dtype>(1 + below(22)), {}, {}};
    for (std::uint64_t rank = below(5); rank > 0; --rank) tensor.shape.push_back(below(8) == 0 ? 0 : 1 + below(4));
    if (dtype_bits(tensor.dtype) % 8 != 0) tensor.shape.push_back(4 * (1 + below(3)));
    std::uint64_t bits = dtype_bits(tensor.dtype);
    for (const std::uint64_t dimension : tensor.shape) bits *= dimension;
    for (std::uint64_t byte = 0; byte < bits / 8; ++byte) tensor.data += static_cast<char>(below(256));
    return tensor;
  }
  std::string name(std::size_t number) {
    std::string name;
    for (std::uint64_t bytes = below(20); bytes > 0; --bytes) name += static_cast<char>(1 + below(126));
    return name + "\u00e9" + std::to_string(number);
  }
  std::vector<std::size_t> order(std::size_t count) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    return order;
  }

 private:
  std::mt19937_64 random_;
};

/// Tensors of every dtype and shape under any names, in shards whose headers have any order and padding.
class RandomCheckpoint {
 public:
  explicit RandomCheckpoint(std::uint64_t seed) : chance_(seed) {
    std::vector<SafetensorsWriter> writers(1 + chance_.below(4));
    std::vector<std::size_t> counts(writers.size());
    for (std::size_t number = 0; number < writers.size() || chance_.below(30) > 0; ++number) {
      const std::size_t shard = number < writers.size() ? number : chance_.below(writers.size());
      const RandomTensor tensor = chance_.tensor();
      const std::string name = chance_.name(number);
      writers[shard].add(name, std::string(dtype_name(tensor.dtype)), tensor.shape, tensor.data);
      ++counts[shard];
      map_.emplace_back(name, "s-" + std::to_string(shard));
      total_bytes_ += tensor.data.size();
      tensors[name] = tensor;
    }
    for (std::size_t shard = 0; shard < writers.size(); ++shard) {
      writers[shard].set_header_order(chance_.order(counts[shard]));
      writers[shard].set_header_multiple(std::size_t{1} << chance_.below(13));
      if (chance_.below(2) > 0) writers[shard].add_metadata("k\"\\\n", "v");
      disk.add("m/s-" + std::to_string(shard), writers[shard].bytes());
    }
    disk.add("m/i.json", safetensors_index(map_, total_bytes_));
  }

  std::map<std::string, RandomTensor> tensors;
  MemoryDisk disk;

 private:
  Chance chance_;
  std::vector<std::pair<std::string, std::string>> map_;
  std::uint64_t total_bytes_ = 0;
};

TEST(Safetensors, ReadWhatWasWritten) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    RandomCheckpoint checkpoint(seed);
    auto opened = open_safetensors("m/i.json", checkpoint.disk.disk());
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    ASSERT_EQ(opened->tensors().size(), checkpoint.tensors.size());
    for (const auto& [name, wanted] : checkpoint.tensors) {
      const auto tensor = opened->tensors().find(name);
      ASSERT_TRUE(tensor.has_value()) << name;
      ASSERT_EQ(tensor->name, name);
      ASSERT_EQ(dtype_name(tensor->dtype), dtype_name(wanted.dtype));
      ASSERT_EQ(std::vector(tensor->shape.begin(), tensor->shape.end()), wanted.shape);
      ASSERT_EQ(content(*opened, *tensor, checkpoint.disk), wanted.data);
    }
  }
}

}  // namespace
}  // namespace rowtide::checkpoint
