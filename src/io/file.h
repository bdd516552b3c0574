// A file as the parsers see it: a length, and bytes at offsets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::io {

class File {
 public:
  virtual ~File() = default;
  virtual const std::string& path() const = 0;
  virtual std::uint64_t bytes() const = 0;
  /// As file_stamp() gives it (io/file_stamp.h) when the file was opened; 0 for one that lies on no disk.
  virtual std::uint64_t stamp() const { return 0; }
  /// Fills `out` from `offset`, whole or not at all. kIo names path and offset; reading past the end
  /// (also of a file that shrank meanwhile) is kMalformed.
  virtual Result<void> read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

/// Opens a file of the disk for buffered reads without read-ahead. kNotFound, kIo; a directory or another thing that is
/// no regular file is kUnsupported.
Result<std::unique_ptr<File>> open_file(const std::string& path);

/// A file that lies in memory, for tests and fuzzers.
std::unique_ptr<File> memory_file(std::string path, std::vector<std::byte> content);

/// How a parser opens a file it finds named in another (the parts of a split set).
using FileOpener = std::function<Result<std::unique_ptr<File>>(const std::string& path)>;

}  // namespace rowtide::io
