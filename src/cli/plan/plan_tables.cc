// rowtide plan --compare, --search and --checklist.

#include <fmt/format.h>

#include <algorithm>

#include "cli/plan/plan_json.h"
#include "cli/plan/plan_page.h"
#include "cli/text_table.h"

namespace rowtide::cli::plan {
namespace {

using sizing::Plan;
using sizing::Pool;
using sizing::Searched;

using Line = std::vector<std::string>;

/// Of a Plan or of what was searched.
template <class Looked>
std::string fits_text(const Looked& looked) {
  const std::uint64_t missing_bytes = looked.missing_bytes;
  if (looked.fits) return looked.runs ? "fits" : "fits, no engine";
  return missing_bytes == 0 ? "does not fit" : short_size(static_cast<double>(missing_bytes)) + " short";
}

std::string limit_text(double share) { return share > 0 ? percent_text(share) : "-"; }

std::string placement_cell(std::optional<sizing::Placement> placement) {
  return placement ? std::string(placement_name(*placement)) : "none";
}

std::string target_text(std::string figure, bool kept) { return figure + (kept ? "" : " (missed)"); }

const Pool* pool_named(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.pools, name, &Pool::name);
  return found == plan.pools.end() ? nullptr : &*found;
}

std::string pool_cell(const Pool* pool) {
  if (pool == nullptr) return "-";
  if (pool->capacity_bytes == 0) return short_size(static_cast<double>(pool->used_bytes()));
  return fmt::format("{} of {}", short_size(static_cast<double>(pool->used_bytes())),
                     short_size(static_cast<double>(pool->capacity_bytes)));
}

/// Every pool that one of the plans has, in the order in which they come.
std::vector<std::string> pool_names(const std::vector<Plan>& plans) {
  std::vector<std::string> names;
  for (const Plan& plan : plans) {
    for (const Pool& pool : plan.pools) {
      if (std::ranges::find(names, pool.name) == names.end()) names.push_back(pool.name);
    }
  }
  return names;
}

template <class Cell>
void add_line(std::vector<Line>& lines, const std::string& label, const std::vector<Plan>& plans, Cell cell) {
  Line line = {label};
  for (const Plan& plan : plans) line.push_back(cell(plan));
  lines.push_back(std::move(line));
}

std::string device_cell(const Plan& plan) {
  const sizing::Request& request = plan.request;
  const std::string& id = request.machine.is_this ? "this machine" : request.machine.device.id;
  return request.devices == 1 ? id : fmt::format("{} x {}", request.devices, id);
}

void add_memory(std::vector<Line>& lines, const std::vector<Plan>& plans) {
  for (const std::string& name : pool_names(plans)) {
    add_line(lines, name, plans, [&name](const Plan& plan) { return pool_cell(pool_named(plan, name)); });
  }
  add_line(lines, "KV cache", plans, [](const Plan& plan) { return short_size(static_cast<double>(plan.kv.bytes)); });
  add_line(lines, "tokens in it", plans, [](const Plan& plan) { return grouped(plan.kv.tokens); });
  add_line(lines, "sequences at most", plans, [](const Plan& plan) { return grouped(plan.kv.concurrency_most); });
}

void add_table(std::vector<Line>& lines, const std::vector<Plan>& plans) {
  if (std::ranges::none_of(plans, [](const Plan& plan) { return plan.placement.has_value(); })) return;
  add_line(lines, "limit at decode", plans, [](const Plan& plan) { return limit_text(plan.table.limit_share_decode); });
  add_line(lines, "limit at prefill", plans,
           [](const Plan& plan) { return limit_text(plan.table.limit_share_prefill); });
  add_line(lines, "added to a step", plans,
           [](const Plan& plan) { return rate_text(plan.table.us_per_step_added) + " us"; });
  add_line(lines, "added to a chunk", plans,
           [](const Plan& plan) { return rate_text(plan.table.ms_per_chunk_added) + " ms"; });
}

void add_speed(std::vector<Line>& lines, const std::vector<Plan>& plans) {
  add_line(lines, "decode tok/s", plans, [](const Plan& plan) { return rate_text(plan.speed.decode_tok_s); });
  add_line(lines, "all streams tok/s", plans,
           [](const Plan& plan) { return rate_text(plan.speed.decode_total_tok_s); });
  add_line(lines, "upper bound tok/s", plans,
           [](const Plan& plan) { return rate_text(plan.speed.decode_bound_tok_s); });
  add_line(lines, "prefill tok/s", plans, [](const Plan& plan) { return rate_text(plan.speed.prefill_tok_s); });
  add_line(lines, "first token", plans,
           [](const Plan& plan) { return target_text(rate_text(plan.speed.ttft_ms) + " ms", keeps_ttft(plan)); });
  add_line(lines, "request tok/s", plans,
           [](const Plan& plan) { return target_text(rate_text(plan.speed.request_tok_s), keeps_tok_s(plan)); });
  if (std::ranges::none_of(plans, [](const Plan& plan) { return plan.price_per_million_tokens.has_value(); })) return;
  add_line(lines, "price of 1 M tokens", plans, [](const Plan& plan) {
    return plan.price_per_million_tokens ? fmt::format("{:.2f}", *plan.price_per_million_tokens) : "-";
  });
}

/// All that fits, and for each number of devices what is nearest to it of what does not.
std::vector<const Searched*> worth_showing(const std::vector<Searched>& searched) {
  std::vector<const Searched*> shown;
  for (const Searched& one : searched) {
    const auto is_nearer = [&one](const Searched& other) {
      return !other.fits && other.devices == one.devices &&
             (other.missing_bytes < one.missing_bytes || (other.missing_bytes == one.missing_bytes && &other < &one));
    };
    const auto fits = [&one](const Searched& other) { return other.fits && other.devices == one.devices; };
    if (one.fits || (std::ranges::none_of(searched, fits) && std::ranges::none_of(searched, is_nearer))) {
      shown.push_back(&one);
    }
  }
  return shown;
}

Line searched_line(const Searched& one, std::string_view mark, bool is_priced) {
  Line line = {std::string(mark),
               fmt::format("{} x {}", one.devices, one.device),
               fmt::format("{}", one.nodes),
               fmt::format("{}", one.tp),
               fmt::format("{}", one.ep),
               fmt::format("{}", one.dp),
               placement_cell(one.placement),
               fits_text(one),
               grouped(one.kv_tokens),
               rate_text(one.decode_tok_s),
               rate_text(one.decode_total_tok_s),
               rate_text(one.ttft_ms)};
  if (is_priced) {
    line.push_back(one.price_per_million_tokens ? fmt::format("{:.2f}", *one.price_per_million_tokens) : "-");
  }
  return line;
}

}  // namespace

std::string comparison_of(const std::vector<std::string>& names, const std::vector<Plan>& plans,
                          const PageStyle& style) {
  std::vector<Line> lines;
  lines.push_back({""});
  lines.front().insert(lines.front().end(), names.begin(), names.end());
  add_line(lines, "verdict", plans, [](const Plan& plan) { return fits_text(plan); });
  add_line(lines, "device", plans, device_cell);
  add_line(lines, "table", plans, [](const Plan& plan) { return placement_cell(plan.placement); });
  add_memory(lines, plans);
  add_table(lines, plans);
  add_speed(lines, plans);
  std::string text =
      columns(lines, 2) + "\nSpeeds are estimates; limits are shares of what the drive or link can do.\n";
  for (std::size_t i = 0; i < plans.size(); ++i) text += listed(names[i] + ": " + plans[i].verdict, style);
  return text;
}

std::string search_text(const std::vector<Searched>& searched, const PageStyle& style) {
  if (searched.empty()) return "Nothing was found to search.\n";
  const bool is_priced =
      std::ranges::any_of(searched, [](const Searched& one) { return one.price_per_million_tokens.has_value(); });
  const auto is_to_take = [](const Searched& one) { return one.fits && one.runs; };
  const auto best = std::ranges::find_if(searched, is_to_take);
  std::vector<Line> lines = {
      {" ", "devices", "nodes", "tp", "ep", "dp", "table", "", "KV tokens", "tok/s", "all tok/s", "TTFT ms"}};
  if (is_priced) lines.front().emplace_back("1 M tokens");
  const std::vector<const Searched*> shown = worth_showing(searched);
  for (const Searched* one : shown) {
    const bool is_best = best != searched.end() && one == &*best;
    lines.push_back(searched_line(*one, !is_best ? " " : style.utf8 ? "→" : ">", is_priced));
  }
  std::string text = columns(lines, 2);
  if (shown.size() < searched.size()) {
    text += fmt::format("  and {} more that do not fit (--json lists them)\n", searched.size() - shown.size());
  }
  const std::string advice = best != searched.end()  ? "Take the marked one: " + best->verdict
                             : searched.front().fits ? "No engine runs any of them. " + searched.front().verdict
                                                     : "None fits. " + searched.front().verdict;
  text += "\n" + wrapped(advice, 0, style.width);
  const auto fewer = std::ranges::find_if(searched, [&](const Searched& one) {
    return one.fits && !one.runs && best != searched.end() && one.devices < best->devices;
  });
  if (fewer != searched.end()) text += "\n" + wrapped("Fewer would do: " + fewer->verdict, 0, style.width);
  return text;
}

std::string checklist_text(const std::vector<sizing::Check>& checks, const PageStyle& style) {
  std::string text;
  for (std::size_t i = 0; i < checks.size(); ++i) {
    const sizing::Check& check = checks[i];
    constexpr std::size_t kIndent = 5;
    text += fmt::format("{}{:>3}. {}", i == 0 ? "" : "\n", i + 1, wrapped(check.what, kIndent, style.width));
    if (!check.command.empty()) text += packed_command(check.command, kIndent + 2, style.width);
    if (!check.expect.empty())
      text += std::string(kIndent, ' ') + wrapped("Right: " + check.expect, kIndent, style.width);
  }
  return text;
}

}  // namespace rowtide::cli::plan
