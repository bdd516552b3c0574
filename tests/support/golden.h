// The golden files, and the notations they use.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace rowtide::test {

inline nlohmann::json golden(const std::string& name) {
  std::ifstream file(std::string(ROWTIDE_SOURCE_DIR "/tests/golden/") + name);
  EXPECT_TRUE(file.good()) << "tests/golden/" << name << " cannot be opened";
  return nlohmann::json::parse(file);
}

/// A 64-bit number: written as decimal text where it may exceed 2^53, else as a number.
inline std::uint64_t golden_u64(const nlohmann::json& value) {
  return value.is_string() ? std::stoull(value.get<std::string>()) : value.get<std::uint64_t>();
}

inline std::vector<std::uint64_t> golden_u64s(const nlohmann::json& list) {
  std::vector<std::uint64_t> values;
  for (const auto& value : list) values.push_back(golden_u64(value));
  return values;
}

/// Hex of numbers of one width, most significant digit first, without separators.
template <class Word>
std::vector<Word> golden_words(const nlohmann::json& value) {
  const auto& hex = value.get_ref<const std::string&>();
  std::vector<Word> words;
  for (std::size_t at = 0; at < hex.size(); at += 2 * sizeof(Word)) {
    words.push_back(static_cast<Word>(std::stoull(hex.substr(at, 2 * sizeof(Word)), nullptr, 16)));
  }
  return words;
}

/// Hex of raw bytes.
inline std::vector<std::byte> golden_bytes(const nlohmann::json& value) {
  std::vector<std::byte> bytes;
  for (const std::uint8_t byte : golden_words<std::uint8_t>(value)) bytes.push_back(static_cast<std::byte>(byte));
  return bytes;
}

}  // namespace rowtide::test
