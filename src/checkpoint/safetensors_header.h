// The header of one safetensors file.
#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/safetensors.h"
#include "checkpoint/tensor_list.h"
#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

/// As in the format's reference reader.
inline constexpr std::uint64_t kSafetensorsHeaderBytesMax = 100'000'000;

/// Reads the header of `file` and adds its tensors to `list` in the header's order, as those of the file behind
/// `before` (whose tensors the list holds). Reads no other byte. Errors name file, tensor and value: kMalformed for a
/// header that lies about its length or is no JSON of the known form, tensors that do not fit their dtype and shape,
/// lie outside the file, overlap or leave a hole, and a name that occurs twice, here or in another file; kUnsupported
/// for a limit that is passed. After an error the list is void.
Result<SafetensorsFile> read_safetensors_header(const io::File& file, const std::vector<SafetensorsFile>& before,
                                                TensorList& list);

}  // namespace rowtide::checkpoint
