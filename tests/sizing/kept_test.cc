// What tokens and sequences keep, against published figures.
#include <gmock/gmock.h>

#include <algorithm>

#include "sizing/anatomy.h"
#include "sizing/planned.h"

namespace rowtide::sizing {
namespace {

/// The sum of the terms whose name begins so.
double bytes_of(const std::vector<MemoryTerm>& terms, std::string_view begin) {
  double bytes = 0;
  for (const MemoryTerm& term : terms) bytes += term.name.starts_with(begin) ? term.bytes : 0;
  return bytes;
}

constexpr double kKib = 1024;
TEST(Kept, QwenKeysAndValues) {
  const Model model = known("Qwen3.8-Flash-Next");
  const double f16 = bytes_of(kv_terms(model, KvType::kF16, false), "keys and values");
  EXPECT_EQ(f16, 24 * kKib);
  EXPECT_EQ(f16 * 262'144, 6 * kGiB);
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kBf16, false), "keys and values"), f16);
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kFp8, false), "keys and values"), f16 / 2);
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kQ8_0, false), "keys and values"), f16 * 34 / 64);
  // The index keys are a term of their own, and the same whatever the type.
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kF16, false), "index keys"), 12 * 128 * 2);
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kFp8, false), "index keys"), 12 * 128 * 2);
}

/// 16.5 GB of 992,584 tokens are 16.6 kB a token: 12 KiB of keys and values, and what index keys and the draft module's
/// layer may take.
TEST(Kept, WhatBesideKeysAndValuesMayBeInAPublishedPool) {
  const Model model = known("Qwen3.8-Flash-Next");
  const std::vector<MemoryTerm> terms = kv_terms(model, KvType::kFp8, true);
  EXPECT_EQ(kv_bytes_per_token(model, KvType::kFp8, true), 13 * (1'024 + 256));
  EXPECT_NEAR(kv_bytes_per_token(model, KvType::kFp8, true), 16.5e9 / 992'584, 0.002 * 16'623);
  ASSERT_EQ(terms.size(), 4U);
  EXPECT_EQ(terms[0].bytes, 12 * kKib);
  EXPECT_EQ(terms[0].formula, "12 layers x 1024 values x 1 B");
  EXPECT_EQ(terms[2].bytes, 1 * kKib);  // the draft module's
}

TEST(Kept, QwenStates) {
  const Model model = known("Qwen3.8-Flash-Next");
  const double delta_f32 = 36.0 * 48 * 128 * 128 * 4;
  const std::vector<MemoryTerm> terms = state_terms(model, KvType::kF16, StateType::kF32, 0);
  EXPECT_EQ(bytes_of(terms, "Gated DeltaNet states"), delta_f32);
  EXPECT_EQ(bytes_of(terms, "Gated DeltaNet convolutions"), 36.0 * 3 * 10'240 * 2);
  EXPECT_EQ(bytes_of(terms, "n-gram module"), 184'320);
  const std::vector<MemoryTerm> drafted = state_terms(model, KvType::kF16, StateType::kBf16, 3);
  EXPECT_EQ(bytes_of(drafted, "Gated DeltaNet states"), 4 * delta_f32 / 2);
  EXPECT_EQ(bytes_of(drafted, "Gated DeltaNet convolutions"), 36.0 * (3 + 3) * 10'240 * 2);
  EXPECT_EQ(bytes_of(drafted, "n-gram module"), 184'320 + 3 * 20'480);
}

TEST(Kept, QwenOnSeveralRanks) {
  const Model model = known("Qwen3.8-Flash-Next");
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kF16, false, 2), "keys and values"), 12 * kKib);
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kF16, false, 4), "keys and values"), 12 * kKib);  // of 2 heads: copies
  EXPECT_EQ(bytes_of(kv_terms(model, KvType::kF16, false, 4), "index keys"), 3 * kKib);
  const std::vector<MemoryTerm> terms = state_terms(model, KvType::kF16, StateType::kF32, 0, 4);
  EXPECT_EQ(bytes_of(terms, "Gated DeltaNet states"), 36.0 * 48 * 128 * 128);
  EXPECT_EQ(bytes_of(terms, "n-gram module"), 184'320);
}

/// A latent for each layer that has its own, shared by those up to the next; one for two tokens in three of the four.
TEST(Kept, DeepseekCompressedCache) {
  const Model model = known("DeepSeek-V4.1-Flash");
  EXPECT_EQ(kv_bytes_per_token(model, KvType::kBf16, false), (3 * (512 + 128) / 2.0 + 512 + 128) * 2);
  EXPECT_EQ(kv_bytes_per_token(model, KvType::kBf16, true), kv_bytes_per_token(model, KvType::kBf16, false));
  EXPECT_EQ(kv_bytes_per_token(model, KvType::kBf16, false, 4), kv_bytes_per_token(model, KvType::kBf16, false));
  std::uint32_t readers = 0;
  for (const Attention& group : model.attention) {
    if (group.kind == Attention::Kind::kCompressed) readers += group.readers;
  }
  EXPECT_EQ(readers, 38U);
  EXPECT_EQ(state_bytes_per_sequence(model, KvType::kBf16, StateType::kF32, 0), 40.0 * 128 * 512 * 2);
  EXPECT_EQ(state_bytes_per_sequence(model, KvType::kBf16, StateType::kF32, 5), 43.0 * 128 * 512 * 2);
}

TEST(Kept, LatentsAndHeads) {
  EXPECT_EQ(kv_bytes_per_token(known("LongCat-Flash-Lite"), KvType::kBf16, false), 28 * 576 * 2);
  EXPECT_EQ(kv_bytes_per_token(known("Llama-3.1-8B"), KvType::kF16, false), 128 * kKib);
  EXPECT_EQ(kv_bytes_per_token(known("Llama-3.1-8B"), KvType::kF16, false, 8), 16 * kKib);
  EXPECT_EQ(kv_bytes_per_token(known("Qwen3-30B-A3B"), KvType::kF16, false), 96 * kKib);
  EXPECT_TRUE(state_terms(known("Llama-3.1-8B"), KvType::kF16, StateType::kF32, 3).empty());
}

}  // namespace
}  // namespace rowtide::sizing
