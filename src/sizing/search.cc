// The smallest machine that does it: numbers of devices, ranks, and the table on or off the device.
#include <algorithm>
#include <bit>
#include <initializer_list>
#include <optional>
#include <tuple>

#include "sizing/plan.h"
#include "sizing/ranks.h"

namespace rowtide::sizing {
namespace {

bool is_better(const Searched& a, const Searched& b) {
  return std::tuple(!a.fits, !a.runs, a.missing_bytes, -a.decode_total_tok_s) <
         std::tuple(!b.fits, !b.runs, b.missing_bytes, -b.decode_total_tok_s);
}

/// The best of several places of the table.
Searched best_of_places(const Request& request, std::initializer_list<Placement> places) {
  std::optional<Searched> best;
  for (Placement placement : places) {
    Request with = request;
    with.placement = placement;
    if (placement != Placement::kNvme) with.memory.reset();
    Searched one = summary_of(make_plan(with));
    if (!best || is_better(one, *best)) best = std::move(one);
  }
  return *best;
}

/// With the table in the memory that the weights are in, and off it.
void look(const Request& request, std::vector<Searched>& found) {
  if (request.model.tables.empty() || request.placement) {
    found.push_back(summary_of(make_plan(request)));
    return;
  }
  const bool unified = request.machine.device.is_unified;
  found.push_back(unified ? best_of_places(request, {Placement::kDevice, Placement::kHost})
                          : best_of_places(request, {Placement::kDevice}));
  found.push_back(unified ? best_of_places(request, {Placement::kNvme})
                          : best_of_places(request, {Placement::kPinned, Placement::kHost, Placement::kNvme}));
}

/// Machines are built of 1 to 8, and of powers of two or three times such.
bool is_tried(std::uint32_t devices, std::uint32_t most) {
  const std::uint32_t odd = devices >> std::countr_zero(devices);
  return devices <= 8 || devices == most || odd == 1 || odd == 3;
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
  for (std::uint32_t devices = 1; devices <= request.devices; ++devices) {
    if (!is_tried(devices, request.devices)) continue;
    for (std::uint32_t tp = 1; tp <= devices; ++tp) {
      if (devices % tp != 0 || !why_not_split(request.model, tp, 1).empty()) continue;
      look(on_devices(request, devices, tp, 1), found);
      if (devices > 1 && request.model.experts != 0 && request.model.experts % devices == 0 && tp < devices) {
        look(on_devices(request, devices, tp, devices), found);
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
