// What fits where: every byte of a plan, where the table goes and why, and how fast it will be.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sizing/recipe.h"
#include "sizing/request.h"
#include "sizing/speed.h"

namespace rowtide::sizing {

struct PoolItem {
  std::string name;  // "routed experts"
  std::uint64_t bytes = 0;
  std::string formula;  // "63.4 GB / 4 ranks"
  std::string source;   // "checkpoint headers", "engine data: ...", "asked for"
};

/// One memory that things compete for, of the fullest device or node.
struct Pool {
  std::string name;  // "unified memory", "device memory", "host memory", "disk"
  std::string each;  // "of each device", "of each node"
  std::uint64_t capacity_bytes = 0;
  std::string capacity_source;
  std::vector<PoolItem> items;

  std::uint64_t used_bytes() const;
  std::uint64_t free_bytes() const;     // 0 if more is used than there is
  std::uint64_t missing_bytes() const;  // by which it is too small
};

/// One placement that was looked at.
struct Candidate {
  Placement placement = Placement::kNvme;
  bool fits = false;
  bool runs = false;
  std::uint64_t missing_bytes = 0;
  std::string reason;  // why it is out, or what speaks for it
  TableCost cost;
};

struct KvPlan {
  double bytes_per_token = 0;  // of each device
  std::vector<MemoryTerm> terms;
  std::uint64_t asked_bytes = 0;  // for context x concurrency, or what the memory fraction would give
  std::uint64_t bytes =
      0;  // that it gets, of each device: what it needs, or what a memory fraction gives, less what is cut
  std::uint64_t tokens = 0;            // that fit in all that is left, over the sequences of a replica
  std::uint32_t concurrency_most = 0;  // sequences of the full context that fit, states included
};

/// One line of a search or comparison.
struct Searched {
  std::string device;
  std::uint32_t devices = 1, nodes = 1, tp = 1, ep = 1, dp = 1;
  std::optional<Placement> placement;  // nothing without a table
  bool fits = false;                   // as in a Plan
  bool runs = false;
  std::uint64_t missing_bytes = 0;
  std::uint64_t kv_tokens = 0;
  double decode_tok_s = 0, decode_total_tok_s = 0, ttft_ms = 0;
  std::optional<double> price_per_million_tokens;
  std::string verdict;
};

struct Check {
  std::string what;  // to verify on the real machine
  std::string command;
  std::string expect;
};

struct Plan {
  Request request;
  EngineId engine = EngineId::kLlamaCpp;
  bool fits = false;                // in memory and on the drive
  bool runs = false;                // and the engine can run it so
  std::string verdict;              // one or two sentences: whether, where the table goes, what is left, what to change
  std::uint64_t missing_bytes = 0;  // 0 if it fits
  std::vector<Pool> pools;
  std::optional<Placement> placement;  // nothing without a table
  std::string placement_reason;
  std::string next_bottleneck;
  std::vector<Candidate> candidates;
  TableCost table;
  std::uint64_t cache_bytes = 0;
  KvPlan kv;
  std::optional<std::pair<double, double>> memory_fraction_band;  // in which it works, if narrow or asked for
  Speed speed;
  std::vector<Recipe> recipes;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;
  std::optional<double> price_per_million_tokens;
};

/// Never fails on a request that resolve() has let through: what does not fit is a plan that says so.
Plan make_plan(const Request& request);

/// The smallest numbers of devices, and the smallest tp and ep, that fit with the table on and off the device; the
/// request's own devices are the most. First the one to take.
std::vector<Searched> search(const Request& request);
Searched summary_of(const Plan& plan);

/// What to verify on the machine once it is there.
std::vector<Check> checklist(const Plan& plan);

}  // namespace rowtide::sizing
