// The index of a sharded checkpoint: which tensor lies in which file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/name_table.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_list.h"
#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

class SafetensorsIndex {
 public:
  /// Errors name file, key and value: kMalformed for what is no index, kUnsupported for a limit that is passed. Memory:
  /// below 64 MiB.
  static Result<SafetensorsIndex> read(const io::File& file);

  const std::string& path() const { return path_; }
  /// Names of files beside the index (plain names, no path), ascending.
  const std::vector<std::string>& shards() const { return shards_; }
  std::size_t tensors() const { return shard_by_name_.size(); }

  /// Whether the tensors of all shards, `files` in the order of shards(), are those the index tells of: each that it
  /// names is in the file it names, and together they have the size it tells. kMismatch names what is not so. Tensors
  /// that the index does not name may be there. `index` is the file that was read, for a second look on the way to an
  /// error.
  Result<void> check(const TensorList& tensors, const std::vector<SafetensorsFile>& files, const io::File& index) const;

 private:
  class Visitor;
  class MissingVisitor;
  SafetensorsIndex() = default;
  void sort_shards();

  std::string path_;
  std::vector<std::string> shards_;
  NameTable shard_by_name_;           // as they were numbered while reading
  std::vector<std::uint32_t> ranks_;  // by that number: where in shards_
};

}  // namespace rowtide::checkpoint
