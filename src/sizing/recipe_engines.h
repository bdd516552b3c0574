// The recipes of each engine, without what holds for all: limits and the container.
#pragma once

#include <cstdint>
#include <string>

#include "sizing/recipe.h"

namespace rowtide::sizing {

/// Options, environment and notes are added to `recipe`.
void fill_llama_cpp(const Request& request, const RecipePlan& plan, const std::string& model_path, Recipe& recipe);
void fill_vllm(const Request& request, const RecipePlan& plan, const std::string& model_path, Recipe& recipe);
void fill_sglang(const Request& request, const RecipePlan& plan, const std::string& model_path, Recipe& recipe);

/// Sequences that one replica holds.
std::uint32_t sequences_of_replica(const Request& request);
/// Whether the model keeps recurrent states in a type that can be asked for.
bool has_typed_state(const Model& model);
/// "0.78": downwards, for the engine takes what it says.
std::string fraction_text(double fraction);
void add(Recipe& recipe, std::string option, std::string value);

}  // namespace rowtide::sizing
