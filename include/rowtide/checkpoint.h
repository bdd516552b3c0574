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

class Checkpoint {
 public:
  /// Opens a GGUF file (single, or any part of a split set whose other parts lie beside it).
  /// Errors, each naming file, tensor or key, and value: kNotFound (also a missing part), kIo, kMalformed
  /// (the bytes), kUnsupported (another format, a table of a row format that is not served),
  /// kMismatch (stored addressing constants are not the derived ones). Memory stays below 16 MiB.
  static Result<Checkpoint> open(const std::string& path);

  const std::string& path() const { return path_; }
  const std::string& format() const { return format_; }          // "gguf"
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
