#include "cli/doctor/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/text_table.h"

namespace rowtide::cli::doctor {
namespace {

constexpr std::uint64_t kMibBytes = std::uint64_t{1} << 20;
constexpr std::size_t kLevelWidth = 7;  // "problem"
constexpr std::size_t kIdWidth = 14;    // "unified memory"
constexpr std::size_t kIndent = 2 + kLevelWidth + 2 + kIdWidth + 2;

std::string level_cell(Level level, bool colours) {
  std::string cell = fmt::format("{:<{}}", level_name(level), kLevelWidth);
  if (!colours) return cell;
  const char* colour = level == Level::kOk        ? "32"
                       : level == Level::kNote    ? "36"
                       : level == Level::kWarning ? "33"
                                                  : "31";
  return fmt::format("\033[{}m{}\033[0m", colour, cell);
}

std::string entry(const Finding& finding, bool colours, std::size_t width) {
  std::string id(finding.id);
  std::ranges::replace(id, '_', ' ');
  std::string text = fmt::format("  {}  {:<{}}  {}", level_cell(finding.level, colours), id, kIdWidth,
                                 wrapped(finding.finding, kIndent, width));
  const std::string margin(kIndent, ' ');
  if (!finding.meaning.empty()) text += margin + wrapped(finding.meaning, kIndent, width);
  if (!finding.fix.empty()) text += margin + wrapped("Mend: " + finding.fix, kIndent, width);
  return text;
}

std::string summary(const Findings& findings) {
  const auto count = [&](Level level) {
    return std::ranges::count_if(findings, [level](const Finding& finding) { return finding.level == level; });
  };
  const auto problems = count(Level::kProblem), warnings = count(Level::kWarning);
  const std::string warned = warnings == 0 ? "" : fmt::format(", {} warning{}", warnings, warnings == 1 ? "" : "s");
  if (problems == 0) return fmt::format("Nothing stands in the way{}", warned);
  return fmt::format("{} problem{} in the way{}", problems, problems == 1 ? " stands" : "s stand", warned);
}

}  // namespace

std::string page_of(const Findings& findings, std::uint64_t suggested_memory_bytes, bool colours, std::size_t width) {
  std::string text;
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const bool first_of_group = i == 0 || findings[i - 1].group != findings[i].group;
    if (first_of_group) text += fmt::format("{}{}\n", i == 0 ? "" : "\n", group_name(findings[i].group));
    text += entry(findings[i], colours, width);
  }
  return text + fmt::format("\n{}. Memory to begin with: --memory {}MiB.\n", summary(findings),
                            suggested_memory_bytes / kMibBytes);
}

}  // namespace rowtide::cli::doctor
