#include "table/tensor_rows.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/printable.h"

namespace rowtide {

using checkpoint::Dtype;
using checkpoint::SafetensorsTensor;

Error tensor_error(const ModelTensors& files, const SafetensorsTensor& tensor, ErrorCode code,
                   std::string_view message) {
  return make_error(code, "{}: tensor '{}': {}", files.tensors.path_of(tensor), printable(tensor.name), message);
}

Result<SafetensorsTensor> require_tensor(const ModelTensors& files, std::string_view name, std::string_view why) {
  if (const auto tensor = files.tensors.tensors().find(name)) return *tensor;
  return make_error(ErrorCode::kMalformed, "{}: tensor '{}' is missing; {}", files.tensors.files().front().path,
                    printable(name), why);
}

Result<std::optional<std::string_view>> find_prefix(const ModelTensors& files, std::span<const std::string> names) {
  std::optional<std::string_view> found;
  for (const std::string_view prefix :
       {"", "model.", "model.language_model.", "language_model.", "language_model.model."}) {
    for (const std::string& name : names) {
      const auto tensor = files.tensors.tensors().find(fmt::format("{}{}", prefix, name));
      if (!tensor || found == prefix) continue;
      if (found) {
        return tensor_error(files, *tensor, ErrorCode::kMalformed,
                            fmt::format("is there a second time, after '{}'", *found));
      }
      found = prefix;
    }
  }
  return found;
}

Result<RowShape> row_shape(const ModelTensors& files, const SafetensorsTensor& tensor) {
  if (tensor.shape.size() == 2 && tensor.shape[0] > 0 && tensor.shape[1] > 0) {
    return RowShape{tensor.shape[0], tensor.shape[1]};
  }
  return tensor_error(files, tensor, ErrorCode::kMalformed,
                      fmt::format("shape [{}] is not [rows, values]", fmt::join(tensor.shape, ", ")));
}

std::uint64_t rows_of(const Component& component) {
  return component.extents.empty() ? 0 : component.extents.back().first_row + component.extents.back().rows;
}

Result<void> append_rows(const ModelTensors& files, const SafetensorsTensor& tensor, Dtype dtype,
                         Component& component) {
  if (tensor.dtype != dtype) {
    return tensor_error(files, tensor, ErrorCode::kMalformed,
                        fmt::format("is of type {}, where {} is expected", checkpoint::dtype_name(tensor.dtype),
                                    checkpoint::dtype_name(dtype)));
  }
  auto shape = row_shape(files, tensor);
  if (!shape) return shape.error();
  if (tensor.bytes / shape->rows != component.row_bytes) {  // bytes fit the shape: the parser has checked it
    return tensor_error(
        files, tensor, ErrorCode::kMalformed,
        fmt::format("has rows of {} bytes, where {} are expected", tensor.bytes / shape->rows, component.row_bytes));
  }
  const checkpoint::SafetensorsFile& file = files.tensors.files()[tensor.file];
  component.extents.push_back(
      {file.path, tensor.offset, rows_of(component), shape->rows, file.header_bytes, file.stamp});
  return {};
}

namespace {

Result<void> read_tensor(const ModelTensors& files, const SafetensorsTensor& tensor, std::span<std::byte> out) {
  auto file = files.open(files.tensors.path_of(tensor));
  if (!file) return file.error();
  return (*file)->read(tensor.offset, out);
}

std::uint64_t elements_of(const SafetensorsTensor& tensor) {
  std::uint64_t elements = 1;
  for (const std::uint64_t size : tensor.shape) elements *= size;  // cannot overflow: the parser has checked it
  return elements;
}

}  // namespace

Result<float> read_scale(const ModelTensors& files, const SafetensorsTensor& tensor) {
  const bool is_f32 = tensor.dtype == Dtype::kF32;
  if ((!is_f32 && tensor.dtype != Dtype::kBF16) || elements_of(tensor) != 1) {
    return tensor_error(files, tensor, ErrorCode::kMalformed,
                        fmt::format("{} of shape [{}] is no scale; one F32 or BF16 number is",
                                    checkpoint::dtype_name(tensor.dtype), fmt::join(tensor.shape, ", ")));
  }
  std::array<std::byte, sizeof(float)> bytes{};
  const std::size_t width = is_f32 ? sizeof(float) : sizeof(std::uint16_t);
  // A bfloat16 number is the upper half of the binary32 number that it stands for.
  if (auto read = read_tensor(files, tensor, std::span(bytes).last(width)); !read) return read.error();
  const auto scale = std::bit_cast<float>(bytes);
  if (std::isfinite(scale) && scale != 0) return scale;
  return tensor_error(files, tensor, ErrorCode::kMalformed,
                      fmt::format("{} is no scale: all rows would be zero or not finite", scale));
}

Result<std::vector<std::uint64_t>> read_integers(const ModelTensors& files, const SafetensorsTensor& tensor,
                                                 std::size_t count) {
  if (tensor.dtype != Dtype::kI64 || elements_of(tensor) != count) {
    return tensor_error(files, tensor, ErrorCode::kMismatch,
                        fmt::format("is {} of shape [{}], the configuration needs {} I64 numbers",
                                    checkpoint::dtype_name(tensor.dtype), fmt::join(tensor.shape, ", "), count));
  }
  std::vector<std::uint64_t> numbers(count);
  if (auto read = read_tensor(files, tensor, std::as_writable_bytes(std::span(numbers))); !read) return read.error();
  return numbers;
}

}  // namespace rowtide
