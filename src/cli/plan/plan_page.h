// A plan as text for people.
#pragma once

#include <string>
#include <vector>

#include "cli/plan/page_style.h"
#include "sizing/plan.h"

namespace rowtide::cli::plan {

/// What was planned for, in one line: "Qwen3.8-Flash-Next NVFP4 on NVIDIA DGX Spark (GB10): 1 sequence of 32,768
/// tokens".
std::string title_of(const sizing::Plan& plan);

/// The plan in one look: verdict, pools, table, KV cache, speed against the targets, warnings, and what to type.
std::string page_of(const sizing::Plan& plan, const PageStyle& style);

/// Every term with its formula and source, every assumption, what was decided against and why.
std::string explanation_of(const sizing::Plan& plan, const PageStyle& style);

/// Plans side by side, `names` heading the columns.
std::string comparison_of(const std::vector<std::string>& names, const std::vector<sizing::Plan>& plans,
                          const PageStyle& style);

/// What was searched, the first marked as the one to take.
std::string search_text(const std::vector<sizing::Searched>& searched, const PageStyle& style);

/// Numbered, each with its command and what it should say.
std::string checklist_text(const std::vector<sizing::Check>& checks, const PageStyle& style);

/// A command's text with as many options on a line as fit, continued by backslashes, `indent` spaces before each.
std::string packed_command(const std::string& text, std::size_t indent, std::size_t width);

}  // namespace rowtide::cli::plan
