// What `generate` says when it is done.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cli/generate/generation.h"
#include "cli/generate/prompt_rows.h"
#include "cli/json_output.h"
#include "ggml/plugin.h"
#include "rowtide/store.h"

namespace rowtide::cli {

struct StoreReport {
  Counters counters;         // of all tables
  std::optional<Mode> mode;  // nothing where none is served from its file
};

struct GenerateReport {
  Generation generation;
  std::optional<StoreReport> store;                   // without it: nothing
  std::vector<UbatchRows> prompt_ubatches;            // empty without the store
  std::uint64_t private_bytes = 0;                    // of the process, in the end
  std::uint64_t table_bytes = 0;                      // of the model's tables, on disk
  std::optional<std::uint64_t> table_resident_bytes;  // of those, in this process; nothing where it cannot be told
};

Counters sum_of_counters(const std::vector<ggml::ServedTable>& tables);
StoreReport store_report(const std::vector<ggml::ServedTable>& tables);

Json to_json(const GenerateReport& report);

/// The short table for people, on standard error.
void print(const GenerateReport& report);

}  // namespace rowtide::cli
