// A file to measure by, which nobody sees and which is gone with the process.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "rowtide/result.h"

namespace rowtide::io {

class ScratchFile {
 public:
  using Progress = std::function<void(double share)>;
  /// Writes up to `bytes_most` random bytes into a nameless file in `folder`, past the page cache where that goes, for
  /// some three seconds at most; at least kBytesLeast. `progress` is told the share done, 0 to 1. kNotFound; kResource
  /// where less than twice kBytesLeast is free; kIo.
  static Result<ScratchFile> make(const std::string& folder, std::uint64_t bytes_most, const Progress& progress);

  /// Writes what `fill` gives, piece after piece in order, each of a multiple of 4 KiB but the last, into a file of
  /// `bytes` bytes. kNotFound; kResource where less is free; kIo.
  using Fill = std::function<void(std::span<std::byte> piece)>;
  static Result<ScratchFile> make_of(const std::string& folder, std::uint64_t bytes, const Fill& fill,
                                     const Progress& progress);

  static constexpr std::uint64_t kBytesLeast = std::uint64_t{64} << 20;

  ScratchFile(ScratchFile&& other) noexcept;
  ScratchFile& operator=(ScratchFile&&) = delete;
  ~ScratchFile();

  std::uint64_t bytes() const { return bytes_; }
  /// By which it can be opened again, by this process and those that it starts.
  std::string path() const;

 private:
  explicit ScratchFile(int descriptor) : descriptor_(descriptor) {}
  static Result<ScratchFile> open(const std::string& folder);
  Result<void> fill_randomly(const std::string& folder, std::uint64_t bytes_most, const Progress& progress);
  Result<void> fill(const std::string& folder, std::uint64_t bytes, const Fill& fill, const Progress& progress);
  Result<void> write(const std::string& folder, std::span<const std::byte> piece, std::uint64_t wanted);
  Result<void> sync(const std::string& folder) const;

  int descriptor_;
  std::uint64_t bytes_ = 0;
};

}  // namespace rowtide::io
