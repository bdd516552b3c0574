// llama-server with the plug-in (docs/llama-cpp.md).
#include <fmt/format.h>

#include <algorithm>

#include "sizing/recipe_engines.h"

namespace rowtide::sizing {
namespace {

/// Tables above it are read lazily by llama.cpp's own decision.
constexpr std::uint64_t kLazyByItselfBytes = std::uint64_t{4} << 30;
constexpr std::uint64_t kLeastBudgetMib = 32;  // of the plug-in

/// Whether the plug-in knows the model's table.
bool is_served(const Model& model) { return model.family == "qwen_ple" || model.family == "deepseek_engram"; }

void add_plug_in(const Request& request, const RecipePlan& plan, Recipe& recipe) {
  if (!is_served(request.model)) return;
  recipe.environment.emplace_back("GGML_BACKEND_PATH", "librowtide-ggml.so");
  recipe.notes.push_back("GGML_BACKEND_PATH is the path of Rowtide's plug-in; `rowtide serve` finds it by itself");
  if (plan.placement != Placement::kNvme) {
    recipe.environment.emplace_back("ROWTIDE_MODE", "resident");
  } else if (plan.cache_bytes == 0) {
    recipe.environment.emplace_back("ROWTIDE_MODE", "disk");
  } else {
    recipe.environment.emplace_back("ROWTIDE_MEMORY",
                                    fmt::format("{}MiB", std::max(kLeastBudgetMib, plan.cache_bytes >> 20)));
  }
}

void add_llama_cpp_speculation(const Request& request, Recipe& recipe) {
  if (request.speculate == 0) return;
  if (request.model.draft_layers == 0) {
    add(recipe, "--spec-type", "ngram-simple");
    add(recipe, "--spec-ngram-simple-size-m", std::to_string(request.speculate));
    return;
  }
  add(recipe, "--spec-type", "draft-mtp");
  add(recipe, "--spec-draft-n-max", std::to_string(request.speculate));
  if (request.model.family == "qwen_ple") {
    recipe.notes.push_back(
        "drafting with this model needs llama.cpp v0.6.0 or newer, and a GGUF file that holds the "
        "draft module");
  }
}

}  // namespace

void fill_llama_cpp(const Request& request, const RecipePlan& plan, const std::string& model_path, Recipe& recipe) {
  add_plug_in(request, plan, recipe);
  const std::uint32_t slots = sequences_of_replica(request);
  const bool has_gpu = request.machine.device.id != "cpu";
  recipe.arguments.emplace_back("llama-server");
  add(recipe, "-m", model_path);
  add(recipe, "-c", std::to_string(request.context * slots));  // of all slots together
  add(recipe, "-np", std::to_string(slots));
  add(recipe, "-b", std::to_string(request.chunk));
  add(recipe, "-ub", std::to_string(request.chunk));
  if (has_gpu) add(recipe, "-ngl", "999");
  add(recipe, "-fa", "on");
  if (request.kv != KvType::kF16) {
    add(recipe, "--cache-type-k", std::string(kv_type_name(request.kv)));
    add(recipe, "--cache-type-v", std::string(kv_type_name(request.kv)));
  }
  if (request.tp > 1) {
    add(recipe, "-sm", "layer");
    if (request.model.family == "qwen_ple") {
      recipe.notes.push_back(
          "llama.cpp has -sm tensor switched off for this architecture (ggml-org/llama.cpp#27941, #28569)");
    }
  }
  if (is_served(request.model) && request.table_bytes() <= kLazyByItselfBytes) add(recipe, "-lzm", "on");
  add_llama_cpp_speculation(request, recipe);
  if (request.dp > 1) {
    recipe.notes.push_back(
        fmt::format("{} replicas: start it {} times, each with a --port and devices (--device) of its own", request.dp,
                    request.dp));
  }
  if (is_served(request.model) && plan.placement == Placement::kNvme) {
    recipe.notes.push_back(
        "before the first start: rowtide calibrate FOLDER, with the folder of the model; in a "
        "container allow io_uring (Docker's default profile refuses it)");
  }
}

}  // namespace rowtide::sizing
