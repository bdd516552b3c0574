// Hundreds of thousands of tensors in little memory: about 90 bytes, the name and the shape of each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/dtype.h"
#include "checkpoint/name_table.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

/// A tensor of a safetensors file, and where its bytes lie. A view into a TensorList.
struct SafetensorsTensor {
  std::string_view name;
  Dtype dtype = Dtype::kUnknown;
  std::span<const std::uint64_t> shape;  // row-major, outermost first; empty for a single element
  std::uint32_t file = 0;                // index into the checkpoint's files
  std::uint64_t offset = 0;              // from the start of the file
  std::uint64_t bytes = 0;               // fits dtype and shape, unless the dtype is unknown
};

class TensorList {
 public:
  std::size_t size() const { return entries_.size(); }
  bool empty() const { return entries_.empty(); }
  SafetensorsTensor operator[](std::size_t index) const;
  /// The tensor of that name; nothing if there is none. One look, whatever the size.
  std::optional<SafetensorsTensor> find(std::string_view name) const;

  /// At the end; the views may be of anything. If the name is there, nothing changes and its tensor's index comes back.
  /// kUnsupported if a limit below is passed; the message names limit and tensor, but no file.
  Result<std::optional<std::uint32_t>> add(const SafetensorsTensor& tensor);

  static constexpr std::size_t kFilesMax = 10'000;
  static constexpr std::size_t kTensorsMax = 900'000;
  static constexpr std::size_t kNameBytesMax = std::size_t{64} << 20;  // of all names
  static constexpr std::size_t kDimensionsMax = 2'000'000;             // of all shapes
  static constexpr std::size_t kRankMax = 255;                         // of one

 private:
  struct Entry {
    const char* name;
    std::uint64_t offset;
    std::uint64_t bytes;
    std::uint32_t name_bytes;
    std::uint32_t shape_start;
    std::uint16_t file;
    std::uint8_t rank;
    Dtype dtype;
  };

  const char* keep(std::string_view name);

  std::vector<Entry> entries_;
  NameTable by_name_;
  std::vector<std::uint64_t> dimensions_;
  std::vector<std::unique_ptr<char[]>> blocks_;  // of names; they never move
  std::size_t block_bytes_ = 0;
  std::size_t block_used_ = 0;
  std::size_t name_bytes_ = 0;
};

}  // namespace rowtide::checkpoint
