// From what a model says of itself to the layers that keep something of each token or sequence.
#pragma once

#include <cstdint>
#include <optional>

#include "rowtide/result.h"
#include "sizing/model.h"
#include "sizing/model_keys.h"

namespace rowtide::sizing {

/// Fills layers, widths, heads, experts, attention and states of `model`. `draft_layers`: of its draft module, where
/// that is known better than by the keys. Known kinds: ordinary attention with or without windows, latent attention
/// (DeepSeek-V2 and later, LongCat), the compressed one of DeepSeek-V4 and V4.1, and Gated DeltaNet beside ordinary or
/// sparse attention (Qwen3-Next to Qwen3.8-Flash-Next). kUnsupported naming the key that is missing or that tells of
/// layers of another kind; kMalformed for numbers that no model has.
Result<void> add_layers(ModelKeys& keys, std::optional<std::uint32_t> draft_layers, Model& model);

// One for each way of keeping, to be called with the common facts in place; failures stay in `keys`.
void add_latent_attention(ModelKeys& keys, Model& model);
void add_compressed_attention(ModelKeys& keys, Model& model);
void add_ordinary_attention(ModelKeys& keys, Model& model);  // with Gated DeltaNet where the keys tell of it

/// The group again, for the layers of the draft module, if there is one.
void add_draft_attention(Attention group, Model& model);

}  // namespace rowtide::sizing
