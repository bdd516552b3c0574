// The families of models whose tables are known: how a config.json tells of them, and which tensors hold them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "address/token_map.h"
#include "checkpoint/model_config.h"
#include "checkpoint/safetensors.h"
#include "rowtide/addressing.h"
#include "rowtide/table.h"

namespace rowtide {

/// A table that a config.json tells of.
struct AddressedTable {
  std::string name;  // the tensor's, less what tells its parts apart
  std::uint32_t layer = 0;
  std::shared_ptr<const Addressing> addressing;  // null where the family needs a token map and the model has none
};

/// Gives the vocabulary compression of the model at hand, to a family that has one; nothing where the model has none.
using TokenMapSource = std::function<Result<std::optional<TokenMap>>()>;

/// A model in safetensors form, and what reads the numbers in it.
struct ModelTensors {
  const checkpoint::Safetensors& tensors;
  const io::FileOpener& open;
};

/// Errors name file, key or tensor, and value: kMalformed (what no model can have), kMismatch (two sources of one fact
/// disagree), kUnsupported (a form that is not served), kNotFound (a part that is missing), and those of the token map.
struct ModelFamily {
  std::string_view name;                       // of its addressing
  std::span<const std::string_view> known_as;  // model types and architectures
  std::span<const std::string_view> told_by;   // config keys: any that is no 0 and no empty list tells of a table
  Result<std::vector<AddressedTable>> (*addressed_tables)(const checkpoint::ModelConfig& config,
                                                          const TokenMapSource& token_map);
  Result<std::vector<Table>> (*find_tables)(const ModelTensors& files, const checkpoint::ModelConfig& config,
                                            const TokenMapSource& token_map);
};

extern const ModelFamily kQwenFamily;      // Qwen3.8: one table a layer that ple_layer_ids names
extern const ModelFamily kDeepseekFamily;  // DeepSeek-V4.1: one a layer of engram_layer_ids
extern const ModelFamily kLongcatFamily;   // LongCat-Flash-Lite: its embedders, one after the other, as one table
extern const ModelFamily kGemmaFamily;     // Gemma 3n and 4: the per-layer embeddings, a row for each token id

/// The family that `config` tells a table of; null if it tells of none. kUnsupported for a model that has a known
/// family's keys but none of its names: the message names the nearest that is known.
Result<const ModelFamily*> family_of(const checkpoint::ModelConfig& config);

/// The keys any of which tells of a table, for messages: "ple_layer_ids, engram_layer_ids, ...".
std::string telling_keys();

}  // namespace rowtide
