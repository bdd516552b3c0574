// A file of random bytes to measure a drive by, which nobody sees and which is gone with the process.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "rowtide/result.h"

namespace rowtide::io {

class ScratchFile {
 public:
  /// Writes up to `bytes_most` bytes into a nameless file in `folder`, past the page cache where that goes, for some
  /// three seconds at most; at least kBytesLeast. `progress` is told the share done, 0 to 1. kNotFound; kResource where
  /// less than twice kBytesLeast is free; kIo.
  static Result<ScratchFile> make(const std::string& folder, std::uint64_t bytes_most,
                                  const std::function<void(double share)>& progress);

  static constexpr std::uint64_t kBytesLeast = std::uint64_t{64} << 20;

  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();

  std::uint64_t bytes() const { return bytes_; }
  /// By which it can be opened again, in this process.
  std::string path() const;

 private:
  explicit ScratchFile(int descriptor) : descriptor_(descriptor) {}
  Result<void> fill(const std::string& folder, std::uint64_t bytes_most,
                    const std::function<void(double share)>& progress);

  int descriptor_;
  std::uint64_t bytes_ = 0;
};

}  // namespace rowtide::io
