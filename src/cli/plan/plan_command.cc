// rowtide plan: what fits where, how fast it will be, and what to type.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/plan/plan_arguments.h"
#include "cli/plan/plan_json.h"
#include "cli/plan/plan_page.h"
#include "cli/terminal.h"

namespace rowtide::cli {
namespace plan {
namespace {

using sizing::Plan;
using sizing::PlanOptions;

constexpr std::string_view kThisMachine = "this-machine";

/// What was asked for beside the plan itself.
struct Views {
  bool search = false, explain = false, checklist = false;
  std::vector<std::string> compare;
};

Plan plan_for(const PlanOptions& options) { return make_plan(opened(resolve(options))); }

/// A column of a comparison.
struct Compared {
  std::string name;
  Plan plan;
};

bool is_placement(std::string_view name) {
  return std::ranges::any_of(sizing::kPlacements,
                             [name](sizing::Placement placement) { return placement_name(placement) == name; });
}

/// `options` with the table at that placement, or on that device.
PlanOptions changed(PlanOptions options, const std::string& name) {
  if (is_placement(name)) {
    options.placement = name;
    return options;
  }
  options.this_machine = name == kThisMachine;
  options.device = options.this_machine ? "" : name;
  return options;
}

/// What was asked for by itself comes first where it differs from all that it is compared with.
std::vector<Compared> compare(const PlanOptions& options, const std::vector<std::string>& names) {
  const bool has_device = !options.device.empty() || options.this_machine;
  const auto first_device = std::ranges::find_if_not(names, is_placement);
  const bool by_device = first_device != names.end();
  std::vector<Compared> compared;
  if (by_device && has_device) {
    const std::string own = options.this_machine ? std::string(kThisMachine) : options.device;
    if (std::ranges::find(names, own) == names.end()) compared.push_back({own, plan_for(options)});
  } else if (!by_device && !options.placement.empty() && std::ranges::find(names, options.placement) == names.end()) {
    compared.push_back({options.placement, plan_for(options)});
  }
  PlanOptions base = options;
  if (by_device && !has_device) base = changed(options, *first_device);
  for (const std::string& name : names) compared.push_back({name, plan_for(changed(base, name))});
  return compared;
}

Json to_json(const std::vector<Compared>& compared) {
  Json list = Json::array();
  for (const Compared& one : compared) {
    Json summary = cli::to_json(summary_of(one.plan));
    Json entry = {{"name", one.name}};
    entry.update(summary);
    list.push_back(std::move(entry));
  }
  return list;
}

Json to_json(const std::vector<sizing::Searched>& searched) {
  Json list = Json::array();
  for (const sizing::Searched& one : searched) list.push_back(cli::to_json(one));
  return list;
}

/// All that was asked for. `searched` and `compared` are empty unless asked for.
struct Answer {
  Plan plan;
  std::vector<sizing::Searched> searched;
  std::vector<Compared> compared;

  /// What was asked about fits and runs: of several that were looked at, one does.
  bool is_so() const {
    if (!searched.empty()) {
      return std::ranges::any_of(searched, [](const sizing::Searched& one) { return one.fits && one.runs; });
    }
    if (!compared.empty()) {
      return std::ranges::any_of(compared, [](const Compared& one) { return one.plan.fits && one.plan.runs; });
    }
    return plan.fits && plan.runs;
  }
};

Answer answer_to(const PlanOptions& options, const Views& views) {
  Answer answer;
  if (!views.compare.empty()) answer.compared = compare(options, views.compare);
  answer.plan = answer.compared.empty() ? plan_for(options) : answer.compared.front().plan;
  if (views.search) answer.searched = search(answer.plan.request);
  return answer;
}

Json to_json(const Answer& answer, const Views& views) {
  Json document = cli::to_json(answer.plan);
  if (views.search) document["searched"] = to_json(answer.searched);
  if (!views.compare.empty()) document["compared"] = to_json(answer.compared);
  if (views.checklist) document["checklist"] = cli::to_json(checklist(answer.plan));
  return document;
}

std::string compared_text(const std::vector<Compared>& compared, const PageStyle& style) {
  std::vector<std::string> names;
  std::vector<Plan> plans;
  for (const Compared& one : compared) {
    names.push_back(one.name);
    plans.push_back(one.plan);
  }
  return comparison_of(names, plans, style);
}

/// Search, comparison and checklist stand for the page, unless it is asked for by --explain.
std::string text_of(const Answer& answer, const Views& views, const PageStyle& style) {
  std::vector<std::string> parts;
  if (views.search) parts.push_back(search_text(answer.searched, style));
  if (!views.compare.empty()) parts.push_back(compared_text(answer.compared, style));
  if (views.explain || (parts.empty() && !views.checklist)) parts.push_back(page_of(answer.plan, style));
  if (views.explain) parts.back() += explanation_of(answer.plan, style);
  if (views.checklist) parts.push_back(checklist_text(checklist(answer.plan), style));
  if (!views.explain && (views.search || views.checklist || !views.compare.empty())) {
    parts.front() = coloured(title_of(answer.plan), Colour::kHeading, style) + "\n\n" + parts.front();
  }
  return fmt::format("{}", fmt::join(parts, "\n"));
}

PageStyle style_of_output() { return {wants_colours(), shows_utf8(), page_width(60, 100)}; }

}  // namespace
}  // namespace plan

ExitCode run_plan(const Arguments& arguments) {
  std::optional<std::string> path;
  plan::Views views;
  std::deque<plan::GivenOption> given;
  bool json = false;
  ArgumentParser parser(
      "rowtide plan",
      "Says what of a model must be in device or unified memory, what goes to host memory and what to NVMe; which\n"
      "context and how many sequences remain; how fast it will be, as an estimate with its assumptions; and what to\n"
      "type. The model is a checkpoint, of which headers are read, or one of a described set; the machine one of a\n"
      "list, or the one at hand. An unknown name lists what there is.\n\n"
      "The end is 1 where it does not fit; the plan says by how much, and what to change.",
      "  rowtide plan --model qwen3.8-flash-next --precision NVFP4 --device dgx-spark\n"
      "  rowtide plan model-00001-of-00003.gguf --this-machine --context 262144\n"
      "  rowtide plan --model deepseek-v4.1-flash --device dgx-spark --devices 8 --search\n"
      "  rowtide plan --model qwen3.8-flash-next --device rtx-pro-6000 --compare host,nvme\n"
      "  rowtide plan --model qwen3.8-flash-next --device dgx-spark --explain\n",
      json);
  parser.optional_path(path, "a GGUF or safetensors file, an index, a checkpoint's folder or a hub's snapshot");
  parser.flag("--explain", views.explain, "every term with its formula and source, every assumption, other placements");
  parser.flag("--search", views.search, "the smallest numbers of devices and ranks that fit, up to --devices");
  parser.list("--compare", "NAME...", views.compare, "side by side: devices, or places of the table: nvme,host");
  parser.flag("--checklist", views.checklist, "what to verify on the real machine, with the commands");
  plan::declare_options(parser, given);
  if (!parser.parse(arguments)) return kExitDone;

  const plan::Answer answer = plan::answer_to(plan::options_of(path, given), views);
  if (json) {
    print_json(plan::to_json(answer, views));
  } else {
    fmt::print("{}", plan::text_of(answer, views, plan::style_of_output()));
  }
  return answer.is_so() ? kExitDone : kExitNotSo;
}

}  // namespace rowtide::cli
