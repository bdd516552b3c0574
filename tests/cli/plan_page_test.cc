// Pages and JSON of plans made by hand: what is shown of every figure, in which width, with which letters.
#include "cli/plan/plan_page.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "cli/plan/plan_json.h"
#include "cli/plan/pool_bar.h"
#include "cli/text_table.h"

namespace rowtide::cli::plan {
namespace {

using sizing::Part;
using sizing::Placement;
using sizing::Plan;
using sizing::Pool;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr std::uint64_t kGib = std::uint64_t{1} << 30;

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::size_t widest(const std::string& text) {
  std::size_t most = 0;
  for (const std::string& line : lines_of(text)) most = std::max(most, shown_columns(line));
  return most;
}

std::size_t count(const std::string& text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++found;
  return found;
}

Pool pool_of(std::uint64_t capacity_gib, std::vector<std::uint64_t> items_gib) {
  Pool pool{"unified memory", "", capacity_gib * kGib, "as sold", {}};
  for (std::uint64_t item : items_gib) {
    pool.items.push_back({fmt::format("item {}", pool.items.size()), item * kGib, "formula", "source"});
  }
  return pool;
}

sizing::Model model() {
  sizing::Model model;
  model.name = "Modelname";
  model.precision = "NVFP4";
  model.part(Part::kDense) = {10 * kGib, 5'000'000'000, "headers"};
  model.part(Part::kRoutedExpert) = {60 * kGib, 120'000'000'000, "headers"};
  model.part(Part::kTable) = {50 * kGib, 51'000'000'000, "headers"};
  model.context_most = 262'144;
  return model;
}

sizing::Recipe recipe_of(sizing::EngineId engine, bool runs) {
  sizing::Recipe recipe;
  recipe.engine = engine;
  recipe.runs = runs;
  if (!runs) recipe.limits = {{"no-tier", "has no tier on disk", "owner/engine#1"}};
  recipe.environment = {{"GGML_BACKEND_PATH", "librowtide-ggml.so"}};
  recipe.arguments = {"llama-server", "-m", "MODEL.gguf"};
  recipe.notes = {"cap the container"};
  return recipe;
}

Plan plan_of() {
  Plan plan;
  plan.request.model = model();
  sizing::Device& device = plan.request.machine.device;
  device.id = "dgx-spark";
  device.name = "NVIDIA DGX Spark (GB10)";
  device.is_unified = true;
  device.sold_as = "128 GB";
  device.visible_bytes = 121 * kGib;
  device.bandwidth_bytes_per_s = 273e9;
  plan.request.context = 32'768;
  plan.request.concurrency = 4;
  plan.engine = sizing::EngineId::kSglang;
  plan.fits = plan.runs = true;
  plan.verdict = "Modelname NVFP4 on NVIDIA DGX Spark (GB10) fits, its table on NVMe.";
  plan.pools = {pool_of(121, {60, 10, 26})};
  plan.pools.push_back({"disk", "", 0, "not known", {{"checkpoint", 120 * kGib, "whole", "headers"}}});
  plan.placement = Placement::kNvme;
  plan.placement_reason = "device: 12.0 GiB short";
  plan.cache_bytes = 4 * kGib;
  plan.table = {.placement = Placement::kNvme,
                .bytes = 50 * kGib,
                .hit_share = 0.43,
                .reads_per_s_decode = 480,
                .reads_per_s_prefill = 62'000,
                .limit_share_decode = 0.0048,
                .limit_share_prefill = 0.62,
                .us_per_step = 900,
                .us_per_step_added = 250,
                .ms_per_chunk = 200,
                .ms_per_chunk_added = 0,
                .is_hidden_prefill = true,
                .bottleneck = "drive",
                .assumptions = {"text repeats as in the corpora"}};
  plan.candidates = {{Placement::kDevice, false, true, 12 * kGib, "12.0 GiB short", {}},
                     {Placement::kNvme, true, true, 0, "fits, 25.0 GiB left", plan.table}};
  plan.kv = {12'288, {{"keys and values", 12'288, "12 layers x 512 values x 2 B"}}, 3 * kGib, 2 * kGib, 1'234'567, 37};
  plan.speed = {.decode_tok_s = 28.46,
                .decode_total_tok_s = 101.5,
                .decode_bound_tok_s = 71.3,
                .bytes_per_token = 3.8e9,
                .prefill_tok_s = 1'234,
                .ttft_ms = 850,
                .request_tok_s = 19.4,
                .tokens_per_step = 2.5,
                .step = {{"weights", 14.1, "3.8 GB / 270 GB/s", "device data"}, {"overhead", 22, "fixed", "a report"}},
                .chunk = {{"arithmetic", 700, "12 TFLOP", "device data"}},
                .assumptions = {"drafts are accepted as published"}};
  plan.next_bottleneck = "time: overhead takes 22.0 ms of a step";
  plan.recipes = {recipe_of(sizing::EngineId::kSglang, true), recipe_of(sizing::EngineId::kVllm, false)};
  plan.warnings = {"narrow: the engine's share"};
  plan.notes = {"a note on what was chosen"};
  return plan;
}

TEST(PoolBar, ShowsEveryItemAtItsShareAndWhatIsFree) {
  const auto lines = lines_of(pool_text(pool_of(100, {50, 25}), "128 GB", {.width = 105}));
  ASSERT_EQ(lines.size(), 3u) << "both items in one line";
  EXPECT_EQ(lines[0], "Unified memory: 100.0 GiB (sold as 128 GB); 75.0 GiB used, 25.0 GiB free");
  EXPECT_EQ(lines[1], "  [" + std::string(50, '#') + std::string(25, '=') + std::string(25, '.') + "]");
  EXPECT_EQ(lines[2], "  # item 0  50.0 GiB   50 %  = item 1  25.0 GiB   25 %");
}

TEST(PoolBar, OfUtf8HasBlocks) {
  const std::string text = pool_text(pool_of(100, {50, 25}), "", {.utf8 = true, .width = 105});
  EXPECT_EQ(count(text, "█"), 51u);
  EXPECT_EQ(count(text, "▓"), 26u);
  EXPECT_EQ(count(text, "·"), 25u);
  EXPECT_EQ(widest(text), 104u);
}

TEST(PoolBar, MarksWhereTheCapacityEnds) {
  const auto lines = lines_of(pool_text(pool_of(60, {50, 25}), "", {.width = 80}));
  EXPECT_EQ(lines[0], "Unified memory: 60.0 GiB; 75.0 GiB needed, 15.0 GiB (16.1 GB) missing");
  EXPECT_EQ(lines[1], "  [" + std::string(50, '#') + std::string(10, '=') + "|" + std::string(15, '=') + "]");
  EXPECT_THAT(lines[2], HasSubstr("50.0 GiB   83 %"));
}

TEST(PoolBar, MarksALittleTooMuchAsWell) {
  Pool pool = pool_of(60, {60});
  pool.items.push_back({"one byte", 1, "", ""});
  const std::string text = pool_text(pool, "", {.width = 80});
  EXPECT_THAT(text, HasSubstr("1 B missing"));
  EXPECT_EQ(count(text, "|"), 1u);
}

TEST(PoolBar, OfItemsTooSmallToDrawHasTheirLinesAllTheSame) {
  Pool pool = pool_of(100, {50});
  pool.items.push_back({"logits", 1 << 20, "", ""});
  pool.items.push_back({"runtime", 2 * kGib, "", ""});
  const std::string text = pool_text(pool, "", {.width = 105});
  EXPECT_THAT(text, HasSubstr("    logits    1.0 MiB <0.1 %"));
  EXPECT_THAT(text, HasSubstr("= runtime"));
  EXPECT_THAT(text, HasSubstr(std::string(50, '#') + "==."));
}

TEST(PoolBar, OfUnknownCapacityHasNeitherBarNorShares) {
  const std::string text = pool_text(pool_of(0, {50}), "", {.width = 80});
  EXPECT_THAT(text, HasSubstr("50.0 GiB (53.7 GB) needed"));
  EXPECT_THAT(text, AllOf(Not(HasSubstr("[")), Not(HasSubstr("%")), Not(HasSubstr("missing"))));
}

TEST(PoolBar, OfNothingIsFree) {
  EXPECT_THAT(pool_text(pool_of(10, {}), "", {.width = 65}), HasSubstr("[" + std::string(60, '.') + "]"));
}

TEST(PlanPage, BeginsWithTheVerdictAndHasEverySection) {
  const std::string page = page_of(plan_of(), {});
  EXPECT_THAT(page, StartsWith(plan_of().verdict));
  for (const char* words : {"Unified memory: 121.0 GiB (sold as 128 GB); 96.0 GiB used, 25.0 GiB free",
                            "Table of 50.0 GiB (53.7 GB) on NVMe",
                            "device: 12.0 GiB short",
                            "480 reads/s, 0.5 % of what the drive can do; adds 0.25 ms to a step",
                            "62,000 reads/s, 62 % of what the drive can do; adds nothing to a chunk",
                            "4.0 GiB, from which 43 % of look-ups are served",
                            "KV cache 12.0 KiB f16 a token",
                            "2.0 GiB for 4 sequences of 32,768 tokens",
                            "3.0 GiB were to be had, 2.0 GiB are",
                            "estimate",
                            "28.5 tok/s a stream, 102 all 4 together",
                            "upper bound by bandwidth alone: 71.3",
                            "1,234 tok/s in chunks of 2,048",
                            "850 ms after a prompt",
                            "target 1,000 ms: kept",
                            "19.4 tok/s over all of its time",
                            "target 20 tok/s: missed",
                            "overhead takes 22.0 ms",
                            "- narrow: the engine's share",
                            "- a note on what was chosen",
                            "Launch with SGLang; with --explain also vLLM (cannot run this)",
                            "llama-server -m MODEL.gguf"}) {
    EXPECT_THAT(page, HasSubstr(words));
  }
  EXPECT_EQ(page.find('\033'), std::string::npos);
  EXPECT_LE(lines_of(page).size(), 40u);
}

TEST(PlanPage, SumsUpWhatSequencesKeepAndWhatIsSmall) {
  Plan plan = plan_of();
  Pool& pool = plan.pools.front();
  for (const char* name : {"keys and values, attention", "index keys, attention", "state, memory"}) {
    pool.items.push_back({name, 2 * kGib, "", ""});
  }
  pool.items.push_back({"logits", 1 << 20, "", ""});
  EXPECT_THAT(page_of(plan, {}), AllOf(HasSubstr("keys, values and states   6.0 GiB"), HasSubstr("logits")));
  pool.items.push_back({"activations", 3 << 20, "", ""});
  const std::string page = page_of(plan, {});
  EXPECT_THAT(page, AllOf(HasSubstr("2 smaller items           4.0 MiB"), Not(HasSubstr("logits"))));
  EXPECT_THAT(explanation_of(plan, {}), AllOf(HasSubstr("index keys, attention"), HasSubstr("logits")));
}

TEST(PlanPage, KeepsToItsWidth) {
  for (std::size_t width : {60u, 80u, 100u}) {
    EXPECT_LE(widest(page_of(plan_of(), {.utf8 = true, .width = width})), width) << width;
    EXPECT_LE(widest(explanation_of(plan_of(), {.utf8 = true, .width = width})), width) << width;
  }
}

TEST(PlanPage, KeepsToItsWidthInColour) {
  EXPECT_LE(widest(page_of(plan_of(), {.colours = true, .utf8 = true, .width = 70})), 70u);
}

TEST(PlanPage, IsAsciiWithoutUtf8) {
  const std::string text = page_of(plan_of(), {}) + explanation_of(plan_of(), {});
  EXPECT_TRUE(std::ranges::all_of(text, [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
}

TEST(PlanPage, InColourSaysTheSame) {
  std::string page = page_of(plan_of(), {.colours = true, .utf8 = true});
  const std::string plain = page_of(plan_of(), {.utf8 = true});
  for (std::size_t at = page.find('\033'); at != std::string::npos; at = page.find('\033')) {
    page.erase(at, page.find('m', at) + 1 - at);
  }
  EXPECT_EQ(page, plain);
}

TEST(PlanPage, OfAPlanThatDoesNotFitSaysByHowMuchAndIsPrintedInFull) {
  Plan plan = plan_of();
  plan.fits = false;
  plan.missing_bytes = 9 * kGib;
  plan.verdict = "Modelname does not fit: 9.1 GB are missing.";
  plan.pools.front() = pool_of(121, {60, 70});
  const std::string page = page_of(plan, {});
  EXPECT_THAT(page, StartsWith("Modelname does not fit"));
  EXPECT_THAT(page, HasSubstr("9.0 GiB (9.7 GB) missing"));
  EXPECT_THAT(page, HasSubstr("once it fits"));
  EXPECT_THAT(page, AllOf(HasSubstr("KV cache"), HasSubstr("Speed"), HasSubstr("Table of")));
}

TEST(PlanPage, OfAnEngineThatCannotRunItGivesTheReasonInsteadOfACommand) {
  Plan plan = plan_of();
  plan.engine = sizing::EngineId::kVllm;
  const std::string page = page_of(plan, {});
  EXPECT_THAT(page, HasSubstr("- has no tier on disk"));
  EXPECT_THAT(page, Not(HasSubstr("llama-server -m")));
}

TEST(PlanPage, OfAModelWithoutATableHasNoneOfIt) {
  Plan plan = plan_of();
  plan.placement.reset();
  plan.candidates.clear();
  plan.table = {};
  const std::string page = page_of(plan, {});
  EXPECT_THAT(page, AllOf(Not(HasSubstr("Table")), Not(HasSubstr("reads/s"))));
  EXPECT_TRUE(to_json(plan)["table"].is_null());
}

TEST(PlanPage, ExplainsEveryTermAndSource) {
  const std::string text = explanation_of(plan_of(), {});
  for (const char* words :
       {"routed experts", "120,000,000,000 parameters", "[headers]", "Terms of unified memory", "formula [source]",
        "as sold", "12 layers x 512 values x 2 B", "Placements of the table", "12.0 GiB (12.9 GB) missing",
        "text repeats as in the corpora", "3.8 GB / 270 GB/s [device data]", "22.0 ms", "12 TFLOP",
        "drafts are accepted as published", "vLLM cannot run this plan", "owner/engine#1", "cap the container"}) {
    EXPECT_THAT(text, HasSubstr(words));
  }
}

TEST(PlanPage, NumbersLongSourcesAndListsEachOnce) {
  Plan plan = plan_of();
  const std::string report = "a report of many words, by somebody who measured it";
  for (sizing::TimeTerm& term : plan.speed.step) term.source = report;
  const std::string text = explanation_of(plan, {});
  EXPECT_EQ(count(text, report), 1u);
  EXPECT_THAT(text, AllOf(HasSubstr("3.8 GB / 270 GB/s [1]"), HasSubstr("fixed [1]"),
                          HasSubstr("\nSources\n    1  " + report)));
}

TEST(PlanTables, ComparePlansSideBySide) {
  Plan other = plan_of();
  other.fits = false;
  other.missing_bytes = 12 * kGib;
  other.placement = Placement::kDevice;
  other.pools.push_back({"host memory", "", 64 * kGib, "", {}});
  const std::string text = comparison_of({"nvme", "device"}, {plan_of(), other}, {});
  const auto lines = lines_of(text);
  EXPECT_THAT(lines[0], AllOf(HasSubstr("nvme"), HasSubstr("device")));
  EXPECT_THAT(lines[1], AllOf(HasSubstr("verdict"), HasSubstr("fits"), HasSubstr("12.0 GiB short")));
  EXPECT_THAT(text, AllOf(HasSubstr("96.0 GiB of 121.0 GiB"), HasSubstr("0 B of 64.0 GiB"), HasSubstr("1,234,567"),
                          HasSubstr("19.4 (missed)"), Not(HasSubstr("price"))));
}

class SearchText : public testing::Test {
 protected:
  static sizing::Searched searched(std::uint32_t devices, bool fits, bool runs) {
    return {.device = "dgx-spark",
            .devices = devices,
            .nodes = devices,
            .tp = devices,
            .placement = Placement::kNvme,
            .fits = fits,
            .runs = runs,
            .missing_bytes = fits ? 0 : kGib / devices,
            .kv_tokens = 1'000'000,
            .price_per_million_tokens = 1.5,
            .verdict = fmt::format("Verdict of {}.", devices)};
  }
};

TEST_F(SearchText, MarksTheOneToTake) {
  const std::string text = search_text({searched(4, true, true), searched(2, false, true)}, {});
  EXPECT_EQ(count(text, "\n  > "), 1u);
  EXPECT_THAT(text, AllOf(HasSubstr(">  4 x dgx-spark"), HasSubstr("512.0 MiB short"), HasSubstr("1,000,000"),
                          HasSubstr("1.50"), HasSubstr("Take the marked one: Verdict of 4.")));
}

TEST_F(SearchText, MarksTheFirstThatAnEngineRuns) {
  const std::string text = search_text({searched(4, true, false), searched(8, true, true)}, {});
  EXPECT_THAT(text, AllOf(HasSubstr("fits, no engine"), HasSubstr(">  8 x dgx-spark"), HasSubstr("Verdict of 8.")));
  const std::string none = search_text({searched(4, true, false)}, {});
  EXPECT_THAT(none, AllOf(Not(HasSubstr("\n  > ")), HasSubstr("No engine runs any of them. Verdict of 4.")));
}

TEST_F(SearchText, SaysWhereNothingFits) {
  const std::string text = search_text({searched(2, false, true)}, {});
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\n  > ")), HasSubstr("None fits. Verdict of 2.")));
}

TEST_F(SearchText, ShowsOfWhatDoesNotFitTheNearestOfEachNumber) {
  sizing::Searched farther = searched(2, false, true);
  farther.missing_bytes = 9 * kGib;
  const std::string text =
      search_text({searched(4, true, true), searched(4, false, true), farther, searched(2, false, true)}, {});
  EXPECT_EQ(count(text, " short"), 1u);
  EXPECT_THAT(text, AllOf(HasSubstr("512.0 MiB short"), HasSubstr("and 2 more that do not fit")));
}

TEST(PlanTables, ChecklistIsNumberedWithCommands) {
  const std::string text =
      checklist_text({{"the memory", "free -b", "121 GiB"}, {"the drive", "rowtide calibrate .", ""}}, {});
  EXPECT_EQ(text,
            "  1. the memory\n       free -b\n     Right: 121 GiB\n\n  2. the drive\n       rowtide calibrate .\n");
}

TEST(PackedCommand, FillsLinesAndStaysOneCommand) {
  const std::string text = "ENV=1 \\\nserver \\\n  --one 1 \\\n  --two 22222222 \\\n  --three 3\n";
  EXPECT_EQ(packed_command(text, 2, 100), "  ENV=1 server --one 1 --two 22222222 --three 3\n");
  EXPECT_EQ(packed_command(text, 2, 32), "  ENV=1 server --one 1 \\\n      --two 22222222 --three 3\n");
}

TEST(PlanJson, HasTheKeysThatProgramsRely) {
  const Json json = to_json(plan_of());
  EXPECT_EQ(json["model"]["bytes_rest"], 70 * kGib);
  EXPECT_EQ(json["model"]["parts"].size(), 3u);
  EXPECT_EQ(json["machine"]["sold_as"], "128 GB");
  EXPECT_EQ(json["load"]["kv"], "f16");
  EXPECT_EQ(json["engine"], "SGLang");
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["pools"][0]["free_bytes"], 25 * kGib);
  EXPECT_EQ(json["pools"][0]["items"][2]["bytes"], 26 * kGib);
  EXPECT_EQ(json["table"]["placement"], "nvme");
  EXPECT_EQ(json["table"]["candidates"][0]["placement"], "device");
  EXPECT_EQ(json["table"]["candidates"][0]["missing_bytes"], 12 * kGib);
  EXPECT_EQ(json["kv"]["tokens"], 1'234'567);
  EXPECT_EQ(json["speed"]["step"][1]["ms"], 22.0);
  EXPECT_EQ(json["targets"]["ttft_met"], true);
  EXPECT_EQ(json["targets"]["tok_s_met"], false);
  EXPECT_EQ(json["recipes"]["sglang"]["environment"]["GGML_BACKEND_PATH"], "librowtide-ggml.so");
  EXPECT_EQ(json["recipes"]["vllm"]["limits"][0]["id"], "no-tier");
  EXPECT_TRUE(json["memory_fraction_band"].is_null());
  EXPECT_TRUE(json["price_per_million_tokens"].is_null());
}

TEST(PlanJson, HasBandAndPriceWhereThereAre) {
  Plan plan = plan_of();
  plan.memory_fraction_band = {0.66, 0.79};
  plan.price_per_million_tokens = 2.5;
  const Json json = to_json(plan);
  EXPECT_EQ(json["memory_fraction_band"], Json::array({0.66, 0.79}));
  EXPECT_EQ(json["price_per_million_tokens"], 2.5);
}

}  // namespace
}  // namespace rowtide::cli::plan
