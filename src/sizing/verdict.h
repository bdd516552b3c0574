// The sentences of a plan: the verdict, why the table goes where it goes, warnings.
#pragma once

#include <string>
#include <vector>

#include "sizing/choice.h"
#include "sizing/plan.h"

namespace rowtide::sizing {

/// "on NVMe", "in unified memory".
std::string placement_text(Placement placement, const Device& device);

/// What speaks for or against one choice.
std::string reason_of(const Request& request, const Choice& choice);

/// Why the table goes where `chosen` has it, of all `choices`.
std::string why_chosen(const Request& request, const Choice& chosen, const std::vector<Choice>& choices);

/// Whether it fits and runs, where the table goes and what room is left; else what is missing, which term is too large,
/// and what would fit, each tried.
std::string verdict_of(const Plan& plan, const Choice& chosen);

/// What the next thing in the way of more speed or room is; empty where it does not fit.
std::string next_bottleneck_of(const Plan& plan);

std::vector<std::string> warnings_of(const Plan& plan, const Choice& chosen);

}  // namespace rowtide::sizing
