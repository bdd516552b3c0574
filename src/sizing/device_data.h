// What of data/devices.json only the detection of a machine needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace rowtide::sizing {

/// By which a driver or PCI tells a known device; one of the two names is empty.
struct DetectedName {
  std::string driver_name;  // as NVIDIA's driver says it: "NVIDIA GeForce RTX 4090"
  std::string pci_id;       // of AMD's devices: "0x74a1"
  std::string device_id;    // in known_devices()
};
const std::vector<DetectedName>& detected_names();

/// Of a machine that computes on its CPU.
struct CpuFacts {
  double bandwidth_bytes_per_s = 0;  // where it could not be measured
  std::string bandwidth_source;
  double bandwidth_share = 0;
  std::string bandwidth_share_source;
  double flops_of_core = 0;  // BF16
  std::string flops_source;
  double compute_share = 0;
  std::string compute_share_source;
  std::uint64_t reserve_bytes = 0;
  std::string reserve_reason;
};
const CpuFacts& cpu_facts();

}  // namespace rowtide::sizing
