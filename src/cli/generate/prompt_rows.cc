#include "cli/generate/prompt_rows.h"

#include <algorithm>

#include "cli/generate/report.h"
#include "ggml/plugin.h"

namespace rowtide::cli {
namespace {

// Half of what a store keeps of hints, so that none is dropped.
constexpr std::size_t kHintedRowsMax = std::size_t{1} << 19;

}  // namespace

PromptRows::PromptRows(const std::vector<Table>& tables, std::span<const llama_token> prompt, std::size_t ubatch)
    : prompt_(prompt), ubatch_(ubatch) {
  for (const Table& table : tables) {
    if (!table.addressing) continue;
    ahead_.push_back({&table, table.addressing->start(), 0, kHintedRowsMax / table.addressing->rows_per_token()});
  }
}

void PromptRows::advance(std::size_t read) {
  count(read);
  for (Ahead& ahead : ahead_) hint(ahead, read);
}

/// The next ubatch asks for its rows by itself, at once: what lies behind it is hinted.
void PromptRows::hint(Ahead& ahead, std::size_t read) const {
  const std::size_t first = std::max(ahead.next, read + ubatch_);
  const std::size_t end = std::min(prompt_.size(), read + ubatch_ + ahead.tokens_max);
  if (first >= end) return;
  const Addressing& addressing = *ahead.table->addressing;
  const std::vector<TokenId> tokens(prompt_.begin() + static_cast<std::ptrdiff_t>(ahead.next),
                                    prompt_.begin() + static_cast<std::ptrdiff_t>(end));
  std::vector<RowId> ids(tokens.size() * addressing.rows_per_token());
  addressing.rows(tokens, ahead.history, ids);
  ggml::prefetch(ahead.table->name, std::span(ids).subspan((first - ahead.next) * addressing.rows_per_token()));
  ahead.next = end;
}

void PromptRows::count(std::size_t read) {
  const Counters now = sum_of_counters(ggml::served_tables());
  if (read > 0) ubatches_.push_back({read - counted_tokens_, now.rows - counted_.rows, now.hits - counted_.hits});
  counted_ = now;
  counted_tokens_ = read;
}

}  // namespace rowtide::cli
