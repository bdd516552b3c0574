// Writes GGUF v3 files for the benchmarks: keys and tensor descriptions first, then each tensor's bytes from a
// function, by all cores, so that a table of any size takes as long as the disk needs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::bench {

/// ggml's type numbers.
enum class GgmlType : std::uint32_t { kF32 = 0, kQ8_0 = 8, kIq4Nl = 20 };

struct Tensor {
  std::string name;
  GgmlType type;
  std::vector<std::uint64_t> dims;  // fastest first
  /// Content comes in units of `unit_bytes`; `fill` writes units [first, first + count) to `out`. Called by several
  /// threads at once.
  std::size_t unit_bytes;
  std::uint64_t units;
  std::function<void(std::uint64_t first, std::uint64_t count, std::byte* out)> fill;

  std::uint64_t bytes() const { return units * unit_bytes; }
};

class GgufWriter {
 public:
  void key(std::string_view name, std::string_view value);
  void key(std::string_view name, std::uint32_t value);
  void key(std::string_view name, float value);
  void key(std::string_view name, const std::vector<std::uint32_t>& values);
  void key(std::string_view name, const std::vector<std::int32_t>& values);
  void key(std::string_view name, const std::vector<std::uint64_t>& values);
  void key(std::string_view name, const std::vector<bool>& values);
  /// Takes over every key of another GGUF file whose name starts with `prefix`.
  Result<void> keys_of(const std::string& path, std::string_view prefix);

  void tensor(Tensor tensor) { tensors_.push_back(std::move(tensor)); }

  /// Writes `path` under a temporary name beside it, with a progress bar on standard error, and renames it when all
  /// of it is on disk. kResource, naming the missing amount, where the disk has not the room.
  Result<void> write(const std::string& path) const;

 private:
  template <class T>
  void raw(T value) {
    keys_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value);
  void begin_key(std::string_view name, std::uint32_t type);
  template <class T>
  void array(std::string_view name, std::uint32_t type, const std::vector<T>& values);
  std::string header(std::vector<std::uint64_t>& offsets) const;

  std::string keys_;
  std::uint64_t key_count_ = 0;
  std::vector<Tensor> tensors_;
};

}  // namespace rowtide::bench
