#include "table/gemma_gguf.h"

#include <utility>

#include "address/unigram.h"
#include "base/error.h"
#include "base/log.h"

namespace rowtide {
namespace {

constexpr std::string_view kGemmaTensor = "per_layer_token_embd.weight";

}  // namespace

bool is_gemma_architecture(std::string_view architecture) {
  return architecture == "gemma3n" || architecture == "gemma4";
}

Result<std::vector<Table>> find_gemma_tables(const checkpoint::Gguf& gguf) {
  const checkpoint::Tensor* tensor = gguf.find_tensor(kGemmaTensor);
  if (tensor == nullptr) return std::vector<Table>();
  const auto& [width, rows, d2, d3] = tensor->shape;
  if (width == 0 || rows == 0 || d2 != 1 || d3 != 1) {
    return make_error(ErrorCode::kMalformed, "{}: tensor '{}': shape [{}, {}, {}, {}] is no table",
                      gguf.path_of(*tensor), kGemmaTensor, width, rows, d2, d3);
  }
  const auto format = row_format_named(tensor->type->name);
  if (!format) {
    log(LogLevel::kWarn, "{}: tensor '{}' is of type {}, which is not served", gguf.path_of(*tensor), kGemmaTensor,
        tensor->type->name);
    return std::vector<Table>();
  }
  auto addressing = make_unigram({static_cast<std::int64_t>(rows), {}, {}});  // rows of a tensor fit: it lies in a file
  if (!addressing) return addressing.error();
  Table table;
  table.name = tensor->name;
  table.rows = rows;
  table.row_values = width;
  table.row_bytes = tensor->bytes / rows;
  table.row_format = *format;
  const checkpoint::GgufFile& file = gguf.files[tensor->file];
  const Extent extent{file.path, tensor->offset, 0, rows, file.header_bytes, file.stamp};
  table.components = {{"values", table.row_bytes, {extent}}};
  table.addressing = *std::move(addressing);
  return std::vector<Table>{std::move(table)};
}

}  // namespace rowtide
