// One GGUF file's header: format versions 2 and 3, little-endian.
//
//   "GGUF", u32 version, u64 tensor count, u64 pair count
//   pairs:    text key, u32 value type, value           (text: u64 length, bytes)
//             an array's value: u32 element type, u64 count, elements
//   tensors:  text name, u32 dimensions, u64 each, u32 ggml type, u64 offset into the data section
//   padding to general.alignment (default 32), then the data section
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/ggml_type.h"
#include "checkpoint/metadata.h"
#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

// Limits that no real file comes near; they keep the memory for any input below 16 MiB.
inline constexpr std::uint64_t kMaxPairs = 8'192;
inline constexpr std::uint64_t kMaxTensors = 16'384;       // of a whole set
inline constexpr std::uint64_t kMaxKeyBytes = 65'535;      // the format's own
inline constexpr std::uint64_t kMaxTensorNameBytes = 64;   // the format's own
inline constexpr std::uint64_t kMaxKeptTextBytes = 1'024;  // longer values are passed over
inline constexpr std::uint64_t kMaxKeptArraySize = 1'024;  // longer arrays are passed over
inline constexpr std::uint64_t kMaxKeptBytes = 2'097'152;  // all keys, texts and numbers together

struct Tensor {
  std::string name;
  const GgmlType* type = nullptr;
  std::array<std::uint64_t, 4> shape{1, 1, 1, 1};  // fastest first; a row has shape[0] values
  std::uint32_t file = 0;                          // index into the files of its set
  std::uint64_t offset = 0;                        // from the start of the file
  std::uint64_t bytes = 0;
};

struct GgufHeader {
  Metadata metadata;
  std::vector<Tensor> tensors;     // as they stand in the file; inside it, aligned, without overlap
  std::uint64_t header_bytes = 0;  // where the data section starts
};

/// Reads and checks everything before the data section, and nothing of it. kIo from the file; kUnsupported
/// for versions, byte orders, tensor types and sizes that are not served; kMalformed for the rest.
Result<GgufHeader> read_gguf_header(const io::File& file);

}  // namespace rowtide::checkpoint
