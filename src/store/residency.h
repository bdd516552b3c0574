// Where a table's rows are to be kept, given what was asked for and what there is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "rowtide/store.h"
#include "store/memory_budget.h"

namespace rowtide {

struct Residency {
  Mode mode;  // never kAuto
  std::shared_ptr<MemoryBudget> budget;
  std::string reason;  // for kAuto: why this mode; else empty
};

/// Checks the request against the process's budget and the memory that is available, and decides what kAuto
/// and a budget of 0 mean. kUsage, kResource: see Store::open().
Result<Residency> decide_residency(const Table& table, const StoreOptions& options);

}  // namespace rowtide
