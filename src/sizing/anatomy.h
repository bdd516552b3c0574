// The anatomy of a model: from the headers of a checkpoint, or of one described by name.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sizing/model.h"

namespace rowtide::sizing {

/// Reads the headers of the GGUF or safetensors checkpoint at `path` (as Checkpoint::open() takes it) and classifies
/// every byte of its tensors. Errors: those of Checkpoint::open(), a missing shard among them; kUnsupported for a
/// model whose layers it does not know, with what is missing. Memory: below 256 MiB for any input.
Result<Model> model_of_checkpoint(const std::string& path);

/// Which part a tensor belongs to, by its name in a checkpoint or GGUF file. The parts of tables are told by the table
/// room; here anything of a table's module that is not its rows is kDense.
Part part_of_tensor(std::string_view name);

/// A model of the described set (data/models.json).
struct KnownModel {
  std::string name;                     // "Qwen3.8-Flash-Next"
  std::vector<std::string> precisions;  // "NVFP4", ...; the first is what --model alone means
  std::string summary;                  // for lists: "180 B parameters, 6 B active, table of 51.2 B"
};
const std::vector<KnownModel>& known_models();

/// `name` in any case, also without the maker's name before a slash, and with the precision after it
/// ("qwen3.8-flash-next-nvfp4"); `precision` empty: the first. kUsage with the nearest names for one that is not known,
/// or with the precisions there are.
Result<Model> known_model(std::string_view name, std::string_view precision = "");

}  // namespace rowtide::sizing
