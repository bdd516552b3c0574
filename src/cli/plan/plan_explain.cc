// rowtide plan --explain: every term of a plan.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "cli/plan/plan_page.h"
#include "cli/text_table.h"
#include "sizing/engine.h"

namespace rowtide::cli::plan {
namespace {

using sizing::Part;
using sizing::Plan;

constexpr std::size_t kNameColumns = 26;
constexpr std::size_t kFigureColumns = 10;
constexpr std::size_t kRestIndent = 2 + kNameColumns + 2 + kFigureColumns + 2;

/// Where figures come from: a few words stand behind the figure, more are numbered and stand once, at the end.
class Sources {
 public:
  /// " [estimate]", " [3]"; nothing where no source is told.
  std::string mark(std::string_view source) {
    constexpr std::size_t kFewColumns = 24;
    if (source.empty()) return "";
    if (shown_columns(source) <= kFewColumns) return fmt::format(" [{}]", source);
    auto known = std::ranges::find(sources_, source);
    if (known == sources_.end()) known = sources_.insert(sources_.end(), std::string(source));
    return fmt::format(" [{}]", known - sources_.begin() + 1);
  }

  std::string list(const PageStyle& style) const {
    std::string text;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      text += fmt::format("  {:>3}  {}", i + 1, wrapped(sources_[i], 7, style.width));
    }
    return text;
  }

 private:
  std::vector<std::string> sources_;
};

/// "  name   figure  formula [source]", the rest wrapped under itself; a longer name has a line of its own.
std::string term_line(std::string_view name, std::string_view figure, std::string_view formula, std::string_view mark,
                      const PageStyle& style) {
  std::string rest(formula);
  rest += rest.empty() && !mark.empty() ? mark.substr(1) : mark;
  std::string text = fmt::format("  {:<{}}", name, kNameColumns);
  if (shown_columns(name) > kNameColumns) text += "\n" + std::string(2 + kNameColumns, ' ');
  text += fmt::format("  {:>{}}", figure, kFigureColumns);
  return text + (rest.empty() ? "\n" : "  " + wrapped(rest, kRestIndent, style.width));
}

std::string section(std::string_view title, const std::string& body, const PageStyle& style) {
  return body.empty() ? "" : "\n" + coloured(title, Colour::kHeading, style) + "\n" + body;
}

std::string bullets(const std::vector<std::string>& lines, const PageStyle& style) {
  std::string text;
  for (const std::string& line : lines) text += listed(line, style);
  return text;
}

std::string size_figure(double bytes) { return short_size(bytes); }
std::string size_figure(std::uint64_t bytes) { return short_size(static_cast<double>(bytes)); }

std::string model_terms(const sizing::Model& model, Sources& sources, const PageStyle& style) {
  std::string text;
  for (std::size_t i = 0; i < sizing::kParts; ++i) {
    const sizing::PartSize& size = model.parts.at(i);
    if (size.bytes == 0) continue;
    text += term_line(part_name(static_cast<Part>(i)), size_figure(size.bytes),
                      fmt::format("{} bytes, {} parameters", grouped(size.bytes), grouped(size.parameters)),
                      sources.mark(size.source), style);
  }
  text += term_line(
      "all", size_figure(model.bytes_total()),
      fmt::format("{} bytes, without the table {}", grouped(model.bytes_total()), size_in_both(model.bytes_rest())),
      sources.mark(model.source), style);
  for (const sizing::TableShape& table : model.tables) {
    text += listed(fmt::format("table {}: {} rows of {} bytes, needed by layer {} (from 0); a token reads {} rows, {} "
                               "bytes, by {} reads",
                               table.name, grouped(table.rows), table.row_bytes, table.layer, table.rows_per_token,
                               grouped(table.bytes_per_token()), table.reads_per_token()),
                   style);
  }
  return text;
}

std::string pool_terms(const sizing::Pool& pool, Sources& sources, const PageStyle& style) {
  const bool is_known = pool.capacity_bytes != 0;
  std::string text = is_known ? term_line("capacity", size_figure(pool.capacity_bytes),
                                          fmt::format("{} bytes", grouped(pool.capacity_bytes)),
                                          sources.mark(pool.capacity_source), style)
                              : "";
  for (const sizing::PoolItem& item : pool.items) {
    text += term_line(item.name, size_figure(item.bytes), item.formula, sources.mark(item.source), style);
  }
  if (!is_known) return text;
  if (pool.missing_bytes() > 0) return text + term_line("missing", size_figure(pool.missing_bytes()), "", "", style);
  return text + term_line("free", size_figure(pool.free_bytes()), "", "", style);
}

std::string kv_terms_text(const Plan& plan, const PageStyle& style) {
  std::string text;
  for (const sizing::MemoryTerm& term : plan.kv.terms) {
    text += term_line(term.name, size_figure(term.bytes), term.formula, "", style);
  }
  return text + term_line("a token", size_figure(plan.kv.bytes_per_token),
                          fmt::format("{:.1f} bytes; x {} tokens x {} sequences: {} asked for", plan.kv.bytes_per_token,
                                      grouped(plan.request.context), plan.request.concurrency,
                                      size_in_both(plan.kv.asked_bytes)),
                          "", style);
}

std::string state_terms_text(const Plan& plan, const PageStyle& style) {
  const sizing::Request& request = plan.request;
  std::string text;
  for (const sizing::MemoryTerm& term :
       sizing::state_terms(request.model, request.kv, request.state, request.speculate, request.tp)) {
    text += term_line(term.name, size_figure(term.bytes), term.formula, "", style);
  }
  return text;
}

std::string time_terms_text(const std::vector<sizing::TimeTerm>& terms, Sources& sources, const PageStyle& style) {
  std::string text;
  for (const sizing::TimeTerm& term : terms) {
    text +=
        term_line(term.name, fmt::format("{} ms", rate_text(term.ms)), term.formula, sources.mark(term.source), style);
  }
  return text;
}

std::string candidate_text(const sizing::Candidate& candidate, bool is_chosen, const PageStyle& style) {
  const sizing::TableCost& cost = candidate.cost;
  std::string text = is_chosen                          ? "chosen"
                     : candidate.fits && candidate.runs ? "fits"
                     : candidate.missing_bytes > 0      ? size_in_both(candidate.missing_bytes) + " missing"
                                                        : "out";
  if (!candidate.reason.empty()) text += ": " + candidate.reason;
  if (cost.reads_per_s_decode > 0 || cost.reads_per_s_prefill > 0) {
    text += fmt::format("; {} a second at decode ({} of the limit), {} at prefill ({})",
                        rate_text(cost.reads_per_s_decode), percent_text(cost.limit_share_decode),
                        rate_text(cost.reads_per_s_prefill), percent_text(cost.limit_share_prefill));
    text += fmt::format("; adds {} us to a step, {} ms to a chunk", rate_text(cost.us_per_step_added),
                        rate_text(cost.ms_per_chunk_added));
  }
  return labelled(placement_name(candidate.placement), text, style);
}

std::string candidates_text(const Plan& plan, const PageStyle& style) {
  std::string text;
  for (const sizing::Candidate& candidate : plan.candidates) {
    text += candidate_text(candidate, plan.placement == candidate.placement, style);
  }
  return text + bullets(plan.table.assumptions, style);
}

std::string engine_text(const sizing::Recipe& recipe, Sources& sources, const PageStyle& style) {
  std::string text;
  for (const sizing::EngineLimit& limit : recipe.limits) {
    text += listed(limit.reason + sources.mark(limit.source), style);
  }
  if (recipe.runs) text += packed_command(recipe.text(), 2, style.width);
  return text + bullets(recipe.notes, style);
}

std::string machine_text(const Plan& plan, Sources& sources, const PageStyle& style) {
  const sizing::Machine& machine = plan.request.machine;
  const sizing::Device& device = machine.device;
  std::string text;
  text += listed(fmt::format("memory: sold as {}, {} bytes installed, {} visible", device.sold_as,
                             grouped(device.installed_bytes), grouped(device.visible_bytes)),
                 style);
  text +=
      listed(fmt::format("bandwidth: {:.0f} GB/s, of which decoding reaches {}{}", device.bandwidth_bytes_per_s / 1e9,
                         percent_text(device.bandwidth_share), sources.mark(device.bandwidth_share_source)),
             style);
  text += listed(fmt::format("arithmetic: prefill reaches {} of the device's{}", percent_text(device.compute_share),
                             sources.mark(device.compute_share_source)),
                 style);
  for (const sizing::Link* link : {&device.host_link, &device.peer_link, &device.node_link}) {
    if (link->name.empty()) continue;
    text += listed(
        fmt::format("link: {}, {:.1f} GB/s{}", link->name, link->bytes_per_s / 1e9, sources.mark(link->source)), style);
  }
  text += listed(
      fmt::format("drive: {}, {} reads/s, one read {} us{}", machine.drive.name, rate_text(machine.drive.reads_per_s),
                  rate_text(machine.drive.serial_us), sources.mark(machine.drive.source)),
      style);
  text += listed(fmt::format("host reserve: {}{}", size_in_both(plan.request.host_reserve),
                             sources.mark(plan.request.host_reserve_source)),
                 style);
  if (device.sources.empty()) return text;
  std::string marks;
  for (const std::string& source : device.sources) marks += sources.mark(source);
  return text + listed("what else is known of the device:" + marks, style);
}

}  // namespace

std::string explanation_of(const Plan& plan, const PageStyle& style) {
  Sources sources;
  std::string text = section("Model, as stored", model_terms(plan.request.model, sources, style), style);
  for (const sizing::Pool& pool : plan.pools) {
    text += section(fmt::format("Terms of {}{}{}", pool.name, pool.each.empty() ? "" : " ", pool.each),
                    pool_terms(pool, sources, style), style);
  }
  text += section("Terms of the KV cache, a token", kv_terms_text(plan, style), style);
  if (const auto& band = plan.memory_fraction_band) {
    text += listed(
        fmt::format("the engine's share of the memory works from {:.3f} to {:.3f}", band->first, band->second), style);
  }
  text += section("Terms of a sequence's state", state_terms_text(plan, style), style);
  text += section("Placements of the table", candidates_text(plan, style), style);
  text += section("Terms of a decode step (estimate)", time_terms_text(plan.speed.step, sources, style), style);
  text += section("Terms of a prefill chunk (estimate)", time_terms_text(plan.speed.chunk, sources, style), style);
  text += section("Assumptions of the speeds", bullets(plan.speed.assumptions, style), style);
  text += section("Machine", machine_text(plan, sources, style), style);
  for (const sizing::Recipe& recipe : plan.recipes) {
    text += section(fmt::format("{}{}", engine_name(recipe.engine), recipe.runs ? "" : " cannot run this plan"),
                    engine_text(recipe, sources, style), style);
  }
  return text + section("Sources", sources.list(style), style);
}

}  // namespace rowtide::cli::plan
