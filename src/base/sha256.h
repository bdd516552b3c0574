// SHA-256 (FIPS 180-4), for digests of results that are to be compared elsewhere. About 200 MB/s: a
// check's tool, not a data path's.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace rowtide {

class Sha256 {
 public:
  /// Appends bytes to the message; any split of a message gives the same digest.
  void update(std::span<const std::byte> bytes);

  /// The digest as 64 lower-case hex digits. Ends the message: call it once, last.
  std::string finish_hex();

 private:
  static constexpr std::size_t kBlockBytes = 64;

  void compress(const std::byte* block);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlockBytes> pending_{};  // the message's last total_bytes_ % 64 bytes
  std::uint64_t total_bytes_ = 0;
};

/// The digest of one run of bytes.
std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace rowtide
