// A checkpoint in safetensors files: one file, or shards with an index, wherever they lie in a folder or in the cache
// of a hub's client.
//
// A file is the u64 length of a JSON object, that object, and the data section:
//   {"NAME": {"dtype": "BF16", "shape": [2, 3], "data_offsets": [0, 12]}, ..., "__metadata__": {"KEY": "VALUE", ...}}
// Offsets count from the start of the data section, which the tensors cover without a hole and without overlap.
// An index is {"metadata": {"total_size": BYTES}, "weight_map": {"NAME": "FILE", ...}}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/tensor_list.h"
#include "io/folder.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

struct SafetensorsFile {
  std::string path;
  std::uint64_t bytes = 0;
  std::uint64_t header_bytes = 0;  // where its data section starts
  std::uint64_t stamp = 0;         // of io::File
};

/// Tensors are told of by views that live as long as this does, and stay where it is moved to.
class Safetensors {
 public:
  const std::vector<SafetensorsFile>& files() const { return files_; }  // ascending by name
  /// Of all files, in their order and that of their headers; no name twice.
  const TensorList& tensors() const { return tensors_; }
  const std::string& path_of(const SafetensorsTensor& tensor) const { return files_[tensor.file].path; }

  /// The config.json beside the files; empty if there is none.
  const std::string& config_path() const { return config_path_; }
  /// Of a hub's cache that holds several snapshots, or some that are incomplete: one sentence on which is open, why,
  /// and what the others lack. Empty where there was nothing to choose.
  const std::string& choice() const { return choice_; }

 private:
  friend class SafetensorsOpener;
  Safetensors() = default;

  std::vector<SafetensorsFile> files_;
  TensorList tensors_;
  std::string config_path_;
  std::string choice_;
};

/// Opens what `path` names:
///   an index, a file *.json            the shards it names, beside it
///   any other file                     that safetensors file alone
///   a folder                           its model.safetensors, else model.safetensors.index.json, else its only
///                                      index, else its only *.safetensors file; names that begin with a dot are
///                                      passed over
///   a repository's folder in a hub's cache (it holds snapshots/, and neither index nor safetensors file itself)
///                                      one complete snapshot, in which neither config.json nor a file of its index
///                                      is missing: the one that refs/main names if it is complete, else the newest
///                                      that is; where none is, the first in that order that lacks only config.json
/// Reads headers, index and refs only. Errors name file, tensor or key, and value: kNotFound (also a shard that is
/// missing and a folder that holds no checkpoint), kIo, kMalformed (the bytes), kMismatch (index and shards disagree),
/// kUnsupported (a limit is passed). Memory: below 256 MiB for any input.
Result<Safetensors> open_safetensors(const std::string& path, const io::Disk& disk);

}  // namespace rowtide::checkpoint
