#include "io/unified_memory.h"

#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "io/kernel_text.h"

namespace rowtide::io {
namespace {

namespace fs = std::filesystem;

/// The text of a small file up to its first line end or NUL.
std::string first_line(const fs::path& path) {
  std::string text = kernel_text(path.string()).value_or("");
  return text.substr(0, text.find_first_of(std::string_view("\n\0", 2)));
}

std::vector<fs::path> entries(const std::string& folder) {
  std::vector<fs::path> paths;
  std::error_code failed;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    paths.push_back(at->path());
  }
  return paths;
}

/// NVIDIA's driver describes each GPU in /proc/driver/nvidia/gpus/<bus>/information (driver README, "The /proc File
/// System Interface"): "Model:   NVIDIA GB10". All makers' machines with that chip have that name, though their own
/// names differ; NVML has no memory figures for it.
std::string nvidia_gb10(const std::string& root) {
  for (const fs::path& gpu : entries(root + "/proc/driver/nvidia/gpus")) {
    const std::string text = kernel_text((gpu / "information").string()).value_or("");
    const std::size_t model = text.find("Model:");
    if (model == std::string::npos) continue;
    const std::string line = text.substr(model, text.find('\n', model) - model);
    if ((line + ' ').find(" GB10 ") != std::string::npos) return "NVIDIA GB10";
  }
  return "";
}

/// NVIDIA's own make of it says so in its firmware's tables, which a container without the GPU's files sees too.
std::string nvidia_spark(const std::string& root) {
  const std::string product = first_line(root + "/sys/class/dmi/id/product_name");
  return product == "NVIDIA_DGX_Spark" ? "NVIDIA DGX Spark" : "";
}

/// Every Tegra chip's GPU uses the memory of the CPU (CUDA for Tegra, "Memory Management"). Device trees list what the
/// board is compatible with, NUL between: "nvidia,p3737-0000+p3701-0000", "nvidia,tegra234" (devicetree bindings,
/// arm/tegra.yaml).
std::string nvidia_jetson(const std::string& root) {
  const std::string compatible = kernel_text(root + "/proc/device-tree/compatible").value_or("");
  if (compatible.find("nvidia,tegra") == std::string::npos) return "";
  const std::string model = first_line(root + "/proc/device-tree/model");
  return model.empty() ? "NVIDIA Jetson" : model;
}

/// AMD's by PCI ids, as in the PCI ID database: the driver says in no file of /sys that a GPU is part of the processor.
std::string amd_apu(const std::string& root) {
  struct Chip {
    std::string_view device, name;
  };
  static constexpr std::array<Chip, 2> kChips = {{{"0x1586", "AMD Strix Halo"}, {"0x74a0", "AMD Instinct MI300A"}}};
  for (const fs::path& card : entries(root + "/sys/class/drm")) {
    const fs::path pci = card / "device";
    if (first_line(pci / "vendor") != "0x1002") continue;
    const std::string device = first_line(pci / "device");
    for (const Chip& chip : kChips) {
      if (chip.device == device) return std::string(chip.name);
    }
  }
  return "";
}

}  // namespace

std::string unified_memory(const std::string& root) {
  for (const auto rule : {nvidia_gb10, nvidia_spark, nvidia_jetson, amd_apu}) {
    if (std::string name = rule(root); !name.empty()) return name;
  }
  return "";
}

}  // namespace rowtide::io
