// Recipes as text that a shell takes as it stands, and what they say of containers.
#include "sizing/recipe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rowtide/byte_size.h"
#include "sizing/recipe_engines.h"

namespace rowtide::sizing {
namespace {

constexpr std::uint64_t kDockerSharedBytes = std::uint64_t{64} << 20;

/// Quoted for a POSIX shell where it needs to be.
std::string quoted(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string result = "'";
  for (const char each : text) result += each == '\'' ? std::string("'\\''") : std::string(1, each);
  return result + "'";
}

constexpr std::uint32_t kSharedGibOfRanks = 16;  // as engines' own containers are started, with room to spare

std::uint64_t gib_upwards(std::uint64_t bytes) { return (bytes + (std::uint64_t{1} << 30) - 1) >> 30; }

void add_container_notes(const Request& request, const RecipePlan& plan, Recipe& recipe) {
  if (plan.container_memory_bytes != 0) {
    recipe.notes.push_back(fmt::format("in a container cap its memory: docker run --memory {}g{}",
                                       gib_upwards(plan.container_memory_bytes),
                                       request.machine.device.is_unified && request.machine.device.id != "cpu"
                                           ? "; what the GPU allocates is not charged to it here, the engine's share "
                                             "of memory bounds that"
                                           : ""));
  }
  // Replicas share one copy of the table through /dev/shm; a single one pins memory of its own.
  if (plan.shared_memory_bytes > kDockerSharedBytes && request.dp > 1 && recipe.engine != EngineId::kLlamaCpp) {
    recipe.notes.push_back(
        fmt::format("the replicas of a node share one table in /dev/shm: it must hold {} (docker run --shm-size {}g, "
                    "or --ipc=host; "
                    "Docker's default is 64 MiB, with which the sharing is given up or the start fails)",
                    byte_size_text(plan.shared_memory_bytes), gib_upwards(plan.shared_memory_bytes)));
  } else if (recipe.engine != EngineId::kLlamaCpp && request.devices_per_node() > 1) {
    recipe.notes.push_back(fmt::format(
        "the ranks of a node meet in /dev/shm: docker run --shm-size {}g, or --ipc=host; Docker's default of 64 MiB is "
        "too little for the GPUs' library of collectives",
        kSharedGibOfRanks));
  }
}

}  // namespace

std::uint32_t sequences_of_replica(const Request& request) {
  const std::uint32_t replicas = std::max(1u, request.dp);
  return std::max(1u, (request.concurrency + replicas - 1) / replicas);
}

bool has_typed_state(const Model& model) {
  return std::any_of(model.states.begin(), model.states.end(),
                     [](const State& state) { return state.value_bytes == 0; });
}

std::string fraction_text(double fraction) {
  // A hair is added first: 0.29 must not become 0.28 because binary numbers lie just below it.
  return fmt::format("{:.2f}", std::floor(fraction * 100 + 1e-6) / 100);
}

void add(Recipe& recipe, std::string option, std::string value) {
  recipe.arguments.push_back(std::move(option));
  recipe.arguments.push_back(std::move(value));
}

std::string Recipe::text() const {
  std::string text;
  for (const auto& [name, value] : environment) text += fmt::format("{}={} \\\n", name, quoted(value));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const bool is_option = i > 0 && arguments[i].size() > 1 && arguments[i].front() == '-';
    if (i > 0) text += is_option ? " \\\n  " : " ";
    text += quoted(arguments[i]);
  }
  return text;
}

Recipe recipe(EngineId engine, const Request& request, const RecipePlan& plan, const std::string& model_path) {
  Recipe recipe;
  recipe.engine = engine;
  recipe.limits = limits_in_the_way(engine, request, plan.placement);
  recipe.runs = recipe.limits.empty();
  // A path is not to be taken for an option.
  const std::string path = model_path.starts_with('-') ? "./" + model_path : model_path;
  switch (engine) {
    case EngineId::kLlamaCpp: fill_llama_cpp(request, plan, path, recipe); break;
    case EngineId::kVllm: fill_vllm(request, plan, path, recipe); break;
    case EngineId::kSglang: fill_sglang(request, plan, path, recipe); break;
  }
  add_container_notes(request, plan, recipe);
  return recipe;
}

}  // namespace rowtide::sizing
