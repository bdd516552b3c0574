// Finds the safetensors files of a model: in a folder, or in the cache of a hub's client.
//
// Such a cache keeps a model in one folder: snapshots/COMMIT/ holds the files of a revision (links into blobs/), some
// of which may never have been fetched; refs/NAME is a text, the commit that the branch NAME led to when it was last
// asked for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/safetensors_index.h"
#include "io/folder.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

struct ModelFiles {
  std::vector<std::string> paths;         // of the safetensors files, ascending by name
  std::optional<SafetensorsIndex> index;  // that names them; none of a single file
  std::string folder;                     // they lie in, without a slash at its end
  std::string choice;                     // as Safetensors::choice()
};

/// What open_safetensors() opens for the path `given`. Its errors.
Result<ModelFiles> find_model_files(const std::string& given, const io::Disk& disk);

}  // namespace rowtide::checkpoint
