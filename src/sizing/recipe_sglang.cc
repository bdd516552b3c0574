// SGLang's server.
#include <fmt/format.h>

#include <algorithm>

#include "rowtide/byte_size.h"
#include "sizing/recipe_engines.h"

namespace rowtide::sizing {
namespace {

void add_sglang_parallelism(const Request& request, Recipe& recipe) {
  add(recipe, "--tp", std::to_string(request.tp));
  if (request.dp > 1) add(recipe, "--dp", std::to_string(request.dp));
  if (request.ep > 1) add(recipe, "--ep", std::to_string(request.ep));
  if (request.nodes > 1) {
    add(recipe, "--nnodes", std::to_string(request.nodes));
    add(recipe, "--node-rank", "0");
    add(recipe, "--dist-init-addr", "FIRST-NODE:20000");
    recipe.notes.push_back(
        fmt::format("on the other nodes the same with --node-rank 1 to {}; FIRST-NODE is the first one's address",
                    request.nodes - 1));
  }
}

void add_sglang_speculation(const Request& request, Recipe& recipe) {
  if (request.speculate == 0) return;
  const std::string drafted = std::to_string(request.speculate);
  if (request.model.draft_layers == 0) {
    add(recipe, "--speculative-algorithm", "NGRAM");
    add(recipe, "--speculative-num-draft-tokens", drafted);
  } else if (request.model.family == "deepseek_engram") {
    add(recipe, "--speculative-algorithm", "DSPARK");
    add(recipe, "--speculative-dspark-block-size", drafted);
  } else {
    add(recipe, "--speculative-algorithm", "NEXTN");
    add(recipe, "--speculative-num-steps", drafted);
    add(recipe, "--speculative-eagle-topk", "1");
    add(recipe, "--speculative-num-draft-tokens", std::to_string(request.speculate + 1));
  }
}

/// The table of Qwen3.8-Flash-Next.
void place_per_layer_table(const Request& request, const RecipePlan& plan, Recipe& recipe) {
  if (plan.placement == Placement::kDevice) {
    recipe.arguments.emplace_back("--no-ple-offload-embedding");
    return;
  }
  recipe.arguments.emplace_back("--ple-offload-embedding");
  if (plan.placement != Placement::kNvme) return;
  add(recipe, "--ple-offload-backend", "file");
  add(recipe, "--ple-offload-dir", "FOLDER-ON-NVME");
  const std::uint64_t cache_gib = std::max<std::uint64_t>(1, plan.cache_bytes >> 30);
  recipe.environment.emplace_back("SGLANG_QWEN4_PLE_FILE_RSS_BUDGET_GB", std::to_string(cache_gib));
  recipe.notes.push_back(
      fmt::format("FOLDER-ON-NVME needs {} beside the checkpoint: SGLang writes the table there anew at every start",
                  byte_size_text(request.table_bytes())));
  recipe.notes.push_back(
      "before each start: rm -f FOLDER-ON-NVME/ple_table_*.bin, for over an old file the start takes "
      "about 55 minutes instead of 10");
}

void place_table(const Request& request, const RecipePlan& plan, Recipe& recipe) {
  if (request.model.family == "qwen_ple") place_per_layer_table(request, plan, recipe);
  if (request.model.family == "deepseek_engram") {
    recipe.environment.emplace_back("SGLANG_ENABLE_DSV41_ENGRAM_HOST_TABLE",
                                    plan.placement == Placement::kDevice ? "0" : "1");
  }
}

}  // namespace

void fill_sglang(const Request& request, const RecipePlan& plan, const std::string& model_path, Recipe& recipe) {
  recipe.arguments = {"python3", "-m", "sglang.launch_server"};
  add(recipe, "--model-path", model_path);
  add_sglang_parallelism(request, recipe);
  add(recipe, "--context-length", std::to_string(request.context));
  add(recipe, "--max-running-requests", std::to_string(sequences_of_replica(request) * request.dp));
  add(recipe, "--chunked-prefill-size", std::to_string(request.chunk));
  if (plan.memory_fraction > 0) add(recipe, "--mem-fraction-static", fraction_text(plan.memory_fraction));
  add(recipe, "--kv-cache-dtype", request.kv == KvType::kFp8 ? "fp8_e4m3" : "auto");
  if (has_typed_state(request.model)) {
    add(recipe, "--mamba-ssm-dtype", request.state == StateType::kBf16 ? "bfloat16" : "float32");
  }
  add_sglang_speculation(request, recipe);
  place_table(request, plan, recipe);
}

}  // namespace rowtide::sizing
