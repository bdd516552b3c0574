// The known devices: capacities in the units they are sold, installed and seen in; names; what plans take of drives.
#include "sizing/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "io/drive.h"
#include "sizing/planned.h"
#include "support/memory_disk.h"
#include "support/temp_dir.h"

namespace rowtide::sizing {
namespace {

constexpr std::uint64_t kMebibyte = 1 << 20;

Device device(std::string_view name) {
  const auto found = known_device(name);
  EXPECT_TRUE(found.ok()) << name << ": " << (found ? "" : found.error().message);
  return found ? *found : Device{};
}

TEST(Devices, EveryOneIsWhole) {
  std::set<std::string> ids;
  for (const Device& each : known_devices()) {
    SCOPED_TRACE(each.id);
    EXPECT_TRUE(ids.insert(each.id).second);
    EXPECT_FALSE(each.name.empty());
    EXPECT_GT(each.sold_bytes, 0u);
    EXPECT_GE(each.installed_bytes, each.sold_bytes) << "sold in decimal, installed in binary";
    EXPECT_LE(each.visible_bytes, each.installed_bytes);
    EXPECT_GT(each.visible_bytes, each.sold_bytes * 9 / 10);
    EXPECT_GT(each.bandwidth_bytes_per_s, 1e11);
    EXPECT_TRUE(each.bandwidth_share > 0.5 && each.bandwidth_share <= 1);
    EXPECT_TRUE(each.compute_share > 0 && each.compute_share <= 1);
    EXPECT_GT(each.flops_bf16, 1e12);
    EXPECT_TRUE(each.flops_fp8 == 0 || each.flops_fp8 > each.flops_bf16);
    EXPECT_TRUE(each.flops_fp4 == 0 || each.flops_fp4 > each.flops_fp8);
    EXPECT_GT(each.devices_per_node, 0u);
    for (const Link& link : {each.host_link, each.peer_link, each.node_link}) {
      EXPECT_FALSE(link.name.empty());
      EXPECT_FALSE(link.source.empty());
      EXPECT_GT(link.bytes_per_s, 1e9);
    }
    EXPECT_EQ(each.host_memory_bytes == 0, each.is_unified);
    EXPECT_GT(each.host_reserve_bytes, 0u);
    for (const std::string& said : {each.bandwidth_share_source, each.compute_share_source, each.host_reserve_reason}) {
      EXPECT_FALSE(said.empty());
    }
    EXPECT_GE(each.sources.size(), 3u) << "of memory, bandwidth and operations";
  }
}

TEST(Devices, EditionsOfOneCardDiffer) {
  EXPECT_EQ(device("rtx-pro-6000-server").bandwidth_bytes_per_s, 1597e9);
  EXPECT_EQ(device("rtx-pro-6000-max-q").bandwidth_bytes_per_s, 1792e9);
  EXPECT_LT(device("rtx-pro-6000-max-q").flops_bf16, device("rtx-pro-6000-server").flops_bf16);
  EXPECT_LT(device("rtx-pro-6000-server").flops_bf16, device("rtx-pro-6000").flops_bf16);
}

TEST(Devices, OnlyGraceReachesItsGpusFasterThanPcie5) {
  EXPECT_EQ(device("b300").host_link.name, "PCIe 5.0 x16");
  EXPECT_EQ(device("gb300").host_link.name, "NVLink-C2C");
}

TEST(Devices, DgxSpark) {
  const Device spark = device("dgx-spark");
  EXPECT_TRUE(spark.is_unified);
  EXPECT_EQ(spark.sold_as, "128 GB");
  EXPECT_EQ(spark.sold_bytes, 128'000'000'000u);
  EXPECT_EQ(spark.installed_bytes, std::uint64_t{128} << 30);
  EXPECT_NEAR(static_cast<double>(spark.visible_bytes) / kGiB, 121.6, 0.001);
  EXPECT_EQ(spark.bandwidth_bytes_per_s, 273e9);
  EXPECT_EQ(spark.host_reserve_bytes, std::uint64_t{26} << 30);
  EXPECT_TRUE(spark.has_peers_memory);
  EXPECT_EQ(spark.devices_per_node, 1u);
  EXPECT_EQ(spark.node_link.bytes_per_s, 25e9) << "200 Gb/s";
}

TEST(Devices, CapacitiesAsTheDriverShowsThem) {
  EXPECT_EQ(device("rtx-pro-6000").visible_bytes, 97'887 * kMebibyte);
  EXPECT_EQ(device("rtx-5090").visible_bytes, 32'607 * kMebibyte);
  EXPECT_EQ(device("rtx-4090").visible_bytes, 24'564 * kMebibyte);
  EXPECT_EQ(device("h200").visible_bytes, 143'771 * kMebibyte);
  EXPECT_EQ(device("b200").visible_bytes, 183'359 * kMebibyte);
  EXPECT_EQ(device("mi300x").visible_bytes, 206'141'652'992u);
  EXPECT_EQ(device("b300").bandwidth_bytes_per_s, 8e12);
  EXPECT_EQ(device("rtx-pro-6000").bandwidth_bytes_per_s, 1792e9);
  EXPECT_EQ(device("strix-halo").bandwidth_bytes_per_s, 256e9);
}

TEST(Devices, AreFoundByManyNames) {
  for (const char* name : {"dgx-spark", "DGX Spark", "GB10", "nvidia_gb10", " NVIDIA DGX Spark (GB10)", "spark"}) {
    EXPECT_EQ(device(name).id, "dgx-spark") << name;
  }
  for (const char* name : {"rtx 5090", "RTX-5090", "rtx5090", "NVIDIA GeForce RTX 5090", "5090"}) {
    EXPECT_EQ(device(name).id, "rtx-5090") << name;
  }
  EXPECT_EQ(device("Apple M3 Ultra").id, "m3-ultra");
  EXPECT_EQ(device("AMD Instinct MI300X").id, "mi300x");
}

TEST(Devices, AnUnknownOneNamesTheNearest) {
  expect_refused(known_device("rtx 5080"), ErrorCode::kUsage, {"'rtx 5080'", "'rtx-5090'"});
  expect_refused(known_device("dgxspark2"), ErrorCode::kUsage, {"'dgxspark2'", "'dgx-spark'", "b300"});
  expect_refused(known_device(""), ErrorCode::kUsage, {"dgx-spark"});
  expect_refused(known_device("\x01\xff"), ErrorCode::kUsage, {"\\x01"});
}

TEST(Machines, HaveWhatTheirDeviceComesWith) {
  const Machine spark = machine_of(device("dgx-spark"));
  EXPECT_EQ(spark.host_memory_bytes, 0u) << "one memory";
  EXPECT_FALSE(spark.is_this);
  EXPECT_FALSE(spark.host_available_bytes || spark.disk_free_bytes);
  EXPECT_GT(spark.drive.reads_per_s, 10'000);
  EXPECT_FALSE(spark.drive.source.empty());
  EXPECT_EQ(machine_of(device("rtx-pro-6000")).host_memory_bytes, std::uint64_t{128} << 30);
  EXPECT_EQ(machine_of(device("b300")).host_memory_bytes, std::uint64_t{2} << 40);
}

TEST(Drives, AreAsCalibrated) {
  const TempDir dir;
  ::setenv("XDG_CACHE_HOME", dir.file("cache").c_str(), 1);
  EXPECT_FALSE(calibrated_drive(dir.file("")).has_value());
  const io::DriveFigures figures{4096, 85.5, {{1, 11'000}, {128, 140'000}, {256, 139'000}}, 2.5e9, 128};
  ASSERT_TRUE(io::keep_figures(*io::drive_of(dir.file("")), figures).ok());
  const auto rates = calibrated_drive(dir.file(""));
  ASSERT_TRUE(rates.has_value());
  EXPECT_EQ(rates->reads_per_s, 140'000);
  EXPECT_EQ(rates->serial_us, 85.5);
  EXPECT_EQ(rates->sequential_bytes_per_s, 2.5e9);
  EXPECT_EQ(rates->name, io::drive_of(dir.file(""))->name);
  EXPECT_FALSE(calibrated_drive(dir.file("absent")).has_value());
  ::unsetenv("XDG_CACHE_HOME");
}

}  // namespace
}  // namespace rowtide::sizing
