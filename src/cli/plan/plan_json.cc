#include "cli/plan/plan_json.h"

#include "sizing/engine.h"

namespace rowtide::cli {
namespace {

using sizing::Part;
using sizing::Plan;

Json parts_json(const sizing::Model& model) {
  Json parts = Json::array();
  for (std::size_t i = 0; i < sizing::kParts; ++i) {
    const sizing::PartSize& size = model.parts[i];
    if (size.bytes == 0 && size.parameters == 0) continue;
    parts.push_back({{"part", part_name(static_cast<Part>(i))},
                     {"bytes", size.bytes},
                     {"parameters", size.parameters},
                     {"source", size.source}});
  }
  return parts;
}

Json model_json(const sizing::Model& model) {
  return {{"name", model.name},
          {"precision", model.precision},
          {"model_type", model.model_type},
          {"format", model.format},
          {"source", model.source},
          {"is_measured", model.is_measured},
          {"bytes_total", model.bytes_total()},
          {"bytes_table", model.bytes_table()},
          {"bytes_rest", model.bytes_rest()},
          {"context_most", model.context_most},
          {"parts", parts_json(model)}};
}

Json machine_json(const sizing::Request& request) {
  const sizing::Machine& machine = request.machine;
  const sizing::Device& device = machine.device;
  return {{"id", device.id},
          {"name", device.name},
          {"is_unified", device.is_unified},
          {"is_this", machine.is_this},
          {"devices", request.devices},
          {"nodes", request.nodes},
          {"tp", request.tp},
          {"ep", request.ep},
          {"dp", request.dp},
          {"sold_as", device.sold_as},
          {"sold_bytes", device.sold_bytes},
          {"installed_bytes", device.installed_bytes},
          {"visible_bytes", device.visible_bytes},
          {"bandwidth_bytes_per_s", device.bandwidth_bytes_per_s},
          {"drive",
           {{"name", machine.drive.name},
            {"reads_per_s", machine.drive.reads_per_s},
            {"serial_us", machine.drive.serial_us},
            {"source", machine.drive.source}}},
          {"sources", device.sources}};
}

Json load_json(const sizing::Request& request) {
  return {{"context", request.context},     {"concurrency", request.concurrency},
          {"kv", kv_type_name(request.kv)}, {"state", state_type_name(request.state)},
          {"chunk", request.chunk},         {"speculate", request.speculate},
          {"prompt", request.prompt},       {"output", request.output}};
}

Json pools_json(const std::vector<sizing::Pool>& pools) {
  Json list = Json::array();
  for (const sizing::Pool& pool : pools) {
    Json items = Json::array();
    for (const sizing::PoolItem& item : pool.items) {
      items.push_back({{"name", item.name}, {"bytes", item.bytes}, {"formula", item.formula}, {"source", item.source}});
    }
    list.push_back({{"name", pool.name},
                    {"each", pool.each},
                    {"capacity_bytes", pool.capacity_bytes},
                    {"capacity_source", pool.capacity_source},
                    {"used_bytes", pool.used_bytes()},
                    {"free_bytes", pool.free_bytes()},
                    {"missing_bytes", pool.missing_bytes()},
                    {"items", std::move(items)}});
  }
  return list;
}

Json candidate_json(const sizing::Candidate& candidate) {
  const sizing::TableCost& cost = candidate.cost;
  return {{"placement", placement_name(candidate.placement)},
          {"fits", candidate.fits},
          {"runs", candidate.runs},
          {"missing_bytes", candidate.missing_bytes},
          {"reason", candidate.reason},
          {"reads_per_s_decode", cost.reads_per_s_decode},
          {"reads_per_s_prefill", cost.reads_per_s_prefill},
          {"limit_share_decode", cost.limit_share_decode},
          {"limit_share_prefill", cost.limit_share_prefill},
          {"us_per_step_added", cost.us_per_step_added},
          {"ms_per_chunk_added", cost.ms_per_chunk_added},
          {"hit_share", cost.hit_share}};
}

Json table_json(const Plan& plan) {
  if (!plan.placement) return nullptr;
  const sizing::TableCost& cost = plan.table;
  Json candidates = Json::array();
  for (const sizing::Candidate& candidate : plan.candidates) candidates.push_back(candidate_json(candidate));
  return {{"placement", placement_name(*plan.placement)},
          {"reason", plan.placement_reason},
          {"bytes", cost.bytes},
          {"hit_share", cost.hit_share},
          {"cache_bytes", plan.cache_bytes},
          {"reads_per_s_decode", cost.reads_per_s_decode},
          {"reads_per_s_prefill", cost.reads_per_s_prefill},
          {"limit_share_decode", cost.limit_share_decode},
          {"limit_share_prefill", cost.limit_share_prefill},
          {"us_per_step", cost.us_per_step},
          {"us_per_step_added", cost.us_per_step_added},
          {"ms_per_chunk", cost.ms_per_chunk},
          {"ms_per_chunk_added", cost.ms_per_chunk_added},
          {"is_hidden_decode", cost.is_hidden_decode},
          {"is_hidden_prefill", cost.is_hidden_prefill},
          {"bottleneck", cost.bottleneck},
          {"assumptions", cost.assumptions},
          {"candidates", std::move(candidates)}};
}

Json kv_json(const sizing::KvPlan& kv) {
  Json terms = Json::array();
  for (const sizing::MemoryTerm& term : kv.terms) {
    terms.push_back({{"name", term.name}, {"bytes", term.bytes}, {"formula", term.formula}});
  }
  return {{"bytes_per_token", kv.bytes_per_token},
          {"terms", std::move(terms)},
          {"asked_bytes", kv.asked_bytes},
          {"bytes", kv.bytes},
          {"tokens", kv.tokens},
          {"concurrency_most", kv.concurrency_most}};
}

Json time_terms_json(const std::vector<sizing::TimeTerm>& terms) {
  Json list = Json::array();
  for (const sizing::TimeTerm& term : terms) {
    list.push_back({{"name", term.name}, {"ms", term.ms}, {"formula", term.formula}, {"source", term.source}});
  }
  return list;
}

Json speed_json(const sizing::Speed& speed) {
  return {{"decode_tok_s", speed.decode_tok_s},
          {"decode_total_tok_s", speed.decode_total_tok_s},
          {"decode_bound_tok_s", speed.decode_bound_tok_s},
          {"bytes_per_token", speed.bytes_per_token},
          {"prefill_tok_s", speed.prefill_tok_s},
          {"ttft_ms", speed.ttft_ms},
          {"request_tok_s", speed.request_tok_s},
          {"tokens_per_step", speed.tokens_per_step},
          {"step", time_terms_json(speed.step)},
          {"chunk", time_terms_json(speed.chunk)},
          {"assumptions", speed.assumptions}};
}

Json hit_share_json(const sizing::Model& model) {
  Json curve = Json::array();
  for (const sizing::HitSharePoint& point : sizing::hit_share_curve(model)) {
    curve.push_back(
        {{"memory_bytes", point.memory_bytes}, {"share", point.share}, {"least", point.least}, {"most", point.most}});
  }
  return curve;
}

Json recipe_json(const sizing::Recipe& recipe) {
  Json limits = Json::array();
  for (const sizing::EngineLimit& limit : recipe.limits) {
    limits.push_back({{"id", limit.id}, {"reason", limit.reason}, {"source", limit.source}});
  }
  Json environment = Json::object();
  for (const auto& [name, value] : recipe.environment) environment[name] = value;
  return {{"runs", recipe.runs},           {"limits", std::move(limits)}, {"environment", std::move(environment)},
          {"arguments", recipe.arguments}, {"text", recipe.text()},       {"notes", recipe.notes}};
}

template <class T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace

bool keeps_ttft(const Plan& plan) { return plan.speed.ttft_ms <= plan.request.target_ttft_ms; }
bool keeps_tok_s(const Plan& plan) { return plan.speed.request_tok_s >= plan.request.target_tok_s; }

Json to_json(const Plan& plan) {
  Json recipes = Json::object();
  for (const sizing::Recipe& recipe : plan.recipes) {
    recipes[std::string(engine_key(recipe.engine))] = recipe_json(recipe);
  }
  const auto& band = plan.memory_fraction_band;
  return {{"model", model_json(plan.request.model)},
          {"machine", machine_json(plan.request)},
          {"load", load_json(plan.request)},
          {"engine", engine_name(plan.engine)},
          {"fits", plan.fits},
          {"runs", plan.runs},
          {"verdict", plan.verdict},
          {"missing_bytes", plan.missing_bytes},
          {"pools", pools_json(plan.pools)},
          {"table", table_json(plan)},
          {"kv", kv_json(plan.kv)},
          {"speed", speed_json(plan.speed)},
          {"targets",
           {{"ttft_ms", plan.request.target_ttft_ms},
            {"tok_s", plan.request.target_tok_s},
            {"ttft_met", keeps_ttft(plan)},
            {"tok_s_met", keeps_tok_s(plan)}}},
          {"hit_share_curve", hit_share_json(plan.request.model)},
          {"recipes", std::move(recipes)},
          {"next_bottleneck", plan.next_bottleneck},
          {"memory_fraction_band", band ? Json({band->first, band->second}) : Json(nullptr)},
          {"price_per_million_tokens", json_or_null(plan.price_per_million_tokens)},
          {"warnings", plan.warnings},
          {"notes", plan.notes}};
}

Json to_json(const sizing::Searched& searched) {
  return {{"device", searched.device},
          {"devices", searched.devices},
          {"nodes", searched.nodes},
          {"tp", searched.tp},
          {"ep", searched.ep},
          {"dp", searched.dp},
          {"placement", searched.placement ? Json(placement_name(*searched.placement)) : Json(nullptr)},
          {"fits", searched.fits},
          {"runs", searched.runs},
          {"missing_bytes", searched.missing_bytes},
          {"kv_tokens", searched.kv_tokens},
          {"decode_tok_s", searched.decode_tok_s},
          {"decode_total_tok_s", searched.decode_total_tok_s},
          {"ttft_ms", searched.ttft_ms},
          {"price_per_million_tokens", json_or_null(searched.price_per_million_tokens)},
          {"verdict", searched.verdict}};
}

Json to_json(const std::vector<sizing::Check>& checks) {
  Json list = Json::array();
  for (const sizing::Check& check : checks) {
    list.push_back({{"what", check.what}, {"command", check.command}, {"expect", check.expect}});
  }
  return list;
}

}  // namespace rowtide::cli
