// A GGUF checkpoint: one file, or all parts of a split set.
//
// A set's parts are named NAME-00001-of-00005.gguf and lie side by side. Each holds the keys split.no (0-based),
// split.count and split.tensors.count (of the whole set); all other metadata is the first part's.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/gguf_header.h"
#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

struct GgufFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;  // where its data section starts
  std::uint64_t stamp = 0;         // of io::File
};

struct Gguf {
  std::vector<GgufFile> files;  // in the order of the set
  Metadata metadata;
  std::vector<Tensor> tensors;  // of all files, ascending by name, no name twice

  /// Null if there is none of that name.
  const Tensor* find_tensor(std::string_view name) const;
  const std::string& path_of(const Tensor& tensor) const { return files[tensor.file].path; }
};

/// Opens the file at `path`, and the other parts beside it if it is one of a set (any of them will do).
/// Reads headers only. Errors as in read_gguf_header(); also kNotFound for a missing part, kMalformed for a part of
/// another set and for a tensor that occurs twice. Memory: below 16 MiB for any input.
Result<Gguf> open_gguf(const std::string& path, const io::FileOpener& open);

}  // namespace rowtide::checkpoint
