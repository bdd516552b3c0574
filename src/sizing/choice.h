// What a request can be made of: an engine and a place for the table, each with what it takes and what speaks against
// it.
#pragma once

#include <string>
#include <vector>

#include "sizing/memory_plan.h"

namespace rowtide::sizing {

struct Choice {
  Layout layout;
  MemoryPlan memory;
  std::vector<EngineLimit> limits;
  std::string refusal;  // why it is out on any engine
  bool loads = true;    // the engine reads files of that format at all
  TableCost cost;
  Speed speed;

  bool runs() const { return limits.empty() && refusal.empty(); }
  bool fits() const { return refusal.empty() && memory.missing_bytes == 0; }
};

/// Every engine and place that the request leaves open.
std::vector<Choice> choices_of(const Request& request);

/// What fits and runs comes first, the table nearest to the device before the others; then what runs and falls short of
/// the device by a twentieth at most; then what fits and would run but for an engine's limits; then what would run with
/// more memory; last what the engine cannot even load.
const Choice& best_of(const std::vector<Choice>& choices);

/// Changes by which it would fit and run, each tried: "--kv fp8". At most three, the least harm first; the host's
/// reserve is never among them.
std::vector<std::string> remedies(const Request& request);

}  // namespace rowtide::sizing
