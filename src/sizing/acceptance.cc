#include "sizing/acceptance.h"

#include <nlohmann/json.hpp>

#include "sizing/data.h"

namespace rowtide::sizing {
namespace {

Drafter read_drafter(const nlohmann::json& json) {
  return {json.at("name"), json.at("acceptance"), json.at("tokens_per_pass"), json.at("source")};
}

}  // namespace

Drafter drafter_of(const Model& model) {
  static const nlohmann::json json = nlohmann::json::parse(data::acceptance);
  if (model.draft_layers == 0) return read_drafter(json.at("from_text"));
  for (const nlohmann::json& drafter : json.at("drafters")) {
    for (const nlohmann::json& type : drafter.at("model_types")) {
      if (type == model.model_type) return read_drafter(drafter);
    }
  }
  return read_drafter(json.at("other_module"));
}

double tokens_per_step(std::uint32_t drafts, double acceptance) {
  double tokens = 1;
  double reached = 1;  // probability that all drafts so far were accepted
  for (std::uint32_t i = 0; i < drafts; ++i) {
    reached *= acceptance;
    tokens += reached;
  }
  return tokens;
}

std::uint32_t draft_passes(const Drafter& drafter, std::uint32_t drafts) {
  if (drafter.tokens_per_pass == 0) return 0;
  return (drafts + drafter.tokens_per_pass - 1) / drafter.tokens_per_pass;
}

}  // namespace rowtide::sizing
