#include "sizing/model.h"

#include <algorithm>

namespace rowtide::sizing {

std::string_view part_name(Part part) {
  switch (part) {
    case Part::kDense: return "dense";
    case Part::kSharedExpert: return "shared experts";
    case Part::kRoutedExpert: return "routed experts";
    case Part::kEmbedding: return "embeddings";
    case Part::kHead: return "output head";
    case Part::kDraftDense: return "draft module";
    case Part::kDraftExpert: return "draft experts";
    case Part::kVision: return "vision";
    case Part::kTable: return "conditional-memory table";
  }
  return "";
}

std::string_view kv_type_name(KvType type) {
  switch (type) {
    case KvType::kF16: return "f16";
    case KvType::kBf16: return "bf16";
    case KvType::kFp8: return "fp8";
    case KvType::kQ8_0: return "q8_0";
  }
  return "";
}

std::string_view state_type_name(StateType type) { return type == StateType::kF32 ? "f32" : "bf16"; }

std::uint64_t Model::bytes_total() const {
  std::uint64_t total = 0;
  for (const PartSize& size : parts) total += size.bytes;
  return total;
}

std::uint32_t Model::table_reads_per_token() const {
  std::uint32_t reads = 0;
  for (const TableShape& table : tables) reads += table.reads_per_token();
  return reads;
}

std::uint32_t Model::table_rows_per_token() const {
  std::uint32_t rows = 0;
  for (const TableShape& table : tables) rows += table.rows_per_token;
  return rows;
}

std::uint64_t Model::table_bytes_per_token() const {
  std::uint64_t bytes = 0;
  for (const TableShape& table : tables) bytes += table.bytes_per_token();
  return bytes;
}

std::uint32_t Model::first_table_layer() const {
  std::uint32_t first = layers;
  for (const TableShape& table : tables) first = std::min(first, table.layer);
  return first;
}

double Model::active_parameters() const {
  const double routed =
      experts == 0 ? 0 : static_cast<double>(part(Part::kRoutedExpert).parameters) * experts_per_token / experts;
  return static_cast<double>(part(Part::kDense).parameters + part(Part::kSharedExpert).parameters +
                             part(Part::kHead).parameters) +
         routed;
}

}  // namespace rowtide::sizing
