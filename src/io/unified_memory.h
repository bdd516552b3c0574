// Whether CPU and GPU of this machine share one memory.
#pragma once

#include <string>

namespace rowtide::io {

/// What the machine is, for messages ("NVIDIA GB10"), where a GPU that models are run on has no memory of its own: what
/// the store takes, the engine's weights and KV cache lack. Empty where there is none, or nothing is known: NVIDIA's
/// GB10 and Jetson, AMD's Strix Halo and Instinct MI300A. Small GPUs of desktop and notebook processors do not count.
/// `root` stands before /proc and /sys.
std::string unified_memory(const std::string& root = "");

}  // namespace rowtide::io
