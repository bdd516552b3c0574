// A memory pool as a stacked bar with its legend.
#pragma once

#include <string>

#include "cli/plan/page_style.h"
#include "sizing/plan.h"

namespace rowtide::cli::plan {

/// Heading with capacity and what is free or missing, the bar, and what is in it: name, size, share of the capacity. Of
/// a pool that is too small the bar is as long as what should go in, with a mark where the capacity ends; one whose
/// capacity is not known has no bar. `sold_as` stands beside the capacity unless empty.
std::string pool_text(const sizing::Pool& pool, std::string_view sold_as, const PageStyle& style);

}  // namespace rowtide::cli::plan
