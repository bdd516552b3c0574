// Opens a checkpoint through any kind of file: the disk's for Checkpoint::open(), others for tests and fuzzers.
#pragma once

#include <string>

#include "io/file.h"
#include "rowtide/checkpoint.h"

namespace rowtide {

class CheckpointOpener {
 public:
  explicit CheckpointOpener(io::FileOpener open) : open_(std::move(open)) {}

  /// As Checkpoint::open().
  Result<Checkpoint> open(const std::string& path) const;

 private:
  io::FileOpener open_;
};

}  // namespace rowtide
