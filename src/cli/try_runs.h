// The measurements of `rowtide try`: one prompt by stock and by Rowtide in turn, each in a process of its own that
// begins with a cold table and reads the prompt twice.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rowtide/table.h"

namespace rowtide::cli {

/// What is read when no text is given: English, about 2,000 tokens.
extern const char* const kTryPrompt;

struct TryOptions {
  std::string model;
  std::string prompt;
  std::uint32_t prompt_tokens = 0, generated_tokens = 0;  // at most; 0: as many as fit the time
  std::uint32_t repeat = 3;
  std::uint32_t threads = 1;
  std::uint32_t ubatch = 512;
  std::uint64_t memory_bytes = 0;  // 0: as the environment says
};

/// One prompt read and continued.
struct TryRun {
  std::string method;  // "stock" or "rowtide"
  std::string state;   // "cold" or "warm"
  std::uint64_t prompt_tokens = 0, generated_tokens = 0;
  double gather_seconds = 0;     // of the prompt
  double first_row_seconds = 0;  // cold: from opening the model to the end of the first gather
  double prompt_tok_s = 0, decode_tok_s = 0;
  std::uint64_t rows = 0;         // of the prompt
  std::uint64_t missed_rows = 0;  // of these, not in the store's memory; stock: page faults that went to the disk
  std::uint64_t reads = 0;        // of the table, by the store; stock: such page faults
  std::uint64_t store_bytes = 0;
  std::uint64_t page_cache_bytes = 0;  // of the table, afterwards
  std::uint64_t private_bytes = 0;     // of the process, beside pages of files
  double resident_share_before = 0;    // of the table, in the page cache, before a cold run
  std::string logits_sha256;

  std::uint64_t memory_bytes() const { return store_bytes + page_cache_bytes; }
};

/// How much of a prompt can be read so often in a minute.
struct TryPlan {
  std::uint32_t prompt_tokens = 0, generated_tokens = 0;
};

/// What was asked for; for what was not, reads a little first, to see how fast the model is on this machine. Throws a
/// Failure.
TryPlan plan_try(const TryOptions& options);

/// The measurements; repeats are interleaved and take turns in who goes first. One run of each
/// comes first and is not counted, because drives remember what they have read. Throws a Failure, also where the table
/// cannot be made cold.
std::vector<TryRun> run_try_plan(const TryOptions& options, const TryPlan& plan, const std::vector<Table>& tables);

}  // namespace rowtide::cli
