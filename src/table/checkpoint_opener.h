// Opens a checkpoint through any kind of disk: the system's for Checkpoint::open(), others for tests and fuzzers.
#pragma once

#include <string>

#include "checkpoint/model_config.h"
#include "io/folder.h"
#include "rowtide/checkpoint.h"

namespace rowtide {

class CheckpointOpener {
 public:
  explicit CheckpointOpener(io::Disk disk, CheckpointOptions options = {})
      : disk_(std::move(disk)), options_(std::move(options)) {}

  /// As Checkpoint::open().
  Result<Checkpoint> open(const std::string& path) const;

 private:
  Result<Checkpoint> open_gguf(const std::string& path) const;
  Result<Checkpoint> open_safetensors(const std::string& path) const;
  Result<checkpoint::ModelConfig> read_model_config(const std::string& path) const;

  io::Disk disk_;
  CheckpointOptions options_;
};

}  // namespace rowtide
