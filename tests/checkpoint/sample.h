// A small, right GGUF file with every kind of value and a few tensors, for tests to spoil.
#pragma once

#include "checkpoint/gguf.h"
#include "checkpoint/gguf_writer.h"
#include "support/memory_disk.h"

namespace rowtide {

inline constexpr const char* kSamplePath = "dir/sample.gguf";

inline GgufWriter sample_gguf() {
  GgufWriter writer;
  writer.set("general.architecture", "sample");
  writer.set<std::uint8_t>("s.u8", 200);
  writer.set<std::int8_t>("s.i8", -100);
  writer.set<std::uint16_t>("s.u16", 60000);
  writer.set<std::int16_t>("s.i16", 30000);
  writer.set<std::uint32_t>("s.u32", 4000000000);
  writer.set<std::int32_t>("s.i32", -5);
  writer.set<float>("s.f32", 1.5f);
  writer.set("s.bool", true);
  writer.set<std::uint64_t>("s.u64", 0xfedcba9876543210);
  writer.set<std::int64_t>("s.i64", 7);
  writer.set<double>("s.f64", 2.5);
  writer.set("s.array", std::vector<std::int32_t>{1, 2, 3});
  writer.set("s.floats", std::vector<float>{1, 2, 3});
  writer.set("s.none", std::vector<std::uint32_t>{});
  writer.set("s.long_array", std::vector<std::uint32_t>(5000, 9));
  writer.set("s.long_text", std::string(5000, 'x'));
  writer.set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "", "ccc"});
  writer.add_tensor("first", 0, {3, 2}, 24);           // f32
  writer.add_tensor("second", 8, {64, 2, 1, 1}, 136);  // q8_0
  writer.add_tensor("third", 1, {5}, 10);              // f16
  return writer;
}

inline Result<checkpoint::Gguf> open_bytes(std::string bytes) {
  MemoryDisk disk(kSamplePath, std::move(bytes));
  return checkpoint::open_gguf(kSamplePath, disk.opener());
}

}  // namespace rowtide
