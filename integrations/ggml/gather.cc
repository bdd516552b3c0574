#include "ggml/gather.h"

#include <fmt/format.h>

#include <cstring>
#include <span>

namespace rowtide::ggml {
namespace {

void gather_in_memory(const ggml_tensor& table, std::span<const RowId> ids, float* out) {
  const auto values = static_cast<std::uint64_t>(table.ne[0]);
  const auto format = *row_format_of(table.type);
  const auto* rows = static_cast<const std::byte*>(table.data);
  for (std::size_t i = 0; i < ids.size(); ++i)
    decode_f32({format, values}, rows + ids[i] * table.nb[1], 1, out + i * values);
}

}  // namespace

Result<Gatherer::Bound*> Gatherer::bind(const ggml_tensor& table) {
  for (Bound& bound : bound_) {
    if (bound.data == table.data) return &bound;
  }
  auto serving = serving_of(table);
  if (!serving) return serving.error();
  Bound bound{table.data, *std::move(serving), nullptr};
  if (bound.serving->store) {
    auto reader = bound.serving->store->reader();
    if (!reader) return reader.error();
    bound.reader = *std::move(reader);
  }
  bound_.push_back(std::move(bound));
  return &bound_.back();
}

Result<void> Gatherer::gather(const ggml_tensor& node) {
  const ggml_tensor& table = *node.src[0];
  const ggml_tensor& rows = *node.src[1];
  auto bound = bind(table);
  if (!bound) return bound.error();

  const auto* asked = static_cast<const std::int32_t*>(rows.data);
  ids_.resize(static_cast<std::size_t>(rows.ne[0]));
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    if (asked[i] < 0 || asked[i] >= table.ne[1]) {
      return Error{ErrorCode::kOutOfRange,
                   fmt::format("table {}: row {} is not within its {} rows", table.name, asked[i], table.ne[1])};
    }
    ids_[i] = static_cast<RowId>(asked[i]);
  }
  auto* out = static_cast<float*>(node.data);
  if ((*bound)->reader)
    return (*bound)->reader->read(ids_, f32({out, ids_.size() * static_cast<std::size_t>(table.ne[0])}));
  gather_in_memory(table, ids_, out);
  (*bound)->serving->memory_rows += ids_.size();
  ++(*bound)->serving->memory_batches;
  return {};
}

}  // namespace rowtide::ggml
