// Writes GGUF files for tests: right ones, and ones that are wrong in any way a test wants.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rowtide {

/// Bytes are std::string here: they concatenate and compare without ceremony.
template <class T>
std::string little_endian(T value) {
  std::string bytes(sizeof(T), '\0');
  std::memcpy(bytes.data(), &value, sizeof(T));
  return bytes;
}

inline std::string gguf_text(std::string_view text) {
  return little_endian<std::uint64_t>(text.size()) + std::string(text);
}

/// GGUF's number for a C++ type.
template <class T>
constexpr std::uint32_t gguf_type() {
  if constexpr (std::is_same_v<T, std::uint8_t>) return 0;
  if constexpr (std::is_same_v<T, std::int8_t>) return 1;
  if constexpr (std::is_same_v<T, std::uint16_t>) return 2;
  if constexpr (std::is_same_v<T, std::int16_t>) return 3;
  if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
  if constexpr (std::is_same_v<T, std::int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, std::string>) return 8;
  if constexpr (std::is_same_v<T, std::uint64_t>) return 10;
  if constexpr (std::is_same_v<T, std::int64_t>) return 11;
  if constexpr (std::is_same_v<T, double>) return 12;
}

template <class T>
std::string gguf_bytes(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return gguf_text(value);
  } else {
    return little_endian(value);
  }
}

/// Type and value of a scalar, as they stand behind a key.
template <class T>
std::string gguf_value(const T& value) {
  return little_endian(gguf_type<T>()) + gguf_bytes(value);
}

/// The same of an array; `count` lies about its size.
template <class T>
std::string gguf_array(const std::vector<T>& values, std::optional<std::uint64_t> count = {}) {
  std::string bytes = little_endian(9u) + little_endian(gguf_type<T>()) + little_endian(count.value_or(values.size()));
  for (const T& value : values) bytes += gguf_bytes(value);
  return bytes;
}

struct WrittenTensor {
  std::string name;
  std::uint32_t type = 0;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;              // room it takes in the data section
  std::optional<std::uint64_t> offset;  // into the data section; else behind the tensor before
};

/// Public and plain, so that a test can spoil any part of it before bytes() writes it down.
struct GgufWriter {
  struct Pair {
    std::string key;
    std::string value;  // from the type on
  };

  std::string magic = "GGUF";
  std::uint32_t version = 3;
  std::uint64_t alignment = 32;
  std::optional<std::uint64_t> tensor_count;
  std::optional<std::uint64_t> pair_count;
  std::vector<Pair> pairs;
  std::vector<WrittenTensor> tensors;

  /// Adds a pair, or gives a key another value.
  void set_raw(std::string_view key, std::string value) {
    const auto found = std::find_if(pairs.begin(), pairs.end(), [&](const Pair& pair) { return pair.key == key; });
    if (found != pairs.end()) {
      found->value = std::move(value);
    } else {
      pairs.push_back({std::string(key), std::move(value)});
    }
  }
  template <class T>
  void set(std::string_view key, const T& value) {
    set_raw(key, gguf_value(value));
  }
  void set(std::string_view key, const char* value) { set(key, std::string(value)); }
  template <class T>
  void set(std::string_view key, const std::vector<T>& values) {
    set_raw(key, gguf_array(values));
  }
  void erase(std::string_view key) {
    std::erase_if(pairs, [&](const Pair& pair) { return pair.key == key; });
  }
  void add_tensor(std::string name, std::uint32_t type, std::vector<std::uint64_t> shape, std::uint64_t bytes) {
    tensors.push_back({std::move(name), type, std::move(shape), bytes, {}});
  }
  WrittenTensor& tensor(std::string_view name) {
    return *std::find_if(tensors.begin(), tensors.end(), [&](const WrittenTensor& t) { return t.name == name; });
  }
  void erase_tensor(std::string_view name) {
    std::erase_if(tensors, [&](const WrittenTensor& t) { return t.name == name; });
  }

  std::uint64_t padded(std::uint64_t bytes) const { return (bytes + alignment - 1) / alignment * alignment; }

  /// Everything before the data section, padding included.
  std::string header() const {
    std::string out = magic + little_endian(version) + little_endian(tensor_count.value_or(tensors.size())) +
                      little_endian(pair_count.value_or(pairs.size()));
    for (const Pair& pair : pairs) out += gguf_text(pair.key) + pair.value;
    std::uint64_t next = 0;
    for (const WrittenTensor& t : tensors) {
      out += gguf_text(t.name) + little_endian(static_cast<std::uint32_t>(t.shape.size()));
      for (const std::uint64_t dimension : t.shape) out += little_endian(dimension);
      out += little_endian(t.type) + little_endian(t.offset.value_or(next));
      next += padded(t.bytes);
    }
    if (!tensors.empty()) out.resize(padded(out.size()), '\0');
    return out;
  }

  /// The whole file. Byte i of the data section is a mix of i, so no two places look alike.
  std::string bytes() const {
    std::string out = header();
    std::uint64_t data_bytes = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      data_bytes += i + 1 < tensors.size() ? padded(tensors[i].bytes) : tensors[i].bytes;
    }
    for (std::uint64_t i = 0; i < data_bytes; ++i) out += static_cast<char>((i * 0x9e3779b97f4a7c15) >> 56);
    return out;
  }
};

}  // namespace rowtide
