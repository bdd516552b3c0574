// Recipes: the options each engine is started with, and text that a shell takes as it stands.
#include "sizing/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace rowtide::sizing {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;

/// What `command` prints, by the shell that people have.
std::string printed(const std::string& command) {
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  EXPECT_NE(pipe, nullptr);
  std::string text;
  for (int each = std::fgetc(pipe); each != EOF; each = std::fgetc(pipe)) text += static_cast<char>(each);
  EXPECT_EQ(::pclose(pipe), 0) << command;
  return text;
}

/// The value behind an option; "(none)" without it.
std::string value_of(const Recipe& recipe, std::string_view option) {
  for (std::size_t i = 0; i + 1 < recipe.arguments.size(); ++i) {
    if (recipe.arguments[i] == option) return recipe.arguments[i + 1];
  }
  return "(none)";
}

std::string environment_of(const Recipe& recipe, std::string_view name) {
  for (const auto& [each, value] : recipe.environment) {
    if (each == name) return value;
  }
  return "(none)";
}

Request qwen(const char* format, const char* device) {
  Request request;
  request.machine = machine_of(*known_device(device));
  request.model.family = "qwen_ple";
  request.model.format = format;
  request.model.tables.push_back({"table", 1, 320'001'536, 160, 160, 16, 8, 1});
  request.model.part(Part::kTable).bytes = request.model.tables.front().bytes();
  request.model.states.push_back({"Gated DeltaNet", 36, 786'432, 0, 0, false, 48});
  request.model.draft_layers = 1;
  request.context = 262'144;
  request.kv = request.model.format == "gguf" ? KvType::kF16 : KvType::kBf16;
  return request;
}

RecipePlan plan_of(Placement placement) {
  RecipePlan plan;
  plan.placement = placement;
  plan.cache_bytes = std::uint64_t{8} << 30;
  plan.memory_fraction = 0.78;
  plan.container_memory_bytes = (std::uint64_t{20} << 30) - 1;
  return plan;
}

TEST(RecipeText, IsTakenByAShellAsItStands) {
  const std::vector<std::string> awkward = {
      "plain", "",          "two words", "it's",       "\"double\"",   "$HOME", "`id`",     "a\\b",
      "*",     "new\nline", "a;b",       "{\"a\": 1}", "!x",           "~",     "#comment", "-x",
      "a'b'c", "'",         "ü",         "a&b|c>d<e",  "--option=x y", "%s",    "\\",       "[a-z]?"};
  Recipe recipe;
  recipe.arguments = {"printf", "%s\\0"};
  std::string expected;
  for (const std::string& each : awkward) {
    recipe.arguments.push_back(each);
    expected += each + '\0';
  }
  EXPECT_EQ(printed(recipe.text()), expected);
}

TEST(RecipeText, SetsTheEnvironmentForTheProgramAlone) {
  Recipe recipe;
  recipe.environment = {{"ROWTIDE_TEST_A", "it's $HOME"}, {"ROWTIDE_TEST_B", ""}};
  recipe.arguments = {"sh", "-c", "printf '%s|%s' \"$ROWTIDE_TEST_A\" \"$ROWTIDE_TEST_B\""};
  EXPECT_EQ(printed(recipe.text() + "; printf '|%s' \"$ROWTIDE_TEST_A\""), "it's $HOME||");
}

TEST(RecipeText, HasOneOptionALine) {
  Recipe recipe;
  recipe.environment = {{"A", "1"}};
  recipe.arguments = {"vllm", "serve", "MODEL", "--flag", "--max-model-len", "4096"};
  EXPECT_EQ(recipe.text(), "A=1 \\\nvllm serve MODEL \\\n  --flag \\\n  --max-model-len 4096");
}

TEST(LlamaCpp, ServesFromNvmeWithThePlugIn) {
  Request request = qwen("gguf", "dgx-spark");
  request.concurrency = 4;
  request.context = 65'536;
  const Recipe made = recipe(EngineId::kLlamaCpp, request, plan_of(Placement::kNvme), "MODEL.gguf");
  EXPECT_TRUE(made.runs);
  EXPECT_THAT(made.limits, IsEmpty());
  EXPECT_EQ(made.arguments.front(), "llama-server");
  EXPECT_EQ(environment_of(made, "GGML_BACKEND_PATH"), "librowtide-ggml.so");
  EXPECT_EQ(environment_of(made, "ROWTIDE_MEMORY"), "8192MiB");
  EXPECT_EQ(environment_of(made, "ROWTIDE_MODE"), "(none)");
  EXPECT_EQ(value_of(made, "-m"), "MODEL.gguf");
  EXPECT_EQ(value_of(made, "-c"), "262144") << "of four slots together";
  EXPECT_EQ(value_of(made, "-np"), "4");
  EXPECT_EQ(value_of(made, "-ub"), "2048");
  EXPECT_EQ(value_of(made, "-ngl"), "999");
  EXPECT_THAT(made.arguments, Not(Contains("--cache-type-k"))) << "f16 is its default";
  EXPECT_THAT(made.arguments, Not(Contains("-lzm"))) << "llama.cpp reads a table of this size lazily by itself";
  EXPECT_THAT(made.notes, Contains(HasSubstr("--memory 20g")));
}

TEST(LlamaCpp, ModesOfThePlugIn) {
  const Request request = qwen("gguf", "dgx-spark");
  RecipePlan plan = plan_of(Placement::kNvme);
  plan.cache_bytes = 0;
  EXPECT_EQ(environment_of(recipe(EngineId::kLlamaCpp, request, plan, "M"), "ROWTIDE_MODE"), "disk");
  EXPECT_EQ(environment_of(recipe(EngineId::kLlamaCpp, request, plan, "M"), "ROWTIDE_MEMORY"), "(none)");
  plan.cache_bytes = 1;
  EXPECT_EQ(environment_of(recipe(EngineId::kLlamaCpp, request, plan, "M"), "ROWTIDE_MEMORY"), "32MiB");
  plan.placement = Placement::kHost;
  EXPECT_EQ(environment_of(recipe(EngineId::kLlamaCpp, request, plan, "M"), "ROWTIDE_MODE"), "resident");
}

TEST(LlamaCpp, SmallTablesAreAskedToBeLazy) {
  Request request = qwen("gguf", "dgx-spark");
  request.model.part(Part::kTable).bytes = std::uint64_t{4} << 30;
  EXPECT_EQ(value_of(recipe(EngineId::kLlamaCpp, request, plan_of(Placement::kNvme), "M"), "-lzm"), "on");
}

TEST(LlamaCpp, QuantisedKvStopsTheRecipe) {
  Request request = qwen("gguf", "dgx-spark");
  request.kv = KvType::kQ8_0;
  const Recipe made = recipe(EngineId::kLlamaCpp, request, plan_of(Placement::kNvme), "M");
  EXPECT_FALSE(made.runs);
  ASSERT_EQ(made.limits.size(), 1u);
  EXPECT_EQ(made.limits.front().id, "llama-quantised-kv");
}

TEST(LlamaCpp, SpeculatesWithTheDraftModuleOrTheText) {
  Request request = qwen("gguf", "dgx-spark");
  request.speculate = 3;
  const Recipe module = recipe(EngineId::kLlamaCpp, request, plan_of(Placement::kNvme), "M");
  EXPECT_EQ(value_of(module, "--spec-type"), "draft-mtp");
  EXPECT_EQ(value_of(module, "--spec-draft-n-max"), "3");
  EXPECT_THAT(module.notes, Contains(HasSubstr("v0.6.0")));
  request.model.draft_layers = 0;
  const Recipe text = recipe(EngineId::kLlamaCpp, request, plan_of(Placement::kNvme), "M");
  EXPECT_EQ(value_of(text, "--spec-type"), "ngram-simple");
  EXPECT_EQ(value_of(text, "--spec-ngram-simple-size-m"), "3");
}

TEST(LlamaCpp, APlainModelNeedsNoPlugIn) {
  Request request = qwen("gguf", "rtx-5090");
  request.model.family = "";
  request.model.tables.clear();
  request.tp = request.devices = 2;
  const Recipe made = recipe(EngineId::kLlamaCpp, request, plan_of(Placement::kDevice), "M");
  EXPECT_TRUE(made.runs);
  EXPECT_THAT(made.environment, IsEmpty());
  EXPECT_EQ(value_of(made, "-sm"), "layer");
}

TEST(Vllm, ServesFromPinnedMemory) {
  Request request = qwen("safetensors", "rtx-pro-6000");
  request.concurrency = 16;
  request.speculate = 3;
  request.kv = KvType::kFp8;
  request.state = StateType::kBf16;
  const Recipe made = recipe(EngineId::kVllm, request, plan_of(Placement::kPinned), "MODEL");
  EXPECT_TRUE(made.runs);
  EXPECT_EQ(made.arguments[2], "MODEL");
  EXPECT_EQ(value_of(made, "--tensor-parallel-size"), "1");
  EXPECT_EQ(value_of(made, "--max-model-len"), "262144");
  EXPECT_EQ(value_of(made, "--max-num-seqs"), "16");
  EXPECT_EQ(value_of(made, "--max-num-batched-tokens"), "2048");
  EXPECT_EQ(value_of(made, "--kv-cache-dtype"), "fp8");
  EXPECT_EQ(value_of(made, "--mamba-ssm-cache-dtype"), "bfloat16");
  EXPECT_EQ(value_of(made, "--gpu-memory-utilization"), "0.78");
  const auto speculation = nlohmann::json::parse(value_of(made, "--speculative-config"));
  EXPECT_EQ(speculation.at("method"), "mtp");
  EXPECT_EQ(speculation.at("num_speculative_tokens"), 3);
  EXPECT_EQ(nlohmann::json::parse(value_of(made, "--engram-config")).at("cpu_offload"), true);
  EXPECT_THAT(made.arguments, Not(Contains("--enable-expert-parallel")));
  EXPECT_THAT(made.notes, Not(Contains(HasSubstr("shm")))) << "one replica shares with nobody";
}

TEST(Vllm, ReplicasShareATableInSharedMemory) {
  Request request = qwen("safetensors", "b300");
  request.model.family = "deepseek_engram";
  request.devices = 4;
  request.tp = 2;
  request.dp = 2;
  request.ep = 4;
  request.concurrency = 9;
  request.speculate = 5;
  RecipePlan plan = plan_of(Placement::kPinned);
  plan.shared_memory_bytes = 202'758'032'400;
  const Recipe made = recipe(EngineId::kVllm, request, plan, "MODEL");
  EXPECT_EQ(value_of(made, "--data-parallel-size"), "2");
  EXPECT_EQ(value_of(made, "--max-num-seqs"), "5") << "of each replica";
  EXPECT_THAT(made.arguments, Contains("--enable-expert-parallel"));
  EXPECT_EQ(nlohmann::json::parse(value_of(made, "--speculative-config")).at("method"), "dspark");
  EXPECT_THAT(made.notes, Contains(AllOf(HasSubstr("188.833 GiB"), HasSubstr("--shm-size 189g"), HasSubstr("64 MiB"))));
}

TEST(Vllm, OnSeveralNodes) {
  Request request = qwen("safetensors", "dgx-spark");
  request.tp = request.devices = request.nodes = 4;
  const Recipe made = recipe(EngineId::kVllm, request, plan_of(Placement::kDevice), "MODEL");
  EXPECT_EQ(value_of(made, "--nnodes"), "4");
  EXPECT_THAT(made.notes, Contains(HasSubstr("--node-rank 1 to 3")));
  EXPECT_EQ(nlohmann::json::parse(value_of(made, "--engram-config")).at("cpu_offload"), false);
}

TEST(Vllm, HasNoDiskTierAndSaysSo) {
  const Recipe made = recipe(EngineId::kVllm, qwen("safetensors", "dgx-spark"), plan_of(Placement::kNvme), "MODEL");
  EXPECT_FALSE(made.runs);
  EXPECT_EQ(made.limits.front().id, "vllm-disk");
}

TEST(Sglang, ServesFromAFileOnASpark) {
  Request request = qwen("safetensors", "dgx-spark");
  request.speculate = 3;
  request.concurrency = 8;
  const Recipe made = recipe(EngineId::kSglang, request, plan_of(Placement::kNvme), "MODEL");
  EXPECT_TRUE(made.runs);
  EXPECT_EQ(value_of(made, "--model-path"), "MODEL");
  EXPECT_EQ(value_of(made, "--tp"), "1");
  EXPECT_EQ(value_of(made, "--context-length"), "262144");
  EXPECT_EQ(value_of(made, "--max-running-requests"), "8");
  EXPECT_EQ(value_of(made, "--chunked-prefill-size"), "2048");
  EXPECT_EQ(value_of(made, "--mem-fraction-static"), "0.78");
  EXPECT_EQ(value_of(made, "--mamba-ssm-dtype"), "float32");
  EXPECT_EQ(value_of(made, "--speculative-algorithm"), "NEXTN");
  EXPECT_EQ(value_of(made, "--speculative-num-steps"), "3");
  EXPECT_EQ(value_of(made, "--speculative-num-draft-tokens"), "4");
  EXPECT_THAT(made.arguments, Contains("--ple-offload-embedding"));
  EXPECT_EQ(value_of(made, "--ple-offload-backend"), "file");
  EXPECT_THAT(made.environment, Contains(Pair("SGLANG_QWEN4_PLE_FILE_RSS_BUDGET_GB", "8")));
  EXPECT_THAT(made.notes, Contains(AllOf(HasSubstr("47.684 GiB"), HasSubstr("beside the checkpoint"))));
  EXPECT_THAT(made.notes, Contains(HasSubstr("55 minutes")));
}

TEST(Sglang, PlacesTablesElsewhere) {
  const Request request = qwen("safetensors", "rtx-pro-6000");
  const Recipe pinned = recipe(EngineId::kSglang, request, plan_of(Placement::kPinned), "M");
  EXPECT_THAT(pinned.arguments, AllOf(Contains("--ple-offload-embedding"), Not(Contains("--ple-offload-backend"))));
  const Recipe device = recipe(EngineId::kSglang, request, plan_of(Placement::kDevice), "M");
  EXPECT_THAT(device.arguments, Contains("--no-ple-offload-embedding"));
  Request deepseek = qwen("safetensors", "b300");
  deepseek.model.family = "deepseek_engram";
  const std::string name = "SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE";
  EXPECT_EQ(environment_of(recipe(EngineId::kSglang, deepseek, plan_of(Placement::kPinned), "M"), name), "1");
  EXPECT_EQ(environment_of(recipe(EngineId::kSglang, deepseek, plan_of(Placement::kDevice), "M"), name), "0");
}

TEST(Recipes, FractionsAreRoundedDown) {
  RecipePlan plan = plan_of(Placement::kPinned);
  const Request request = qwen("safetensors", "rtx-pro-6000");
  for (const auto& [fraction, text] : {std::pair{0.7899, "0.78"}, {0.29, "0.29"}, {0.57, "0.57"}, {0.95, "0.95"}}) {
    plan.memory_fraction = fraction;
    EXPECT_EQ(value_of(recipe(EngineId::kVllm, request, plan, "M"), "--gpu-memory-utilization"), text);
  }
  plan.memory_fraction = 0;
  EXPECT_EQ(value_of(recipe(EngineId::kVllm, request, plan, "M"), "--gpu-memory-utilization"), "(none)");
}

TEST(Recipes, APathThatLooksLikeAnOptionStaysAPath) {
  const Request request = qwen("gguf", "dgx-spark");
  EXPECT_EQ(value_of(recipe(EngineId::kLlamaCpp, request, plan_of(Placement::kNvme), "-m.gguf"), "-m"), "./-m.gguf");
}

}  // namespace
}  // namespace rowtide::sizing
