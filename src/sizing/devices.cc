// The devices of data/devices.json.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/nearest.h"
#include "base/printable.h"
#include "sizing/data.h"
#include "sizing/device.h"
#include "sizing/device_data.h"
#include "sizing/plain_name.h"

namespace rowtide::sizing {
namespace {

using Json = nlohmann::json;

/// What the memory of a unified device is to its GPU: no link at all.
Link memory_itself(const Device& device) {
  return {"unified memory", device.bandwidth_bytes_per_s, 0, "one memory for CPU and GPU", false};
}

Link link_of(const Json& links, const std::string& id, const Device& device) {
  if (id == "unified") return memory_itself(device);
  for (const Json& link : links) {
    if (link.at("id") != id) continue;
    return {link.at("name"), link.at("bytes_per_s"), link.at("latency_us"), link.at("source"),
            link.value("ring", false)};
  }
  return {};
}

void read_memory(const Json& entry, Device& device) {
  device.is_unified = entry.at("unified");
  device.sold_as = entry.at("sold_as");
  device.sold_bytes = entry.at("sold_bytes");
  device.installed_bytes = entry.at("installed_bytes");
  device.visible_bytes = entry.at("visible_bytes");
  device.host_reserve_bytes = entry.at("host_reserve_bytes");
  device.host_reserve_reason = entry.at("host_reserve_reason");
  device.host_memory_bytes = entry.at("host_memory_bytes");
  device.has_peers_memory = entry.at("peers_memory");
}

void read_speed(const Json& entry, Device& device) {
  device.bandwidth_bytes_per_s = entry.at("bandwidth_bytes_per_s");
  device.bandwidth_share = entry.at("bandwidth_share");
  device.bandwidth_share_source = entry.at("bandwidth_share_source");
  device.flops_bf16 = entry.at("flops_bf16");
  device.flops_fp8 = entry.at("flops_fp8");
  device.flops_fp4 = entry.at("flops_fp4");
  device.has_nvfp4 = entry.value("nvfp4", true);
  device.compute_share = entry.at("compute_share");
  device.compute_share_source = entry.at("compute_share_source");
}

Device device_of(const Json& entry, const Json& links) {
  Device device;
  device.id = entry.at("id");
  device.name = entry.at("name");
  device.also = entry.at("also").get<std::vector<std::string>>();
  read_memory(entry, device);
  read_speed(entry, device);
  device.devices_per_node = entry.at("devices_per_node");
  device.host_link = link_of(links, entry.at("host_link"), device);
  device.peer_link = link_of(links, entry.at("peer_link"), device);
  device.node_link = link_of(links, entry.at("node_link"), device);
  for (const char* key : {"memory_source", "bandwidth_source", "flops_source", "host_memory_source"}) {
    if (entry.contains(key)) device.sources.push_back(entry.at(key));
  }
  for (const Json& source : entry.at("sources")) device.sources.push_back(source);
  return device;
}

struct DeviceData {
  std::vector<Device> devices;
  std::vector<DetectedName> detected;
  DriveRates drive;
  CpuFacts cpu;
};

DriveRates drive_of(const Json& entry) {
  return {entry.at("name"), entry.at("reads_per_s"), entry.at("serial_us"), entry.at("sequential_bytes_per_s"),
          entry.at("source")};
}

CpuFacts cpu_of(const Json& entry) {
  CpuFacts cpu;
  cpu.bandwidth_bytes_per_s = entry.at("bandwidth_bytes_per_s");
  cpu.bandwidth_source = entry.at("bandwidth_source");
  cpu.bandwidth_share = entry.at("bandwidth_share");
  cpu.bandwidth_share_source = entry.at("bandwidth_share_source");
  cpu.flops_of_core = entry.at("flops_of_core_bf16");
  cpu.flops_source = entry.at("flops_source");
  cpu.compute_share = entry.at("compute_share");
  cpu.compute_share_source = entry.at("compute_share_source");
  cpu.reserve_bytes = entry.at("reserve_bytes");
  cpu.reserve_reason = entry.at("reserve_reason");
  return cpu;
}

DeviceData parse_devices() {
  const Json all = Json::parse(data::devices);
  DeviceData parsed;
  for (const Json& entry : all.at("devices")) {
    parsed.devices.push_back(device_of(entry, all.at("links")));
    const std::string& id = parsed.devices.back().id;
    for (const Json& name : entry.value("driver_names", Json::array())) parsed.detected.push_back({name, "", id});
    for (const Json& pci : entry.value("pci_ids", Json::array())) parsed.detected.push_back({"", pci, id});
  }
  parsed.drive = drive_of(all.at("drive"));
  parsed.cpu = cpu_of(all.at("cpu"));
  return parsed;
}

const DeviceData& device_data() {
  static const DeviceData data = parse_devices();
  return data;
}

bool is_named(const Device& device, const std::string& plain) {
  if (plain_name(device.id) == plain || plain_name(device.name) == plain) return true;
  return std::any_of(device.also.begin(), device.also.end(),
                     [&](const std::string& other) { return plain_name(other) == plain; });
}

}  // namespace

const std::vector<Device>& known_devices() { return device_data().devices; }
const std::vector<DetectedName>& detected_names() { return device_data().detected; }
const CpuFacts& cpu_facts() { return device_data().cpu; }
DriveRates assumed_drive() { return device_data().drive; }

Result<Device> known_device(std::string_view name) {
  const std::string plain = plain_name(name);
  std::vector<std::string> ids;
  for (const Device& device : known_devices()) {
    if (is_named(device, plain)) return device;
    ids.push_back(device.id);
  }
  return make_error(ErrorCode::kUsage, "no device '{}' is known{}; known are {}", printable(name),
                    suggestion(hyphenated(name), ids), fmt::join(ids, ", "));
}

Machine machine_of(const Device& device) {
  Machine machine;
  machine.device = device;
  machine.host_memory_bytes = device.is_unified ? 0 : device.host_memory_bytes;
  machine.drive = assumed_drive();
  return machine;
}

}  // namespace rowtide::sizing
