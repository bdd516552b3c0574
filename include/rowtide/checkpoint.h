// A checkpoint as published. Opening one reads validated headers only, writes nothing, touches no
// tensor data and takes milliseconds, whatever the table's size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "rowtide/result.h"
#include "rowtide/table.h"

namespace rowtide {

struct CheckpointFile {
  std::string path;
  std::uint64_t bytes = 0;
};

struct CheckpointOptions {
  /// Vocabulary compression, for the families that hash compressed token ids: a tokenizer.json, a map file (int32,
  /// little-endian, by token id), or "identity" for ids that are compressed already. Empty: the model's own
  /// tokenizer.json.
  std::string token_map;
};

class Checkpoint {
 public:
  /// Opens what `path` names:
  ///   a GGUF file             alone, or any part of a split set whose other parts lie beside it
  ///   a safetensors file      alone, with the config.json beside it
  ///   an index (*.json)       the safetensors shards that it names
  ///   a folder                the index or the safetensors file in it; of a hub's cache the complete snapshot
  /// Errors, each naming file, tensor or key, and value: kNotFound (also a missing part), kIo, kMalformed
  /// (the bytes), kUnsupported (another format, a table of a form or family that is not served), kMismatch (two
  /// sources of one fact disagree, such as stored and derived addressing constants). Memory stays below 256 MiB.
  static Result<Checkpoint> open(const std::string& path, const CheckpointOptions& options = {});

  const std::string& path() const { return path_; }
  const std::string& format() const { return format_; }          // "gguf", "safetensors"
  const std::string& family() const { return family_; }          // addressing family; empty without a table
  const std::string& model_type() const { return model_type_; }  // "qwen4exp", "llama", ...
  const std::vector<CheckpointFile>& files() const { return files_; }
  /// The conditional-memory tables. Empty for a model that has none: not an error.
  const std::vector<Table>& tables() const { return tables_; }

  std::uint64_t bytes_total() const;  // of all files
  std::uint64_t bytes_table() const;  // of all tables
  std::uint64_t bytes_rest() const { return bytes_total() - bytes_table(); }

 private:
  friend class CheckpointOpener;
  Checkpoint() = default;
  std::string path_, format_, family_, model_type_;
  std::vector<CheckpointFile> files_;
  std::vector<Table> tables_;
};

}  // namespace rowtide
