// From tensors of a safetensors checkpoint to the extents of a table, each fact of a tensor checked.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "table/model_family.h"

namespace rowtide {

/// The error "FILE: tensor 'NAME': MESSAGE".
Error tensor_error(const ModelTensors& files, const checkpoint::SafetensorsTensor& tensor, ErrorCode code,
                   std::string_view message);

/// The tensor of that name; kMalformed, ending in `why` it must be there, if it is missing.
Result<checkpoint::SafetensorsTensor> require_tensor(const ModelTensors& files, std::string_view name,
                                                     std::string_view why);

/// What model classes put before the names of a language model's tensors. Of these the one under which there is a
/// tensor of one of `names`; nothing if there is none. kMalformed where there are several.
Result<std::optional<std::string_view>> find_prefix(const ModelTensors& files, std::span<const std::string> names);

/// Its rows and the bytes of each; kMalformed for another rank than 2, or no rows.
struct RowShape {
  std::uint64_t rows;
  std::uint64_t width;  // elements as stored
};
Result<RowShape> row_shape(const ModelTensors& files, const checkpoint::SafetensorsTensor& tensor);

/// Appends the tensor's rows to `component`. kMalformed unless it has `dtype` and rows of component.row_bytes bytes.
Result<void> append_rows(const ModelTensors& files, const checkpoint::SafetensorsTensor& tensor,
                         checkpoint::Dtype dtype, Component& component);

/// The rows appended so far.
std::uint64_t rows_of(const Component& component);

/// The number in a tensor of one element, F32 or BF16; kMalformed for another shape or type, and for a scale that is
/// zero or not finite.
Result<float> read_scale(const ModelTensors& files, const checkpoint::SafetensorsTensor& tensor);

/// The numbers in a tensor of `count` I64 elements.
Result<std::vector<std::uint64_t>> read_integers(const ModelTensors& files, const checkpoint::SafetensorsTensor& tensor,
                                                 std::size_t count);

}  // namespace rowtide
