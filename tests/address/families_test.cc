// Properties that every family of addressing has, over random configurations and sequences.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "address/deepseek_engram.h"
#include "address/engram_demo.h"
#include "address/longcat.h"
#include "address/qwen_ple.h"
#include "address/unigram.h"

namespace rowtide {
namespace {

using Made = std::shared_ptr<const Addressing>;
using Tokens = std::vector<TokenId>;

/// A family's addressing, and the ids that mean something in it.
struct Model {
  Made addressing;
  std::int64_t vocab_size;
  Tokens special;
};

template <class T>
T in(T first, T last) {  // both included
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(first, static_cast<T>(last + 1)));
}

EngramConfig engram_config() {
  EngramConfig config{.compressed_vocab_size = in<std::int64_t>(1, 3000),
                      .layer_ids = {in(0U, 40U), in(41U, 60U)},
                      .base_per_order = {},
                      .heads_per_order = in(1U, 9U),
                      .pad_token_id = 0,
                      .seed = *rc::gen::arbitrary<std::uint32_t>(),
                      .image_token_id = std::nullopt};
  config.base_per_order.resize(in<std::size_t>(1, 7));
  for (std::uint64_t& base : config.base_per_order) base = in<std::uint64_t>(1, 500);
  config.pad_token_id = in<std::int64_t>(0, config.compressed_vocab_size - 1);
  config.image_token_id = in<std::int64_t>(0, config.compressed_vocab_size + 40);
  return config;
}

/// The identity, or a map whose ids beyond the first ones share compressed ids.
TokenMap token_map(const EngramConfig& config) {
  if (in(0, 1) == 0) return nullptr;
  std::vector<std::int32_t> map;
  for (std::int64_t id = 0; id < config.compressed_vocab_size + 50; ++id) {
    map.push_back(
        static_cast<std::int32_t>(id < config.compressed_vocab_size ? id : id * 7 % config.compressed_vocab_size));
  }
  return std::make_shared<const std::vector<std::int32_t>>(std::move(map));
}

QwenPleConfig qwen_config() {
  const auto vocab = in<std::int64_t>(1, 300'000);
  return {.vocab_size = vocab,
          .eos_token_id = in<std::int64_t>(0, vocab - 1),
          .image_token_id = std::nullopt,
          .seed = *rc::gen::arbitrary<std::uint64_t>(),
          .base = in<std::uint64_t>(1, 50'000),
          .ngram_size = in(2U, 8U),
          .heads_per_order = in(1U, 9U),
          .dense_index = in(0U, 2U)};
}

LongcatConfig longcat_config() {
  const auto vocab = in<std::int64_t>(1, 5000);
  return {.vocab_size = vocab,
          .eos_token_id = in<std::int64_t>(0, vocab - 1),
          .size_ratio = in<std::uint64_t>(1, 80),
          .ngram_size = in(2U, 8U),
          .heads_per_order = in(1U, 9U)};
}

Model any_model() {
  switch (in(0, 4)) {
    case 0: {
      const QwenPleConfig config = qwen_config();
      return {make_qwen_ple(config, *derive_qwen_ple(config)), config.vocab_size, {config.eos_token_id}};
    }
    case 1: {
      const EngramConfig config = engram_config();
      return {*make_deepseek_engram(config, derive_engram(config)->back(), token_map(config)),
              config.compressed_vocab_size,
              {-1, *config.image_token_id, config.pad_token_id, config.compressed_vocab_size + 50}};
    }
    case 2: {
      const EngramConfig config = engram_config();
      return {*make_engram_demo(config, derive_engram(config)->back(), token_map(config)),
              config.compressed_vocab_size,
              {-1, config.pad_token_id, config.compressed_vocab_size + 50}};
    }
    case 3: {
      const LongcatConfig config = longcat_config();
      return {make_longcat(config, *derive_longcat(config)), config.vocab_size, {config.eos_token_id, 0}};
    }
    default: {
      const auto vocab = in<std::int64_t>(1, 5000);
      return {*make_unigram({vocab, {}, {}}), vocab, {-1, vocab}};
    }
  }
}

/// Known ids, many special ones, and now and then an id from anywhere in 64 bits.
Tokens any_tokens(const Model& model) {
  return *rc::gen::container<Tokens>(rc::gen::weightedOneOf<TokenId>(
      {{6, rc::gen::resize(rc::kNominalSize, rc::gen::inRange<TokenId>(0, model.vocab_size))},
       {3, rc::gen::elementOf(model.special)},
       {1, rc::gen::arbitrary<TokenId>()}}));
}

std::vector<RowId> rows_of(const Addressing& addressing, std::span<const TokenId> tokens, History& history) {
  std::vector<RowId> ids(tokens.size() * addressing.rows_per_token());
  addressing.rows(tokens, history, ids);
  return ids;
}

RC_GTEST_PROP(Families, AnySplitGivesTheSameRowsAndHistory, ()) {
  const Model model = any_model();
  const Tokens tokens = any_tokens(model);
  History whole_history;
  const std::vector<RowId> whole = rows_of(*model.addressing, tokens, whole_history);

  History history;
  std::vector<RowId> ids;
  std::span<const TokenId> left = tokens;
  while (!left.empty()) {
    const std::size_t length = in<std::size_t>(0, std::min<std::size_t>(left.size(), 7));  // often empty
    const std::vector<RowId> chunk = rows_of(*model.addressing, left.first(length), history);
    ids.insert(ids.end(), chunk.begin(), chunk.end());
    left = left.subspan(length);
  }
  RC_ASSERT(ids == whole);
  RC_ASSERT(tokens.empty() || history == whole_history);
}

// What the C ABI counts on, whose histories always have history_tokens() ids.
RC_GTEST_PROP(Families, StartSaysThatNothingCameBefore, ()) {
  const Model model = any_model();
  const Tokens tokens = any_tokens(model);
  History none, start = model.addressing->start();
  RC_ASSERT(start.size() == model.addressing->history_tokens());
  RC_ASSERT(rows_of(*model.addressing, tokens, none) == rows_of(*model.addressing, tokens, start));
  RC_ASSERT(start.size() == model.addressing->history_tokens());
  const Tokens next = any_tokens(model);
  RC_ASSERT(rows_of(*model.addressing, next, none) == rows_of(*model.addressing, next, start));
}

RC_GTEST_PROP(Families, OnlyTheLastIdsOfALongHistoryCount, ()) {
  const Model model = any_model();
  const Tokens past = any_tokens(model), tokens = any_tokens(model);
  History longer = past;
  History shorter(past.end() - static_cast<std::ptrdiff_t>(std::min(past.size(), model.addressing->history_tokens())),
                  past.end());
  RC_ASSERT(rows_of(*model.addressing, tokens, longer) == rows_of(*model.addressing, tokens, shorter));
  RC_ASSERT(longer == shorter);
}

RC_GTEST_PROP(Families, EveryRowLiesInTheTable, ()) {
  const Model model = any_model();
  History history;
  for (const RowId id : rows_of(*model.addressing, any_tokens(model), history)) {
    RC_ASSERT(id < model.addressing->row_count());
  }
}

/// What the Engram specification says word for word: a position's token and those before it, each compressed or pad.
std::vector<std::uint64_t> deepseek_window(const EngramConfig& config, const TokenMap& map, const Tokens& tokens,
                                           std::size_t at) {
  const auto known = map ? static_cast<TokenId>(map->size()) : config.compressed_vocab_size;
  const auto compressed = [&](TokenId id) { return map ? (*map)[static_cast<std::size_t>(id)] : id; };
  std::vector<std::uint64_t> window;
  bool blocked = false;
  for (std::size_t back = 0; back < config.ngram_size(); ++back) {
    blocked = blocked || back > at;
    if (!blocked) {
      const TokenId token = tokens[at - back];
      blocked = token < 0 || token >= known || (map && token == config.image_token_id);
    }
    window.push_back(static_cast<std::uint64_t>(compressed(blocked ? config.pad_token_id : tokens[at - back])));
  }
  return window;
}

RC_GTEST_PROP(DeepseekEngram, FollowsTheDefinition, ()) {
  const EngramConfig config = engram_config();
  const TokenMap map = token_map(config);
  const auto constants = derive_engram(config);
  const auto made = make_deepseek_engram(config, constants->back(), map);
  const Tokens tokens = any_tokens({*made, config.compressed_vocab_size + 50, {-1, *config.image_token_id, -2}});
  std::vector<RowId> expected;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    const auto window = deepseek_window(config, map, tokens, at);
    std::uint64_t mix = window[0] * constants->back().multipliers[0];
    for (std::size_t back = 1; back < window.size(); ++back) {
      mix ^= window[back] * constants->back().multipliers[back];
      for (std::size_t head = 0; head < config.heads_per_order; ++head) {
        const std::size_t column = (back - 1) * config.heads_per_order + head;
        expected.push_back(mix % constants->back().head_sizes[column] + constants->back().head_offsets[column]);
      }
    }
  }
  History history;
  RC_ASSERT(rows_of(**made, tokens, history) == expected);
}

RC_GTEST_PROP(Longcat, FollowsTheDefinition, ()) {
  const LongcatConfig config = longcat_config();
  const auto constants = derive_longcat(config);
  const auto made = make_longcat(config, *constants);
  Tokens tokens = any_tokens({made, config.vocab_size, {config.eos_token_id}});
  std::erase_if(tokens, [&](TokenId id) { return id < 0 || id >= config.vocab_size; });
  std::vector<RowId> expected;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    for (std::size_t i = 0; i < constants->head_sizes.size(); ++i) {
      const std::uint64_t size = constants->head_sizes[i];
      std::uint64_t id = static_cast<std::uint64_t>(tokens[at]) % size, power = 1;
      for (std::size_t back = 1; back <= std::min(at, i / config.heads_per_order + 1); ++back) {
        if (tokens[at - back] == config.eos_token_id) break;
        power = power * static_cast<std::uint64_t>(config.vocab_size) % size;
        id = (id + static_cast<std::uint64_t>(tokens[at - back]) * power) % size;
      }
      expected.push_back(id + constants->head_offsets[i]);
    }
  }
  History history;
  RC_ASSERT(rows_of(*made, tokens, history) == expected);
}

RC_GTEST_PROP(EngramConstants, AreDistinctPrimesAtOrAboveTheirBases, ()) {
  const EngramConfig config = engram_config();
  const auto constants = derive_engram(config);
  std::set<std::uint64_t> sizes;
  for (const XorConstants& layer : *constants) {
    for (std::size_t i = 0; i < layer.head_sizes.size(); ++i) {
      RC_ASSERT(layer.head_sizes[i] >= config.base_per_order[i / config.heads_per_order]);
      RC_ASSERT(sizes.insert(layer.head_sizes[i]).second);
    }
    for (const std::uint64_t multiplier : layer.multipliers) {
      RC_ASSERT(multiplier % 2 == 1);
      RC_ASSERT(multiplier <= kMaxInt64 / static_cast<std::uint64_t>(config.compressed_vocab_size));
    }
  }
}

}  // namespace
}  // namespace rowtide
