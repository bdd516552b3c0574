// Addressing of LongCat's n-gram embedding: the last n token ids as a number in base V (the vocabulary's size), modulo
// one odd size for each head. Raw token ids; an end-of-sequence token hides itself and everything older from the tokens
// behind it. The model's embedders lie one after the other as one table.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "rowtide/addressing.h"
#include "rowtide/result.h"

namespace rowtide {

/// What a model's configuration says about its n-gram embedding.
struct LongcatConfig {
  std::int64_t vocab_size;
  TokenId eos_token_id;
  std::uint64_t size_ratio;       // ngram_vocab_size_ratio: head sizes are about this many vocabularies
  std::uint32_t ngram_size;       // emb_neighbor_num, the highest order N: orders are 2..N
  std::uint32_t heads_per_order;  // emb_split_num
};

/// What follows from a LongcatConfig. Heads, the model's embedders, lie order by order, as in a token's rows.
struct LongcatConstants {
  std::vector<std::uint64_t> head_sizes;           // rows of each embedder
  std::vector<std::uint64_t> head_offsets;         // running sum of head_sizes, from 0
  std::vector<std::vector<std::uint64_t>> powers;  // [head][d - 1] goes with the token d back: V^d mod the head's size

  bool operator==(const LongcatConstants&) const = default;
};

/// Derives the constants. kUsage, naming the value, for a configuration no model can have: vocab_size or size_ratio
/// below 1, ngram_size outside 2..8, heads_per_order outside 1..64, or sizes with which the sums of known token ids
/// would leave signed 64 bits.
Result<LongcatConstants> derive_longcat(const LongcatConfig& config);

/// The addressing for `config` with `constants`, which must be those that derive_longcat() gives (lengths asserted).
/// In a history the end-of-sequence token says that nothing came before. Token ids outside the vocabulary enter the
/// sums as they are, wrapping at signed 64 bits, floor modulo.
std::shared_ptr<const Addressing> make_longcat(const LongcatConfig& config, const LongcatConstants& constants);

/// The configuration of the released LongCat-Flash-Lite.
LongcatConfig released_longcat();

}  // namespace rowtide
