#include "sizing/ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/printable.h"

namespace rowtide::sizing {
namespace {

/// Whole hash heads go to ranks, as many to each but the last; a rank may not be left without.
std::string why_not_split(const TableShape& table, std::uint32_t tp) {
  const std::uint32_t heads = table.rows_per_token;
  const std::uint32_t each = (heads + tp - 1) / tp;
  const std::uint32_t served = (heads + each - 1) / each;
  if (served >= tp) return "";
  return fmt::format("leaves {} ranks without one of the {} hash heads of table {}, which go to ranks by {}",
                     tp - served, heads, printable(table.name), each);
}

}  // namespace

std::string why_not_split(const Model& model, std::uint32_t tp, std::uint32_t ep) {
  if (tp == 1) return "";
  if (model.format == "gguf") {  // whose engine gives whole layers to devices
    return tp <= model.layers ? "" : fmt::format("is more than the {} layers", model.layers);
  }
  if (model.attention_heads % tp != 0)
    return fmt::format("does not divide the {} attention heads", model.attention_heads);
  const std::uint32_t kv_heads = std::max(1u, model.kv_heads);
  if (kv_heads % tp != 0 && tp % kv_heads != 0) return fmt::format("fits the {} key-value heads neither way", kv_heads);
  for (const State& state : model.states) {
    if (state.heads > 1 && state.heads % tp != 0 && tp % state.heads != 0) {
      return fmt::format("fits the {} heads of its {} neither way", state.heads, state.name);
    }
  }
  if (ep == 1 && model.experts > 0 && model.expert_width % tp != 0) {
    return fmt::format("does not divide the experts' width of {}, and no --ep leaves them whole", model.expert_width);
  }
  if (model.family != "deepseek_engram") return "";
  for (const TableShape& table : model.tables) {
    if (std::string reason = why_not_split(table, tp); !reason.empty()) return reason;
  }
  return "";
}

std::string splits_of(const Model& model, std::uint32_t ep) {
  std::vector<std::uint32_t> list;
  for (std::uint32_t tp = 1; tp <= 64; ++tp) {
    if (why_not_split(model, tp, ep).empty()) list.push_back(tp);
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

std::uint32_t widest_split(const Model& model, std::uint32_t devices, std::uint32_t ep) {
  for (std::uint32_t tp = devices; tp > 1; --tp) {
    if (devices % tp == 0 && why_not_split(model, tp, ep).empty()) return tp;
  }
  return 1;
}

std::uint32_t fewest_nodes(std::uint32_t devices, std::uint32_t per_node) {
  std::uint32_t nodes = (devices + per_node - 1) / per_node;
  while (devices % nodes != 0) ++nodes;
  return nodes;
}

Request on_devices(const Request& request, std::uint32_t devices, std::uint32_t tp, std::uint32_t ep) {
  Request other = request;
  const std::uint32_t per_node = std::max(1u, request.machine.device.devices_per_node);
  other.devices = devices;
  other.nodes = fewest_nodes(devices, per_node);
  other.tp = tp;
  other.dp = devices / tp;
  other.ep = ep;
  other.notes.clear();
  if (request.price_per_hour) other.price_per_hour = *request.price_per_hour * devices / request.devices;
  return other;
}

}  // namespace rowtide::sizing
