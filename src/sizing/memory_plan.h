// The pools of a plan: what each holds, and what is left for keys, values and states.
#pragma once

#include <cstdint>
#include <vector>

#include "sizing/plan.h"

namespace rowtide::sizing {

/// One layout: an engine, and a place for the table.
struct Layout {
  EngineId engine = EngineId::kLlamaCpp;
  std::optional<Placement> placement;  // nothing for a model without a table
};

struct MemoryPlan {
  std::vector<Pool> pools;  // the one that holds the weights first
  KvPlan kv;
  std::uint64_t cache_bytes = 0;    // of the table's cache, of each node
  std::uint64_t missing_bytes = 0;  // what is short, over all pools; 0: it fits
  std::string shortage;             // of one that does not fit: which term is too large for what is left
  std::vector<std::string> warnings;
  std::optional<std::pair<double, double>> memory_fraction_band;  // unified memory: in which the engine's share works
};

MemoryPlan plan_memory(const Request& request, const Layout& layout);

/// "21.6 GiB"
std::string gib(double bytes);

}  // namespace rowtide::sizing
