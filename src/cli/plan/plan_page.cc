#include "cli/plan/plan_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/plan/plan_json.h"
#include "cli/plan/pool_bar.h"
#include "cli/text_table.h"
#include "sizing/engine.h"
#include "sizing/verdict.h"

namespace rowtide::cli::plan {
namespace {

using sizing::Placement;
using sizing::Plan;
using sizing::Pool;
using sizing::TableCost;

std::string verdict_text(const Plan& plan, const PageStyle& style) {
  // Colours go around each line, so that wrapping counts what is seen.
  std::string text = wrapped(plan.verdict, 0, style.width);
  text.pop_back();
  return coloured(text, plan.fits && plan.runs ? Colour::kGood : Colour::kBad, style) + "\n";
}

bool is_kept(std::string_view name) {
  return name.starts_with("keys") || name.starts_with("index keys") || name.starts_with("state");
}

/// The pool in fewer items: what sequences keep is one, and so is what takes less than a two-hundredth of the pool.
Pool in_one_look(const Pool& pool) {
  Pool summary = pool;
  summary.items.clear();
  sizing::PoolItem kept{"keys, values and states", 0, "", ""}, small;
  std::size_t small_items = 0;
  for (const sizing::PoolItem& item : pool.items) {
    if (is_kept(item.name)) {
      kept.bytes += item.bytes;
    } else if (item.bytes < pool.capacity_bytes / 200) {
      ++small_items;
      small.name = small_items == 1 ? item.name : fmt::format("{} smaller items", small_items);
      small.bytes += item.bytes;
    } else {
      summary.items.push_back(item);
    }
  }
  if (std::ranges::any_of(pool.items, is_kept, &sizing::PoolItem::name)) summary.items.push_back(kept);
  if (small_items > 0) summary.items.push_back(small);
  return summary;
}

std::string pools_text(const Plan& plan, const PageStyle& style) {
  const sizing::Device& device = plan.request.machine.device;
  std::string text;
  for (const Pool& pool : plan.pools) {
    const bool is_sold = pool.capacity_bytes == device.visible_bytes;
    text += "\n" + pool_text(in_one_look(pool), is_sold ? device.sold_as : "", style);
  }
  return text;
}

/// "480 reads/s, 0.5 % of the drive's limit".
std::string traffic_text(Placement placement, double per_s, double limit_share) {
  if (placement == Placement::kDevice) return "rows come at the speed of that memory";
  const bool is_drive = placement == Placement::kNvme;
  return fmt::format("{} {}, {} of what {} can do", rate_text(per_s), is_drive ? "reads/s" : "rows/s",
                     percent_text(limit_share), is_drive ? "the drive" : "the link");
}

std::string added_text(double ms, bool is_hidden, std::string_view to) {
  if (ms <= 0) return fmt::format("adds nothing to a {}{}", to, is_hidden ? ", hidden behind what comes before" : "");
  return ms < 0.005 ? fmt::format("adds under 0.01 ms to a {}", to)
                    : fmt::format("adds {} ms to a {}", rate_text(ms), to);
}

std::string table_text(const Plan& plan, const PageStyle& style) {
  if (!plan.placement) return "";
  const TableCost& cost = plan.table;
  const Placement placement = *plan.placement;
  std::string text =
      fmt::format("\n{} of {} {}\n", coloured("Table", Colour::kHeading, style),
                  size_in_both(plan.request.table_bytes()), placement_text(placement, plan.request.machine.device));
  if (!plan.placement_reason.empty()) text += labelled("why", plan.placement_reason, style);
  text += labelled("decode",
                   fmt::format("{}; {}", traffic_text(placement, cost.reads_per_s_decode, cost.limit_share_decode),
                               added_text(cost.us_per_step_added / 1000, cost.is_hidden_decode, "step")),
                   style);
  text += labelled("prefill",
                   fmt::format("{}; {}", traffic_text(placement, cost.reads_per_s_prefill, cost.limit_share_prefill),
                               added_text(cost.ms_per_chunk_added, cost.is_hidden_prefill, "chunk")),
                   style);
  if (placement == Placement::kNvme) {
    text += labelled("cache",
                     fmt::format("{}, from which {} of look-ups are served (estimate)",
                                 short_size(static_cast<double>(plan.cache_bytes)), percent_text(cost.hit_share)),
                     style);
  }
  return text;
}

std::string kv_text(const Plan& plan, const PageStyle& style) {
  const sizing::KvPlan& kv = plan.kv;
  const sizing::Request& request = plan.request;
  std::string text = fmt::format("\n{} {} {} a token on each device\n", coloured("KV cache", Colour::kHeading, style),
                                 short_size(kv.bytes_per_token), kv_type_name(request.kv));
  if (request.devices == 1) text.replace(text.find(" on each device"), 15, "");
  text +=
      labelled("takes",
               fmt::format("{}{}", short_size(static_cast<double>(kv.bytes)),
                           request.memory_fraction ? ", by the memory fraction"
                                                   : fmt::format(" for {} {} of {} tokens", request.concurrency,
                                                                 request.concurrency == 1 ? "sequence" : "sequences",
                                                                 grouped(request.context))),
               style);
  text +=
      labelled("room",
               fmt::format("{} tokens, or {} {} of {}", grouped(kv.tokens * request.dp), grouped(kv.concurrency_most),
                           kv.concurrency_most == 1 ? "sequence" : "sequences", grouped(request.context)),
               style);
  if (kv.asked_bytes > kv.bytes) {
    text += labelled("short",
                     fmt::format("{} were to be had, {} are", short_size(static_cast<double>(kv.asked_bytes)),
                                 short_size(static_cast<double>(kv.bytes))),
                     style);
  }
  if (const auto& band = plan.memory_fraction_band; band && request.memory_fraction) {
    text += labelled(
        "fraction",
        fmt::format("{:g} is asked for; {:.2f} to {:.2f} works", *request.memory_fraction, band->first, band->second),
        style);
  }
  return text;
}

std::string kept_text(bool kept, const PageStyle& style) {
  return coloured(kept ? "kept" : "missed", kept ? Colour::kGood : Colour::kBad, style);
}

std::string speed_text(const Plan& plan, const PageStyle& style) {
  const sizing::Speed& speed = plan.speed;
  const sizing::Request& request = plan.request;
  std::string decode = fmt::format("{} tok/s", rate_text(speed.decode_tok_s));
  if (request.concurrency > 1) {
    decode += fmt::format(" a stream, {} all {} together", rate_text(speed.decode_total_tok_s), request.concurrency);
  }
  if (request.speculate > 0) decode += fmt::format(", {} tokens a step", rate_text(speed.tokens_per_step));
  decode += fmt::format(" (upper bound by bandwidth alone: {}, one stream without drafts)",
                        rate_text(speed.decode_bound_tok_s));
  std::string text =
      fmt::format("\n{} estimates, whose assumptions --explain lists\n", coloured("Speed", Colour::kHeading, style));
  text += labelled("decode", decode, style);
  text +=
      labelled("prefill",
               fmt::format("{} tok/s in chunks of {}", rate_text(speed.prefill_tok_s), grouped(request.chunk)), style);
  text += labelled(
      "first token",
      fmt::format("{} ms after a prompt of {} tokens; target {} ms: {}", rate_text(speed.ttft_ms),
                  grouped(request.prompt), rate_text(request.target_ttft_ms), kept_text(keeps_ttft(plan), style)),
      style);
  text += labelled(
      "request",
      fmt::format("{} tok/s over all of its time, {} tokens out; target {:g} tok/s: {}", rate_text(speed.request_tok_s),
                  grouped(request.output), request.target_tok_s, kept_text(keeps_tok_s(plan), style)),
      style);
  if (!plan.next_bottleneck.empty()) text += labelled("bottleneck", plan.next_bottleneck, style);
  if (plan.price_per_million_tokens) {
    text += labelled("price", fmt::format("{:.2f} for a million tokens", *plan.price_per_million_tokens), style);
  }
  return text;
}

std::string list_text(std::string_view title, const std::vector<std::string>& lines, const PageStyle& style) {
  if (lines.empty()) return "";
  std::string text = "\n" + coloured(title, Colour::kHeading, style) + "\n";
  for (const std::string& line : lines) text += listed(line, style);
  return text;
}

std::string other_engines(const Plan& plan) {
  std::string text;
  for (const sizing::Recipe& recipe : plan.recipes) {
    if (recipe.engine == plan.engine) continue;
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", engine_name(recipe.engine),
                        recipe.runs ? "" : " (cannot run this)");
  }
  return text;
}

std::string launch_text(const Plan& plan, const PageStyle& style) {
  const auto chosen = std::ranges::find(plan.recipes, plan.engine, &sizing::Recipe::engine);
  if (chosen == plan.recipes.end()) return "";
  const std::string others = other_engines(plan);
  std::string text = coloured(fmt::format("Launch with {}", engine_name(plan.engine)), Colour::kHeading, style);
  if (plan.missing_bytes > 0) text += ", once it fits";
  if (!others.empty()) text += "; with --explain also " + others;
  text = "\n" + wrapped(text, 2, style.width);
  if (!chosen->runs) {
    for (const sizing::EngineLimit& limit : chosen->limits) text += listed(limit.reason, style);
    return text;
  }
  text += packed_command(chosen->text(), 2, style.width);
  for (const std::string& note : chosen->notes) text += listed(note, style);
  return text;
}

}  // namespace

std::string title_of(const Plan& plan) {
  const sizing::Request& request = plan.request;
  std::string text = request.model.name;
  const std::string& precision = request.model.precision;
  if (!precision.empty() && text.find(precision) == std::string::npos) text += " " + precision;
  text += " on ";
  if (request.devices > 1) text += fmt::format("{} x ", request.devices);
  text += request.machine.device.name;
  if (request.nodes > 1) text += fmt::format(" in {} nodes", request.nodes);
  if (request.devices > 1) text += fmt::format(", tp {}", request.tp);
  if (request.ep > 1) text += fmt::format(", ep {}", request.ep);
  if (request.dp > 1) text += fmt::format(", dp {}", request.dp);
  return text + fmt::format(": {} of {} tokens",
                            request.concurrency == 1 ? "1 sequence" : fmt::format("{} sequences", request.concurrency),
                            grouped(request.context));
}

std::string packed_command(const std::string& text, std::size_t indent, std::size_t width) {
  const std::string margin(indent, ' ');
  std::string packed, line;
  const auto end_line = [&](std::string_view end) {
    packed += margin + line + std::string(end) + "\n";
    line.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string piece = text.substr(at, end - at);
    at = end + 1;
    const bool continues = piece.ends_with('\\');
    if (continues) piece.pop_back();
    const std::size_t first = piece.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    piece = piece.substr(first, piece.find_last_not_of(' ') + 1 - first);
    const std::string continued_by = "    ";
    const bool fits = indent + shown_columns(line) + 1 + shown_columns(piece) + 2 <= width;
    if (!line.empty() && !fits) {
      end_line(" \\");
      line = continued_by;
    } else if (!line.empty()) {
      line += ' ';
    }
    line += piece;
    if (!continues) end_line("");
  }
  if (!line.empty()) end_line("");
  return packed;
}

std::string page_of(const Plan& plan, const PageStyle& style) {
  return verdict_text(plan, style) + pools_text(plan, style) + table_text(plan, style) + kv_text(plan, style) +
         speed_text(plan, style) + list_text("Warnings", plan.warnings, style) + list_text("Notes", plan.notes, style) +
         launch_text(plan, style);
}

}  // namespace rowtide::cli::plan
