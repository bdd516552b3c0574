// The n-gram embedding of LongCat-Flash-Lite in safetensors form:
//   model.ngram_embeddings.embedders.I.weight   BF16 [head size I, row values], one for each head, order by order
// They are served as one table, one embedder after the other. Read before the first layer: its layer is 0.
// Source: the model's published code, arXiv 2601.21204.
#include <array>

#include "address/longcat.h"
#include "base/error.h"
#include "table/tensor_rows.h"

namespace rowtide {
namespace {

using checkpoint::Dtype;
using checkpoint::ModelConfig;

constexpr std::array<std::string_view, 3> kLongcatKnownAs = {"longcat_flash_ngram", "longcat_flash",
                                                             "LongcatFlashNgramForCausalLM"};
// Older configurations say "over-encoding".
constexpr std::array<std::string_view, 2> kLongcatToldBy = {"ngram_vocab_size_ratio", "oe_vocab_size_ratio"};
constexpr std::string_view kLongcatName = "ngram_embeddings";
constexpr std::string_view kLongcatPrefix = "model.";  // of the published checkpoint

/// The value under the first of two names that is there, which one of them must be.
template <class T>
Result<T> named(const ModelConfig& config, std::string_view name, std::string_view older_name) {
  auto value = config.integer<T>(config.has(name) || older_name.empty() ? name : older_name);
  if (!value) return value.error();
  if (*value) return **value;
  return config.error(ErrorCode::kMalformed, name, "and the n-gram embedding cannot be addressed without it");
}

Result<LongcatConfig> read_longcat_config(const ModelConfig& config) {
  auto vocab = named<std::int64_t>(config, "vocab_size", "");
  if (!vocab) return vocab.error();
  auto eos = named<std::int64_t>(config, "eos_token_id", "");
  if (!eos) return eos.error();
  auto ratio = named<std::uint64_t>(config, "ngram_vocab_size_ratio", "oe_vocab_size_ratio");
  if (!ratio) return ratio.error();
  auto ngram_size = named<std::uint32_t>(config, "emb_neighbor_num", "oe_neighbor_num");
  if (!ngram_size) return ngram_size.error();
  auto heads = named<std::uint32_t>(config, "emb_split_num", "oe_split_num");
  if (!heads) return heads.error();
  return LongcatConfig{*vocab, *eos, *ratio, *ngram_size, *heads};
}

struct Expected {
  AddressedTable addressed;
  LongcatConstants constants;
};

Result<Expected> expected_table(const ModelConfig& config) {
  auto longcat = read_longcat_config(config);
  if (!longcat) return longcat.error();
  auto constants = derive_longcat(*longcat);
  if (!constants) return make_error(ErrorCode::kMalformed, "{}: {}", config.path(), constants.error().message);
  auto addressing = make_longcat(*longcat, *constants);
  return Expected{{fmt::format("{}{}", kLongcatPrefix, kLongcatName), 0, std::move(addressing)}, *std::move(constants)};
}

Result<std::vector<AddressedTable>> addressed_longcat_tables(const ModelConfig& config,
                                                             const TokenMapSource& /*token_map*/) {
  auto expected = expected_table(config);
  if (!expected) return expected.error();
  return std::vector<AddressedTable>{std::move(expected->addressed)};
}

Result<std::vector<Table>> find_longcat_tables(const ModelTensors& files, const ModelConfig& config,
                                               const TokenMapSource& /*token_map*/) {
  auto expected = expected_table(config);
  if (!expected) return expected.error();
  const std::array<std::string, 1> names = {fmt::format("{}.embedders.0.weight", kLongcatName)};
  auto prefix = find_prefix(files, names);
  if (!prefix) return prefix.error();
  Table table;
  table.name = fmt::format("{}{}", prefix->value_or(kLongcatPrefix), kLongcatName);
  Component values{"values", 0, {}};
  const std::vector<std::uint64_t>& sizes = expected->constants.head_sizes;
  for (std::size_t head = 0; head < sizes.size(); ++head) {
    auto embedder = require_tensor(files, fmt::format("{}.embedders.{}.weight", table.name, head),
                                   fmt::format("config.json tells of {} embedders", sizes.size()));
    if (!embedder) return embedder.error();
    auto shape = row_shape(files, *embedder);
    if (!shape) return shape.error();
    if (head == 0) {
      table.row_values = shape->width;
      values.row_bytes = shape->width * 2;  // cannot overflow: the tensor lies in a file
    }
    if (auto added = append_rows(files, *embedder, Dtype::kBF16, values); !added) return added.error();
    if (shape->rows == sizes[head]) continue;
    return tensor_error(files, *embedder, ErrorCode::kMismatch,
                        fmt::format("has {} rows, but {} follow from config.json", shape->rows, sizes[head]));
  }
  table.rows = rows_of(values);
  table.row_bytes = values.row_bytes;
  table.row_format = RowFormat::kBf16;
  table.addressing = expected->addressed.addressing;
  table.bundle_rows = table.addressing->heads_per_order();
  table.components.push_back(std::move(values));
  return std::vector<Table>{std::move(table)};
}

}  // namespace

const ModelFamily kLongcatFamily = {"longcat", kLongcatKnownAs, kLongcatToldBy, addressed_longcat_tables,
                                    find_longcat_tables};

}  // namespace rowtide
