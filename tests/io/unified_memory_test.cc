// Which machines are known to have one memory for CPU and GPU.
#include "io/unified_memory.h"

#include <gtest/gtest.h>

#include "support/fake_machine.h"

namespace rowtide::io {
namespace {

using namespace std::string_literals;

TEST(UnifiedMemory, UnknownMachinesHaveNone) {
  const FakeMachine machine;
  EXPECT_EQ(unified_memory(machine.root()), "");
  machine.put("/sys/class/dmi/id/product_name", "B650 Gaming\n");
  machine.put("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA GeForce RTX 4090\nIRQ: 80\n");
  machine.put("/proc/device-tree/compatible", "raspberrypi,5-model-b\0brcm,bcm2712\0"s);
  machine.put("/sys/class/drm/card0/device/vendor", "0x1002\n");  // the small GPU of a desktop processor
  machine.put("/sys/class/drm/card0/device/device", "0x164e\n");
  machine.put("/sys/class/drm/card1/device/vendor", "0x8086\n");
  machine.put("/sys/class/drm/card1/device/device", "0x1586\n");
  EXPECT_EQ(unified_memory(machine.root()), "");
}

TEST(UnifiedMemory, GraceHopperAndGraceBlackwellServersHaveTwo) {
  for (const char* model : {"NVIDIA GH200 480GB", "NVIDIA GB100", "NVIDIA GB200", "NVIDIA GB102"}) {
    const FakeMachine machine;
    machine.put("/proc/driver/nvidia/gpus/0009:01:00.0/information", "Model: \t\t "s + model + "\nIRQ:   \t\t 80\n");
    EXPECT_EQ(unified_memory(machine.root()), "") << model;
  }
}

TEST(UnifiedMemory, Gb10OfAnyMaker) {
  const FakeMachine machine;
  machine.put("/sys/class/dmi/id/product_name", "Ascent GX10\n");
  machine.put("/proc/driver/nvidia/gpus/000f:01:00.0/information",
              "Model: \t\t NVIDIA GB10\nIRQ:   \t\t 509\nGPU UUID: \t GPU-2dee1e25\nBus Location: \t 000f:01:00.0\n");
  EXPECT_EQ(unified_memory(machine.root()), "NVIDIA GB10");
}

TEST(UnifiedMemory, SparkWithoutTheDriversFiles) {
  const FakeMachine machine;
  machine.put("/sys/class/dmi/id/product_name", "NVIDIA_DGX_Spark\n");
  EXPECT_EQ(unified_memory(machine.root()), "NVIDIA DGX Spark");
}

TEST(UnifiedMemory, Jetson) {
  const FakeMachine machine;
  machine.put("/proc/device-tree/compatible", "nvidia,p3737-0000+p3701-0000\0nvidia,p3701-0000\0nvidia,tegra234\0"s);
  EXPECT_EQ(unified_memory(machine.root()), "NVIDIA Jetson");
  machine.put("/proc/device-tree/model", "NVIDIA Jetson AGX Orin Developer Kit\0"s);
  EXPECT_EQ(unified_memory(machine.root()), "NVIDIA Jetson AGX Orin Developer Kit");
}

TEST(UnifiedMemory, AmdApusThatModelsRunOn) {
  for (const auto& [device, name] : {std::pair{"0x1586", "AMD Strix Halo"}, {"0x74a0", "AMD Instinct MI300A"}}) {
    const FakeMachine machine;
    machine.put("/sys/class/drm/card1/device/vendor", "0x1002\n");
    machine.put("/sys/class/drm/card1/device/device", std::string(device) + "\n");
    machine.put("/sys/class/drm/version", "drm 1.1.0 20060810\n");
    EXPECT_EQ(unified_memory(machine.root()), name);
  }
}

}  // namespace
}  // namespace rowtide::io
