// Which part of a model a tensor belongs to, by its name in a safetensors checkpoint or a GGUF file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "sizing/model.h"

namespace rowtide::sizing {

/// As part_of_tensor(), for a model of that many decoder layers: blocks beyond are its draft module's.
Part part_of_tensor(std::string_view name, std::uint32_t layers);

/// Of a tensor of the draft module that belongs to one of its layers: which. Nothing for others.
std::optional<std::uint32_t> draft_layer_of(std::string_view name, std::uint32_t layers);

/// Whether it only says how another's values are scaled or arranged.
bool is_scale(std::string_view name);

}  // namespace rowtide::sizing
