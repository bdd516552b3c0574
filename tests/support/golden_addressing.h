// The golden cases of addressing, in the form that all families share: the "cases" and "digests" of a configuration.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "address/splitmix64.h"
#include "base/sha256.h"
#include "rowtide/addressing.h"
#include "support/golden.h"

namespace rowtide::test {

using Rows = std::vector<std::vector<RowId>>;  // by position; the tables' ids one after the other

/// One entry of a golden file's "configs", and what is to be compared with it.
struct GoldenModel {
  nlohmann::json entry;
  std::vector<std::shared_ptr<const Addressing>> tables;
  std::vector<std::uint64_t> column_offsets;  // where the file's ids are local to a column: what ours add to them
  std::uint64_t vocab_size;
  TokenId special_id;  // what the digests put in now and then

  std::string name() const { return entry["name"]; }
};

/// Rows of `tokens` from all tables, which must agree on the history after them.
inline Rows rows_of(const GoldenModel& model, std::span<const TokenId> tokens, History& history) {
  Rows rows(tokens.size());
  History after = history;
  for (const auto& table : model.tables) {
    const std::size_t width = table->rows_per_token();
    std::vector<RowId> ids(tokens.size() * width);
    History carried = history;
    table->rows(tokens, carried, ids);
    for (std::size_t i = 0; i < ids.size(); ++i) {
      EXPECT_LT(ids[i], table->row_count());
      rows[i / width].push_back(ids[i] - (model.column_offsets.empty() ? 0 : model.column_offsets[i % width]));
    }
    if (table != model.tables.front()) {
      EXPECT_EQ(carried, after);
    }
    after = carried;
  }
  history = after;
  return rows;
}

/// Rows as the file lists them: by position, then for each layer a list, or all in one.
inline Rows golden_rows(const nlohmann::json& listed) {
  Rows rows;
  for (const auto& position : listed) {
    std::vector<RowId>& row = rows.emplace_back();
    for (const auto& item : position) {
      if (!item.is_array()) {
        row.push_back(item.get<RowId>());
        continue;
      }
      for (const auto& id : item) row.push_back(id.get<RowId>());
    }
  }
  return rows;
}

inline History history_before(const nlohmann::json& test_case) {
  return test_case.contains("history") ? test_case["history"].get<History>() : History{};
}

inline void check_whole(const GoldenModel& model, const nlohmann::json& test_case) {
  const auto tokens = test_case["tokens"].get<std::vector<TokenId>>();
  History history = history_before(test_case);
  EXPECT_EQ(rows_of(model, tokens, history), golden_rows(test_case["rows"]));
  if (test_case.contains("history_after")) {
    EXPECT_EQ(history, test_case["history_after"].get<History>());
  }
  if (test_case.contains("history")) return;
  History start = model.tables.front()->start();
  EXPECT_EQ(start.size(), model.tables.front()->history_tokens());
  EXPECT_EQ(rows_of(model, tokens, start), golden_rows(test_case["rows"])) << "from start()";
  EXPECT_EQ(start.size(), model.tables.front()->history_tokens());
}

inline void check_chunks(const GoldenModel& model, const nlohmann::json& test_case) {
  const auto tokens = test_case["tokens"].get<std::vector<TokenId>>();
  const auto lengths = test_case["chunk_lengths"].get<std::vector<std::size_t>>();
  History history = history_before(test_case);
  std::span<const TokenId> left = tokens;
  Rows rows;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Rows chunk = rows_of(model, left.first(lengths[i]), history);
    rows.insert(rows.end(), chunk.begin(), chunk.end());
    left = left.subspan(lengths[i]);
    EXPECT_EQ(history, test_case["history_after_each_chunk"][i].get<History>()) << "chunk " << i;
  }
  EXPECT_TRUE(left.empty());
  EXPECT_EQ(rows, golden_rows(test_case["rows"]));
}

/// Speculative decoding: what was hashed for tokens that are then rejected must leave no trace.
inline void check_steps(const GoldenModel& model, const nlohmann::json& test_case) {
  History history = history_before(test_case);
  for (const auto& step : test_case["steps"]) {
    const auto tokens = step["tokens"].get<std::vector<TokenId>>();
    History looked_ahead = history;
    EXPECT_EQ(rows_of(model, tokens, looked_ahead), golden_rows(step["rows"]));
    rows_of(model, std::span(tokens).first(step["accepted"].get<std::size_t>()), history);
    EXPECT_EQ(history, step["history_after"].get<History>());
  }
}

struct GoldenCounts {
  std::size_t cases = 0, chunked = 0, speculative = 0;
  bool operator==(const GoldenCounts&) const = default;
};

/// Checks every case; how many of which kind there were is for the test to know.
inline GoldenCounts check_cases(const std::vector<GoldenModel>& models) {
  GoldenCounts counts;
  for (const GoldenModel& model : models) {
    for (const auto& test_case : model.entry["cases"]) {
      SCOPED_TRACE(model.name() + ", " + test_case["name"].get<std::string>());
      ++counts.cases;
      if (test_case.contains("steps")) {
        check_steps(model, test_case);
        ++counts.speculative;
        continue;
      }
      check_whole(model, test_case);
      if (!test_case.contains("chunk_lengths")) continue;
      check_chunks(model, test_case);
      ++counts.chunked;
    }
  }
  return counts;
}

/// The rules that the files state in words, by the digest's name.
inline TokenId digest_token(const std::string& name, std::uint64_t value, const GoldenModel& model) {
  if (name.starts_with("with_") && (value >> 40) % 16 == 0) return model.special_id;
  if (name == "small_set") {
    return static_cast<TokenId>(value % 64 * (model.vocab_size / 64) + (value >> 32) % 2);
  }
  return static_cast<TokenId>(value % model.vocab_size);
}

inline std::vector<TokenId> digest_tokens(const nlohmann::json& digest, const GoldenModel& model) {
  std::vector<TokenId> tokens;
  const std::uint64_t seed = golden_u64(digest["seed"]);
  for (std::uint64_t i = 0; i < digest["n"].get<std::uint64_t>(); ++i) {
    tokens.push_back(digest_token(digest["name"], splitmix64(seed + i * kSplitmix64Gamma), model));
  }
  return tokens;
}

inline std::string digest_of(std::span<const TokenId> ids) { return sha256_hex(std::as_bytes(ids)); }

inline std::string digest_of(std::span<const std::vector<RowId>> rows) {
  Sha256 digest;
  for (const auto& row : rows) digest.update(std::as_bytes(std::span(row)));
  return digest.finish_hex();
}

inline void check_digest(const GoldenModel& model, const nlohmann::json& digest, std::span<const TokenId> tokens) {
  ASSERT_EQ(tokens.size(), 20'000U);
  History history;
  const Rows rows = rows_of(model, tokens, history);
  const std::span all(rows);
  EXPECT_EQ(digest_of(all.first(1000)), digest["rows_sha256_first_1000"].get<std::string>());
  EXPECT_EQ(digest_of(all), digest["rows_sha256"].get<std::string>());
  EXPECT_EQ(Rows{rows.front()}, golden_rows(nlohmann::json::array({digest["first_rows"]})));
  EXPECT_EQ(Rows{rows.back()}, golden_rows(nlohmann::json::array({digest["last_rows"]})));
}

/// Checks every digest but those named `except`; returns how many.
inline std::size_t check_digests(const std::vector<GoldenModel>& models, const std::string& except = "") {
  std::size_t digests = 0;
  for (const GoldenModel& model : models) {
    for (const auto& digest : model.entry["digests"]) {
      if (digest["name"] == except) continue;
      SCOPED_TRACE(model.name() + ", " + digest["name"].get<std::string>());
      ++digests;
      const std::vector<TokenId> tokens = digest_tokens(digest, model);
      EXPECT_EQ(digest_of(tokens), digest["tokens_sha256"].get<std::string>());
      check_digest(model, digest, tokens);
    }
  }
  return digests;
}

}  // namespace rowtide::test
