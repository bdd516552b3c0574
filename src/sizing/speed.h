// How fast a plan will be: estimates from memory traffic, arithmetic and sourced overheads, each with its assumptions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sizing/engine.h"
#include "sizing/request.h"

namespace rowtide::sizing {

/// Hit shares of the bundle cache, as measured on real text (docs/performance.md).
struct HitSharePoint {
  std::uint64_t memory_bytes = 0;
  double share = 0;  // mean over the corpora
  double least = 0, most = 0;
};
/// The curve for the model's tables, by the number of bundles that fit: 64 MiB to 16 GiB. Empty without a table.
std::vector<HitSharePoint> hit_share_curve(const Model& model);
/// On that curve; 0 for no memory.
double hit_share(const Model& model, std::uint64_t memory_bytes);
/// Share of a chunk's bundles that are not repeated within the chunk.
double unique_share(std::uint32_t chunk_tokens);

/// Time and traffic of the table, in one placement.
struct TableCost {
  Placement placement = Placement::kNvme;
  std::uint64_t bytes = 0;  // of the table in that tier, of each node
  double hit_share = 0;     // of lookups, from the cache (nvme); 1 where all rows are in memory
  double reads_per_s_decode = 0, reads_per_s_prefill = 0;  // drive reads; rows over the link elsewhere
  double limit_share_decode = 0, limit_share_prefill = 0;  // of what drive or link can do; above 1 it is the bottleneck
  double us_per_step = 0;                                  // that a decode step's rows take
  double us_per_step_added = 0;  // of it, not hidden behind the layers before the table's first use
  double ms_per_chunk = 0, ms_per_chunk_added = 0;
  bool is_hidden_decode = false, is_hidden_prefill = false;
  std::string bottleneck;  // "drive: 62 % of 100,000 reads/s at prefill"
  std::vector<std::string> assumptions;
};

/// One term of a step's or a chunk's time.
struct TimeTerm {
  std::string name;
  double ms = 0;
  std::string formula;
  std::string source;
};

struct Speed {
  double decode_tok_s = 0;        // one stream, all streams sharing the machine
  double decode_total_tok_s = 0;  // all streams together
  double decode_bound_tok_s = 0;  // one stream alone, without drafts: bandwidth over the weights read, an upper bound
  double bytes_per_token = 0;     // of that bound
  double prefill_tok_s = 0;
  double ttft_ms = 0;
  double request_tok_s = 0;     // output tokens over the time of the whole request, one stream
  double tokens_per_step = 1;   // with drafts
  std::vector<TimeTerm> step;   // of a decode step
  std::vector<TimeTerm> chunk;  // of a prefill chunk
  std::vector<std::string> assumptions;
};

/// `cache_bytes`: of the table's cache in memory, of each node.
TableCost table_cost(const Request& request, EngineId engine, Placement placement, std::uint64_t cache_bytes,
                     const Speed& without_table);
/// With the added time of `table` in it; null: as if rows cost nothing.
Speed estimate_speed(const Request& request, EngineId engine, const TableCost* table);

}  // namespace rowtide::sizing
