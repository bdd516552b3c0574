// The command that starts an engine as planned.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sizing/engine.h"
#include "sizing/request.h"

namespace rowtide::sizing {

struct Recipe {
  EngineId engine = EngineId::kLlamaCpp;
  bool runs = false;  // false: `limits` say why
  std::vector<EngineLimit> limits;
  std::vector<std::pair<std::string, std::string>> environment;
  std::vector<std::string> arguments;  // the program first; none quoted
  std::vector<std::string> notes;      // container memory cap, /dev/shm, what to do beforehand

  /// For a POSIX shell, quoted, one option a line.
  std::string text() const;
};

/// What a plan fixes for an engine.
struct RecipePlan {
  Placement placement = Placement::kNvme;
  std::uint64_t cache_bytes = 0;             // of the table's cache
  std::uint64_t kv_pool_bytes = 0;           // of each device
  double memory_fraction = 0;                // of each device's visible memory, that the engine may take
  std::uint64_t container_memory_bytes = 0;  // cap of host memory for a container
  std::uint64_t shared_memory_bytes = 0;     // /dev/shm
};
/// `model_path` is a path, or stands for one ("MODEL.gguf").
Recipe recipe(EngineId engine, const Request& request, const RecipePlan& plan, const std::string& model_path);

}  // namespace rowtide::sizing
