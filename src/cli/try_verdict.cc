#include "cli/try_verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/text_table.h"
#include "rowtide/byte_size.h"

namespace rowtide::cli {
namespace {

constexpr std::array<const char*, 2> kMethods{"stock", "rowtide"}, kStates{"cold", "warm"};

double value(const TryRun& run, Figure figure) {
  switch (figure) {
    case Figure::kGatherSeconds: return run.gather_seconds;
    case Figure::kPromptTokS: return run.prompt_tok_s;
    case Figure::kDecodeTokS: return run.decode_tok_s;
  }
  return 0;
}

template <class Value>
Spread spread_over(const std::vector<TryRun>& runs, std::string_view method, std::string_view state, Value value_of) {
  std::vector<double> values;
  for (const TryRun& run : runs) {
    if (run.method == method && run.state == state) values.push_back(static_cast<double>(value_of(run)));
  }
  return spread_of(std::move(values));
}

std::string seconds_text(double seconds) {
  constexpr double kMs = 1e3;
  return seconds < 1 ? fmt::format("{:.3g} ms", kMs * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string gather_words(const std::vector<TryRun>& runs, std::string_view state) {
  const Comparison gather = compare(runs, state, Figure::kGatherSeconds);
  const std::string both =
      fmt::format("{} against {}", seconds_text(gather.rowtide.median), seconds_text(gather.stock.median));
  if (gather.overlap()) return fmt::format("{} within the spread of each other ({})", state, both);
  return fmt::format("{} in {:.2f} of the time ({})", state, gather.ratio(), both);
}

std::string speed_words(const std::vector<TryRun>& runs, Figure figure, std::string_view what) {
  const Comparison cold = compare(runs, "cold", figure), warm = compare(runs, "warm", figure);
  auto words = [](const Comparison& speed) {
    return speed.overlap() ? std::string("the same within the spread")
                           : fmt::format("{:.2f} of stock's", speed.ratio());
  };
  return fmt::format("{} tokens/s cold {}, warm {}", what, words(cold), words(warm));
}

/// The share of rows that a warm reading of Rowtide's still had to read: its budget did not hold them.
double warm_miss_share(const std::vector<TryRun>& runs) {
  const Spread missed = spread_over(runs, "rowtide", "warm", [](const TryRun& run) {
    return static_cast<double>(run.missed_rows) / static_cast<double>(std::max<std::uint64_t>(1, run.rows));
  });
  return missed.median;
}

std::string spread_text(const Spread& spread, int digits) {
  return fmt::format("{:.{}f} ({:.{}f} to {:.{}f})", spread.median, digits, spread.least, digits, spread.most, digits);
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  return {values.front(), values[values.size() / 2], values.back()};
}

Comparison compare(const std::vector<TryRun>& runs, std::string_view state, Figure figure) {
  auto of = [&](const TryRun& run) { return value(run, figure); };
  return {spread_over(runs, "stock", state, of), spread_over(runs, "rowtide", state, of)};
}

bool same_output(const std::vector<TryRun>& runs) {
  return std::all_of(runs.begin(), runs.end(),
                     [&](const TryRun& run) { return run.logits_sha256 == runs.front().logits_sha256; });
}

std::string verdict(const std::vector<TryRun>& runs) {
  if (!same_output(runs)) return "The output differs, so no other figure counts: this is a fault, please report it.";
  std::string text =
      fmt::format("Same output; Rowtide gathers the prompt's rows {}, {}; {}; {}", gather_words(runs, "cold"),
                  gather_words(runs, "warm"), speed_words(runs, Figure::kPromptTokS, "prompt"),
                  speed_words(runs, Figure::kDecodeTokS, "decode"));
  constexpr double kWorthSaying = 0.01;
  if (const double share = warm_miss_share(runs); share > kWorthSaying) {
    text += fmt::format("; {:.0f} % of the warm rows did not fit its memory and were read again", 100 * share);
  }
  return text + ".";
}

std::string table_text(const std::vector<TryRun>& runs) {
  std::vector<std::vector<std::string>> lines{
      {"method", "state", "gather, s", "prompt, tokens/s", "decode, tokens/s", "memory for the table", "reads"}};
  for (const char* state : kStates) {
    for (const char* method : kMethods) {
      auto spread = [&](auto of) { return spread_over(runs, method, state, of); };
      lines.push_back(
          {method, state, spread_text(spread([](const TryRun& run) { return run.gather_seconds; }), 3),
           spread_text(spread([](const TryRun& run) { return run.prompt_tok_s; }), 1),
           spread_text(spread([](const TryRun& run) { return run.decode_tok_s; }), 1),
           byte_size_text(
               static_cast<std::uint64_t>(spread([](const TryRun& run) { return run.memory_bytes(); }).median)),
           grouped(static_cast<std::uint64_t>(spread([](const TryRun& run) { return run.reads; }).median))});
    }
  }
  return columns(lines, 2);
}

Json runs_json(const std::vector<TryRun>& runs) {
  Json list = Json::array();
  for (const TryRun& run : runs) {
    list.push_back({{"method", run.method},
                    {"state", run.state},
                    {"gather_seconds", run.gather_seconds},
                    {"prompt_tok_s", run.prompt_tok_s},
                    {"decode_tok_s", run.decode_tok_s},
                    {"memory_bytes", run.memory_bytes()},
                    {"reads", run.reads},
                    {"rows", run.rows},
                    {"missed_rows", run.missed_rows},
                    {"store_bytes", run.store_bytes},
                    {"page_cache_bytes", run.page_cache_bytes},
                    {"private_bytes", run.private_bytes},
                    {"first_row_seconds", run.first_row_seconds},
                    {"resident_share_before", run.resident_share_before},
                    {"logits_sha256", run.logits_sha256}});
  }
  return list;
}

Json ratios_json(const std::vector<TryRun>& runs) {
  auto ratio = [&](const char* state, Figure figure) {
    const Comparison found = compare(runs, state, figure);
    return Json{{"rowtide_over_stock", found.ratio()}, {"overlap", found.overlap()}};
  };
  Json ratios;
  for (const char* state : kStates) {
    ratios[state] = {{"gather_seconds", ratio(state, Figure::kGatherSeconds)},
                     {"prompt_tok_s", ratio(state, Figure::kPromptTokS)},
                     {"decode_tok_s", ratio(state, Figure::kDecodeTokS)}};
  }
  return ratios;
}

}  // namespace rowtide::cli
