// What the runs of `rowtide try` come to.
#pragma once

#include <string>
#include <vector>

#include "cli/json_output.h"
#include "cli/try_runs.h"

namespace rowtide::cli {

/// Of several measurements of one thing.
struct Spread {
  double least = 0, median = 0, most = 0;
};
Spread spread_of(std::vector<double> values);

/// One figure of stock and of Rowtide in one state.
struct Comparison {
  Spread stock, rowtide;
  double ratio() const { return stock.median > 0 ? rowtide.median / stock.median : 0; }
  /// Neither lies wholly on one side of the other: then nobody has won.
  bool overlap() const { return stock.least <= rowtide.most && rowtide.least <= stock.most; }
};

enum class Figure { kGatherSeconds, kPromptTokS, kDecodeTokS };
Comparison compare(const std::vector<TryRun>& runs, std::string_view state, Figure figure);

/// All runs gave the same logits, so the same text.
bool same_output(const std::vector<TryRun>& runs);

/// One sentence.
std::string verdict(const std::vector<TryRun>& runs);

/// The table for people: a line for each method and state.
std::string table_text(const std::vector<TryRun>& runs);

Json runs_json(const std::vector<TryRun>& runs);
Json ratios_json(const std::vector<TryRun>& runs);

}  // namespace rowtide::cli
