// What the command `generate` was asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/failure.h"
#include "rowtide/store.h"

namespace rowtide::cli {

struct GenerateOptions {
  std::string model;
  std::string prompt;
  std::uint32_t tokens = 128;  // to generate, at most
  float temperature = 0;       // 0: greedy
  std::uint32_t seed = 0;
  std::uint32_t threads = 1;
  std::uint32_t ubatch = 512;
  std::uint64_t memory_bytes = 0;  // 0: as the environment says
  std::optional<Mode> mode;        // nothing: as the environment says
  bool with_store = true;
  bool json = false;
};

ExitCode generate(const GenerateOptions& options);

}  // namespace rowtide::cli
