// The smallest machine that does it: numbers of devices, ranks, and the table on or off the device.
#include <algorithm>
#include <tuple>

#include "sizing/plan.h"

namespace rowtide::sizing {
namespace {

/// Whether heads, experts and hash heads go over so many ranks.
bool can_split(const Model& model, std::uint32_t tp) {
  const std::uint32_t kv_heads = std::max(1u, model.kv_heads);
  if (model.attention_heads % tp != 0 || (kv_heads % tp != 0 && tp % kv_heads != 0)) return false;
  if (model.family != "deepseek_engram") return true;
  return std::all_of(model.tables.begin(), model.tables.end(), [tp](const TableShape& table) {
    const std::uint32_t each = (table.rows_per_token + tp - 1) / tp;
    return (table.rows_per_token + each - 1) / each == tp;
  });
}

/// The request on fewer devices, or split in another way.
Request on(const Request& request, std::uint32_t devices, std::uint32_t tp, std::uint32_t ep) {
  Request smaller = request;
  const std::uint32_t per_node = std::max(1u, request.machine.device.devices_per_node);
  smaller.devices = devices;
  smaller.nodes = (devices + per_node - 1) / per_node;
  smaller.tp = tp;
  smaller.dp = devices / tp;
  smaller.ep = ep;
  smaller.notes.clear();
  if (request.price_per_hour) smaller.price_per_hour = *request.price_per_hour * devices / request.devices;
  return smaller;
}

void look(const Request& request, std::vector<Searched>& found) {
  if (request.model.tables.empty() || request.placement) {
    found.push_back(summary_of(make_plan(request)));
    return;
  }
  Request with = request;
  with.placement = Placement::kDevice;
  with.memory.reset();
  found.push_back(summary_of(make_plan(with)));
  Searched off;  // the best place off the device
  bool any = false;
  for (Placement placement : {Placement::kPinned, Placement::kHost, Placement::kNvme}) {
    with = request;
    with.placement = placement;
    if (placement != Placement::kNvme) with.memory.reset();
    const Searched one = summary_of(make_plan(with));
    if (!any || std::tuple(!one.fits, one.missing_bytes, -one.decode_total_tok_s) <
                    std::tuple(!off.fits, off.missing_bytes, -off.decode_total_tok_s)) {
      off = one;
    }
    any = true;
  }
  found.push_back(off);
}

}  // namespace

Searched summary_of(const Plan& plan) {
  Searched one;
  const Request& request = plan.request;
  one.device = request.machine.device.id;
  one.devices = request.devices;
  one.nodes = request.nodes;
  one.tp = request.tp;
  one.ep = request.ep;
  one.dp = request.dp;
  one.placement = plan.placement;
  one.fits = plan.fits;
  one.runs = plan.runs;
  one.missing_bytes = plan.missing_bytes;
  one.kv_tokens = plan.kv.tokens;
  one.decode_tok_s = plan.speed.decode_tok_s;
  one.decode_total_tok_s = plan.speed.decode_total_tok_s;
  one.ttft_ms = plan.speed.ttft_ms;
  one.price_per_million_tokens = plan.price_per_million_tokens;
  one.verdict = plan.verdict;
  return one;
}

std::vector<Searched> search(const Request& request) {
  std::vector<Searched> found;
  const std::uint32_t per_node = std::max(1u, request.machine.device.devices_per_node);
  for (std::uint32_t devices = 1; devices <= request.devices; ++devices) {
    const std::uint32_t nodes = (devices + per_node - 1) / per_node;
    if (devices % nodes != 0) continue;
    for (std::uint32_t tp = 1; tp <= devices; ++tp) {
      if (devices % tp != 0 || !can_split(request.model, tp)) continue;
      look(on(request, devices, tp, 1), found);
      if (devices > 1 && request.model.experts != 0 && request.model.experts % devices == 0 && tp < devices) {
        look(on(request, devices, tp, devices), found);
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const Searched& a, const Searched& b) {
    return std::tuple(!a.fits, a.devices, -a.decode_total_tok_s, a.tp) <
           std::tuple(!b.fits, b.devices, -b.decode_total_tok_s, b.tp);
  });
  return found;
}

}  // namespace rowtide::sizing
