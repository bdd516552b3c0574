// A plan as JSON: what `rowtide plan --json` prints and what the Explorer page is given.
#pragma once

#include <vector>

#include "cli/json_output.h"
#include "sizing/plan.h"

namespace rowtide::cli {

Json to_json(const sizing::Plan& plan);
Json to_json(const sizing::Searched& searched);
Json to_json(const std::vector<sizing::Check>& checks);

/// Whether the plan keeps the targets it was asked for: time to the first token, and a request's tokens over its time.
bool keeps_ttft(const sizing::Plan& plan);
bool keeps_tok_s(const sizing::Plan& plan);

}  // namespace rowtide::cli
