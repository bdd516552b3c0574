// How many tokens speculation brings a step (data/acceptance.json).
#pragma once

#include <cstdint>
#include <string>

#include "sizing/model.h"

namespace rowtide::sizing {

/// What drafts a model's tokens.
struct Drafter {
  std::string name;                   // "MTP"
  double acceptance = 0;              // of a draft whose forerunners were accepted
  std::uint32_t tokens_per_pass = 1;  // drafted by one pass of the draft module; 0: drafted without one
  std::string source;
};

/// Of the model's draft module, or of its text where it has none.
Drafter drafter_of(const Model& model);

/// 1 + a + ... + a^drafts: the drafts accepted in a row, and the token that the check itself gives.
double tokens_per_step(std::uint32_t drafts, double acceptance);

/// Passes of the draft module for `drafts` tokens.
std::uint32_t draft_passes(const Drafter& drafter, std::uint32_t drafts);

}  // namespace rowtide::sizing
