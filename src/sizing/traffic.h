// What one pass through the model reads, writes and computes on each device: the sums behind the speed estimate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sizing/acceptance.h"
#include "sizing/engine.h"
#include "sizing/request.h"

namespace rowtide::sizing {

/// One thing that a pass reads or writes, on each device.
struct Traffic {
  std::string name;
  double bytes = 0;
  std::string formula;
};
double bytes_of(const std::vector<Traffic>& traffic);

/// Of `experts` of a layer, the share that at least one of `positions` is routed to, each to `chosen` of them. They
/// choose alike in part: as many different ones as positions^0.85 would that chose by themselves.
double union_share(double positions, std::uint32_t chosen, std::uint32_t experts);

/// A pass of one replica: `streams` sequences with `positions_each` positions, `length` tokens behind each.
struct Pass {
  double streams = 1;
  double positions_each = 1;  // a decode step: the last token and the drafts; a chunk: its tokens, with one stream
  double length = 0;
  double chosen_at = 1;  // positions, of all streams, that go through the head

  double positions() const { return streams * positions_each; }
};

/// Weights that the pass needs, each read once.
std::vector<Traffic> weight_traffic(const Request& request, const Pass& pass);
/// Keys, values and index keys that the pass reads, and what it writes of them.
Traffic kv_traffic(const Request& request, const Pass& pass);
/// Recurrent states: read once; written once, or with a copy for each of `drafts`.
Traffic state_traffic(const Request& request, const Pass& pass, std::uint32_t drafts);
/// `passes` of the draft module for `streams` sequences that together draft `drafts` tokens each.
std::vector<Traffic> draft_traffic(const Request& request, const Pass& pass, std::uint32_t passes);

/// Milliseconds of arithmetic of the pass on each device, at the share of the peak that is reached: weights at the rate
/// that their precision has there, attention at that of BF16.
double arithmetic_ms(const Request& request, EngineId engine, const Pass& pass);

/// Whether 4-bit values of the model are such as the device computes only widened to BF16.
bool emulates_fp4(const Request& request);

/// Microseconds of one small all-reduce among all ranks.
double all_reduce_latency_us(const Request& request);
/// Milliseconds of `layers` layers' all-reduces over `positions`; 0 with one rank.
double all_reduce_ms(const Request& request, double layers, double positions);
/// The link they go over.
const Link& all_reduce_link(const Request& request);

}  // namespace rowtide::sizing
