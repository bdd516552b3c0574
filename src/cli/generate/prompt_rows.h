// The rows of a prompt: which they are is known before the first is asked for, so the store can bring those of the next
// ubatches while the current one is computed.
#pragma once

#include <llama.h>

#include <cstdint>
#include <span>
#include <vector>

#include "rowtide/store.h"
#include "rowtide/table.h"

namespace rowtide::cli {

/// What one ubatch asked the store for.
struct UbatchRows {
  std::size_t tokens = 0;
  std::uint64_t rows = 0;
  std::uint64_t hits = 0;  // of these, in memory when they were asked for
};

class PromptRows {
 public:
  /// Tables and prompt outlive it.
  PromptRows(const std::vector<Table>& tables, std::span<const llama_token> prompt, std::size_t ubatch);

  /// The first `read` tokens have been computed: hands the rows behind the next ubatch to the plug-in. To be called
  /// with 0 first and then after each ubatch.
  void advance(std::size_t read);

  const std::vector<UbatchRows>& ubatches() const { return ubatches_; }

 private:
  struct Ahead {
    const Table* table;
    History history;         // before the token `next`
    std::size_t next = 0;    // whose rows have not been looked at
    std::size_t tokens_max;  // to be hinted at one time
  };

  void hint(Ahead& ahead, std::size_t read) const;
  void count(std::size_t read);

  const std::span<const llama_token> prompt_;
  const std::size_t ubatch_;
  std::vector<Ahead> ahead_;
  std::vector<UbatchRows> ubatches_;
  std::size_t counted_tokens_ = 0;
  Counters counted_;
};

}  // namespace rowtide::cli
