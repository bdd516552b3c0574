// vllm serve, as released.
#include <fmt/format.h>

#include "sizing/recipe_engines.h"

namespace rowtide::sizing {
namespace {

/// vLLM's name of the draft module's method.
std::string_view draft_method(const Model& model) {
  if (model.draft_layers == 0) return "ngram";
  return model.family == "deepseek_engram" ? "dspark" : "mtp";
}

void add_vllm_parallelism(const Request& request, Recipe& recipe) {
  add(recipe, "--tensor-parallel-size", std::to_string(request.tp));
  if (request.dp > 1) add(recipe, "--data-parallel-size", std::to_string(request.dp));
  if (request.ep > 1) recipe.arguments.emplace_back("--enable-expert-parallel");
  if (request.nodes > 1) {
    add(recipe, "--nnodes", std::to_string(request.nodes));
    add(recipe, "--node-rank", "0");
    add(recipe, "--master-addr", "FIRST-NODE");
    recipe.notes.push_back(fmt::format(
        "on the other nodes the same with --node-rank 1 to {} and --headless; FIRST-NODE is the first one's address",
        request.nodes - 1));
  }
}

}  // namespace

void fill_vllm(const Request& request, const RecipePlan& plan, const std::string& model_path, Recipe& recipe) {
  recipe.arguments = {"vllm", "serve", model_path};
  add_vllm_parallelism(request, recipe);
  add(recipe, "--max-model-len", std::to_string(request.context));
  add(recipe, "--max-num-seqs", std::to_string(sequences_of_replica(request)));
  add(recipe, "--max-num-batched-tokens", std::to_string(request.chunk));
  // Models in bf16 keep keys and values in it; fp8 has to be asked for.
  add(recipe, "--kv-cache-dtype", request.kv == KvType::kFp8 ? "fp8" : "auto");
  if (has_typed_state(request.model)) {
    add(recipe, "--mamba-ssm-cache-dtype", request.state == StateType::kBf16 ? "bfloat16" : "float32");
  }
  if (plan.memory_fraction > 0) add(recipe, "--gpu-memory-utilization", fraction_text(plan.memory_fraction));
  if (request.speculate > 0) {
    add(recipe, "--speculative-config",
        fmt::format(R"({{"method": "{}", "num_speculative_tokens": {}}})", draft_method(request.model),
                    request.speculate));
  }
  if (request.model.tables.empty()) return;
  const bool on_host = plan.placement == Placement::kPinned;
  add(recipe, "--engram-config", fmt::format(R"({{"cpu_offload": {}}})", on_host));
  if (on_host) {
    recipe.notes.push_back(
        "the pinned table is locked in memory: ulimit -l unlimited, or docker run --ulimit memlock=-1; "
        "large blocks of it may be rounded up to a power of two");
  }
}

}  // namespace rowtide::sizing
