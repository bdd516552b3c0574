// The machine at hand: written machines of each kind, and this one.
#include <gtest/gtest.h>

#include "sizing/device.h"
#include "support/fake_machine.h"
#include "support/memory_disk.h"

namespace rowtide::sizing {
namespace {

constexpr std::uint64_t kGib = std::uint64_t{1} << 30, kMib = std::uint64_t{1} << 20;

class ThisMachine : public testing::Test {
 protected:
  ThisMachine() { memory(125, 110, 2); }

  void memory(std::uint64_t total_gib, std::uint64_t available_gib, std::uint64_t free_gib) const {
    machine_.put("/proc/meminfo", fmt::format("MemTotal: {} kB\nMemFree: {} kB\nMemAvailable: {} kB\n", total_gib << 20,
                                              free_gib << 20, available_gib << 20));
  }
  void nvidia(int bus, const std::string& model) const {
    machine_.put(fmt::format("/proc/driver/nvidia/gpus/0000:{:02x}:00.0/information", bus),
                 "Model: \t\t " + model + "\nIRQ:   \t\t 80\nGPU UUID: \t GPU-2dee1e25\n");
  }
  void amd(int card, const std::string& device, std::uint64_t bytes) const {
    const std::string folder = fmt::format("/sys/class/drm/card{}/device/", card);
    machine_.put(folder + "vendor", "0x1002\n");
    machine_.put(folder + "device", device + "\n");
    machine_.put(folder + "mem_info_vram_total", std::to_string(bytes) + "\n");
  }
  void cgroup(std::uint64_t limit, std::uint64_t usage, std::uint64_t cache) const {
    machine_.put("/proc/self/cgroup", "0::/box\n");
    machine_.put("/proc/self/mountinfo",
                 "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
    machine_.put("/sys/fs/cgroup/box/memory.max", std::to_string(limit) + "\n");
    machine_.put("/sys/fs/cgroup/box/memory.current", std::to_string(usage) + "\n");
    machine_.put("/sys/fs/cgroup/box/memory.stat", fmt::format("inactive_file {}\nactive_file 0\n", cache));
  }
  Machine found() const {
    const auto machine = this_machine(".", machine_.root());
    EXPECT_TRUE(machine.ok()) << (machine ? "" : machine.error().message);
    return machine ? *machine : Machine{};
  }

  FakeMachine machine_;
};

TEST_F(ThisMachine, WithoutAGpuComputesOnTheCpu) {
  const Machine here = found();
  EXPECT_TRUE(here.is_this && here.device.is_unified);
  EXPECT_EQ(here.device.id, "cpu");
  EXPECT_EQ(here.device.visible_bytes, 125 * kGib);
  EXPECT_EQ(here.host_memory_bytes, 0u);
  EXPECT_GT(here.device.bandwidth_bytes_per_s, 1e9);
  EXPECT_GT(here.device.flops_bf16, 1e9);
  EXPECT_EQ(here.device.devices_per_node, 1u);
  EXPECT_FALSE(here.device.has_peers_memory);
}

TEST_F(ThisMachine, PageCacheThatCanBeDroppedIsAvailable) {
  EXPECT_EQ(found().host_available_bytes, 110 * kGib) << "2 GiB are free, the rest is page cache";
  memory(125, 110, 100);
  EXPECT_EQ(found().host_available_bytes, 110 * kGib) << "whatever is free";
}

TEST_F(ThisMachine, HoldsWhatItsCgroupAllows) {
  cgroup(32 * kGib, 20 * kGib, 16 * kGib);
  const Machine here = found();
  EXPECT_EQ(here.device.visible_bytes, 32 * kGib);
  EXPECT_EQ(here.host_available_bytes, 28 * kGib) << "16 of the 20 GiB it holds are page cache";
}

TEST_F(ThisMachine, Gb10IsASparkWithItsOwnMemory) {
  memory(121, 100, 1);
  nvidia(15, "NVIDIA GB10");
  const Machine here = found();
  EXPECT_EQ(here.device.id, "dgx-spark");
  EXPECT_EQ(here.device.visible_bytes, 121 * kGib);
  EXPECT_EQ(here.device.host_reserve_bytes, 26 * kGib);
  EXPECT_EQ(here.host_memory_bytes, 0u);
}

TEST_F(ThisMachine, NvidiaGpusAreCounted) {
  for (int bus = 1; bus <= 8; ++bus) nvidia(bus, "NVIDIA H200");
  const Machine here = found();
  EXPECT_EQ(here.device.id, "h200");
  EXPECT_EQ(here.device.devices_per_node, 8u);
  EXPECT_EQ(here.device.visible_bytes, 143'771 * kMib);
  EXPECT_EQ(here.host_memory_bytes, 125 * kGib) << "this machine's, not the data's";
  EXPECT_EQ(here.host_available_bytes, 110 * kGib);
}

TEST_F(ThisMachine, EveryEditionOfACard) {
  for (const auto& [edition, id] : {std::pair{"Workstation Edition", "rtx-pro-6000"},
                                    {"Server Edition", "rtx-pro-6000-server"},
                                    {"Max-Q Workstation Edition", "rtx-pro-6000-max-q"}}) {
    nvidia(1, std::string("NVIDIA RTX PRO 6000 Blackwell ") + edition);
    EXPECT_EQ(found().device.id, id);
  }
}

TEST_F(ThisMachine, OfSeveralKindsTheMostNumerousKnownOneIsTaken) {
  nvidia(1, "NVIDIA GeForce RTX 3090");
  nvidia(2, "NVIDIA GeForce RTX 3090");
  nvidia(3, "NVIDIA GeForce RTX 4090");
  nvidia(4, "NVIDIA T400 4GB");
  nvidia(5, "NVIDIA T400 4GB");
  nvidia(6, "NVIDIA T400 4GB");
  const Machine here = found();
  EXPECT_EQ(here.device.id, "rtx-3090");
  EXPECT_EQ(here.device.devices_per_node, 2u);
  std::string sources;
  for (const std::string& source : here.device.sources) sources += source + "\n";
  EXPECT_NE(sources.find("1 x NVIDIA GeForce RTX 4090"), std::string::npos) << sources;
  EXPECT_NE(sources.find("3 x NVIDIA T400 4GB"), std::string::npos) << sources;
}

TEST_F(ThisMachine, AnUnknownGpuIsNamedAndSaysWhatToDo) {
  nvidia(1, "NVIDIA L4");
  expect_refused(this_machine(".", machine_.root()), ErrorCode::kUnsupported, {"NVIDIA L4", "--device", "--visible"});
}

TEST_F(ThisMachine, AmdGpusHaveTheMemoryThatSysfsTells) {
  amd(0, "0x74a1", 206'141'652'992);
  amd(1, "0x74a1", 206'141'652'992);
  machine_.put("/sys/class/drm/card0-DP-1/status", "connected\n");
  const Machine here = found();
  EXPECT_EQ(here.device.id, "mi300x");
  EXPECT_EQ(here.device.devices_per_node, 2u);
  EXPECT_EQ(here.device.visible_bytes, 206'141'652'992u);
}

TEST_F(ThisMachine, TheSmallGpuOfAProcessorDoesNotCount) {
  amd(0, "0x164e", 512 * kMib);
  EXPECT_EQ(found().device.id, "cpu");
  nvidia(1, "NVIDIA GeForce RTX 4090");
  EXPECT_EQ(found().device.id, "rtx-4090");
}

TEST_F(ThisMachine, StrixHaloIsUnified) {
  amd(0, "0x1586", 512 * kMib);
  const Machine here = found();
  EXPECT_EQ(here.device.id, "strix-halo");
  EXPECT_EQ(here.device.visible_bytes, 125 * kGib);
}

TEST_F(ThisMachine, AnotherUnifiedGpuIsNamed) {
  machine_.put("/proc/device-tree/compatible", std::string("nvidia,tegra234\0", 16));
  machine_.put("/proc/device-tree/model", "NVIDIA Jetson AGX Orin");
  const Machine here = found();
  EXPECT_TRUE(here.device.is_unified);
  EXPECT_EQ(here.device.name, "NVIDIA Jetson AGX Orin");
}

TEST_F(ThisMachine, WithoutFiguresOfTheKernelThereIsNone) {
  machine_.put("/proc/meminfo", "MemTotal: 1 kB\n");
  expect_refused(this_machine(".", machine_.root()), ErrorCode::kUnsupported, {"MemAvailable"});
}

TEST(ThisVeryMachine, IsFound) {
  const TempDir dir;
  const auto here = this_machine(dir.file(""));
  if (!here) GTEST_SKIP() << here.error().message;
  EXPECT_GT(here->device.visible_bytes, 64 * kMib);
  EXPECT_GT(here->device.bandwidth_bytes_per_s, 1e8);
  ASSERT_TRUE(here->host_available_bytes && here->disk_free_bytes);
  EXPECT_GT(*here->disk_free_bytes, 0u);
  EXPECT_FALSE(here->drive.name.empty());
}

}  // namespace
}  // namespace rowtide::sizing
