// Machines: devices as sold, as installed and as visible, their links, the memory and the drive beside them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::sizing {

struct Link {
  std::string name;        // "PCIe 5.0 x16", "NVLink 5", "2x 200 Gb/s Ethernet (ConnectX-7)"
  double bytes_per_s = 0;  // one direction, theoretical
  double latency_us = 0;   // of one small all-reduce over it, between two
  std::string source;
  bool is_ring = false;  // ranks pass it on one after the other, so that each more takes as long again
};

/// A kind of device (data/devices.json).
struct Device {
  std::string id;                 // "dgx-spark"
  std::string name;               // "NVIDIA DGX Spark (GB10)"
  std::vector<std::string> also;  // other names it is known by
  bool is_unified = false;        // one memory for CPU and GPU
  std::string sold_as;            // "128 GB"
  std::uint64_t sold_bytes = 0;
  std::uint64_t installed_bytes = 0;
  std::uint64_t visible_bytes = 0;   // what system or driver shows; the capacity that plans use
  double bandwidth_bytes_per_s = 0;  // theoretical
  double bandwidth_share = 0;        // of it, that decoding reaches
  std::string bandwidth_share_source;
  double flops_bf16 = 0, flops_fp8 = 0, flops_fp4 = 0;  // a second, dense; 0: not supported
  bool has_nvfp4 = true;                                // its FP4 has scales of FP8 for 16 values, as NVFP4
  double compute_share = 0;                             // of them, that prefill reaches
  std::string compute_share_source;
  std::uint32_t devices_per_node = 1;    // most, sharing host memory and drives
  Link host_link;                        // between host memory and device; unified: the memory itself
  Link peer_link;                        // between devices of a node
  Link node_link;                        // between nodes
  std::uint64_t host_reserve_bytes = 0;  // default: what is left to system, engine's host side and page cache
  std::string host_reserve_reason;
  std::uint64_t host_memory_bytes = 0;  // default for discrete devices, of a node, visible; 0 where unified
  bool has_peers_memory = false;        // GPU reads host page tables (GB10 class): pages may stay evictable
  std::vector<std::string> sources;
};

const std::vector<Device>& known_devices();
/// By id, name or another name, in any case; "rtx 5090" is "rtx-5090". kUsage with the nearest.
Result<Device> known_device(std::string_view name);

/// A drive as plans use it.
struct DriveRates {
  std::string name;
  double reads_per_s = 0;  // 4 KiB, at the best depth
  double serial_us = 0;    // one read at a time
  double sequential_bytes_per_s = 0;
  std::string source;
};
/// What plans assume of a drive that was not calibrated.
DriveRates assumed_drive();
/// Of the drive below `path` as `rowtide calibrate` has measured it; nothing where it has not.
std::optional<DriveRates> calibrated_drive(const std::string& path);

/// A device, and what is beside it in each node.
struct Machine {
  Device device;
  std::uint64_t host_memory_bytes = 0;                // discrete: of a node; unified: 0
  std::optional<std::uint64_t> host_available_bytes;  // this machine: MemAvailable or what the cgroup leaves; page
                                                      // cache that can be dropped counts as available
  std::optional<std::uint64_t> disk_free_bytes;       // this machine: where the checkpoint lies
  DriveRates drive;
  bool is_this = false;
};

Machine machine_of(const Device& device);

/// The machine at hand: memory and cgroup from the kernel, unified GPUs as the table's `unified_memory()` tells, NVIDIA
/// GPUs from /proc/driver/nvidia and AMD's from sysfs, the drive below `path` with its calibration. Without a GPU it is
/// a machine that computes on the CPU. kUnsupported where the kernel tells nothing. `root` stands before /proc and
/// /sys.
Result<Machine> this_machine(const std::string& path = ".", const std::string& root = "");

}  // namespace rowtide::sizing
