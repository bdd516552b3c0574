// Engines: what stands in the way of a plan, and what a step costs, as the data says.
#include "sizing/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "sizing/data.h"
#include "support/memory_disk.h"

namespace rowtide::sizing {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

Request request_for(const char* family, const char* format, const char* device) {
  Request request;
  request.machine = machine_of(*known_device(device));
  request.model.family = family;
  request.model.format = format;
  if (*family != '\0') request.model.tables.push_back({"table", 1, 1000, 160, 160, 24, 8, 1});
  request.model.states.push_back({"recurrent", 36, 1000, 0, 0, false, 1});
  request.kv = request.model.format == "gguf" ? KvType::kF16 : KvType::kBf16;
  return request;
}
Request qwen_gguf(const char* device = "dgx-spark") { return request_for("qwen_ple", "gguf", device); }
Request qwen_request(const char* device = "dgx-spark") { return request_for("qwen_ple", "safetensors", device); }

std::vector<std::string> ids(EngineId id, const Request& request, Placement placement) {
  std::vector<std::string> found;
  for (const EngineLimit& limit : limits_in_the_way(id, request, placement)) found.push_back(limit.id);
  return found;
}

TEST(Engines, AreNamed) {
  ASSERT_EQ(engines().size(), 3u);
  for (const Engine& each : engines()) {
    EXPECT_EQ(*engine_named(engine_name(each.id)), each.id);
    EXPECT_EQ(*engine_named(engine_key(each.id)), each.id);
    EXPECT_EQ(&engine(each.id), &each);
    EXPECT_FALSE(each.version.empty());
    for (const std::string& source : {each.runtime_source, each.graph_source, each.host_source}) {
      EXPECT_FALSE(source.empty());
    }
  }
  EXPECT_EQ(*engine_named("LLAMA-CPP"), EngineId::kLlamaCpp);
  EXPECT_EQ(*engine_named("llama-server"), EngineId::kLlamaCpp);
  expect_refused(engine_named("vlm"), ErrorCode::kUsage, {"'vlm'", "'vllm'", "llama_cpp"});
}

TEST(StepOverhead, OfTheVerySameReport) {
  const Request request = qwen_gguf();
  const StepOverhead spark = step_overhead(EngineId::kLlamaCpp, request.model, request.machine.device, false);
  EXPECT_EQ(spark.ms, 22);
  EXPECT_THAT(spark.source, HasSubstr("27.8 tok/s"));
  EXPECT_THAT(spark.source, Not(HasSubstr("nearest")));
}

TEST(StepOverhead, ElsewhereOfTheNearestAndSaysSo) {
  const Request request = qwen_gguf("b200");
  const StepOverhead other = step_overhead(EngineId::kLlamaCpp, request.model, request.machine.device, false);
  EXPECT_GT(other.ms, 0);
  EXPECT_THAT(other.source, HasSubstr("nearest"));
  const Request deepseek = request_for("deepseek_engram", "safetensors", "dgx-spark");
  const StepOverhead drafting = step_overhead(EngineId::kVllm, deepseek.model, deepseek.machine.device, true);
  EXPECT_THAT(drafting.source, HasSubstr("on four"));
  const Request plain = request_for("", "safetensors", "h100");
  EXPECT_GT(step_overhead(EngineId::kSglang, plain.model, plain.machine.device, false).ms, 0);
}

// A table's gather breaks captured graphs: what that costs is no matter of plain models.
TEST(StepOverhead, OfAPlainModelIsNeverThatOfATable) {
  for (const Device& device : known_devices()) {
    for (const std::uint32_t experts : {0u, 128u}) {
      Request plain = request_for("", "gguf", device.id.c_str());
      plain.model.experts = experts;
      for (const Engine& each : engines()) {
        const StepOverhead overhead = step_overhead(each.id, plain.model, device, false);
        EXPECT_LT(overhead.ms, 8) << device.id << ", " << engine_key(each.id);
        EXPECT_THAT(overhead.source, Not(HasSubstr("qwen_ple"))) << device.id << ", " << engine_key(each.id);
      }
      const ArithmeticShare share = arithmetic_share(EngineId::kLlamaCpp, plain.model, device);
      EXPECT_THAT(share.source, Not(HasSubstr("B200 with the table"))) << device.id;
      if (!device.is_unified) {
        EXPECT_GE(share.share, 0.05) << device.id;
      }
    }
  }
}

TEST(StepOverhead, OnACpuIsNextToNothingWhateverTheModel) {
  Request request = qwen_gguf();
  request.machine.device.id = "cpu";
  EXPECT_LT(step_overhead(EngineId::kLlamaCpp, request.model, request.machine.device, false).ms, 1);
  request.model.tables.clear();
  EXPECT_LT(step_overhead(EngineId::kLlamaCpp, request.model, request.machine.device, false).ms, 1);
}

TEST(Limits, LlamaCppOnASparkWithTheTableOnNvmeHasNone) {
  EXPECT_THAT(ids(EngineId::kLlamaCpp, qwen_gguf(), Placement::kNvme), IsEmpty());
}

TEST(Limits, LlamaCppTakesNoQuantisedKvForThisModel) {
  Request request = qwen_gguf();
  request.kv = KvType::kQ8_0;
  EXPECT_THAT(ids(EngineId::kLlamaCpp, request, Placement::kNvme), Contains("llama-quantised-kv"));
  request.model.family = "";
  request.model.tables.clear();
  EXPECT_THAT(ids(EngineId::kLlamaCpp, request, Placement::kDevice), IsEmpty()) << "another model";
}

TEST(Limits, PinnedMemoryIsRefusedWhereverMemoryIsOne) {
  for (const Device& device : known_devices()) {
    for (const Engine& each : engines()) {
      const auto found = ids(each.id, qwen_request(device.id.c_str()), Placement::kPinned);
      if (device.is_unified) {
        EXPECT_THAT(found, Contains("pinned-on-unified")) << device.id;
      } else {
        EXPECT_THAT(found, Not(Contains("pinned-on-unified"))) << device.id;
      }
    }
  }
}

TEST(Limits, VllmHasNoDiskTier) {
  EXPECT_THAT(ids(EngineId::kVllm, qwen_request("rtx-pro-6000"), Placement::kNvme), Contains("vllm-disk"));
  EXPECT_THAT(ids(EngineId::kVllm, qwen_request("rtx-pro-6000"), Placement::kPinned), IsEmpty());
  EXPECT_THAT(ids(EngineId::kVllm, request_for("", "safetensors", "h100"), Placement::kNvme), IsEmpty())
      << "a model without a table has nothing to place";
}

TEST(Limits, SglangComputesNoNvfp4OnAmd) {
  Request request = qwen_request("mi355x");
  request.model.precision = "NVFP4-MXFP8";
  EXPECT_THAT(ids(EngineId::kSglang, request, Placement::kPinned), Contains("sglang-nvfp4-amd"));
  EXPECT_THAT(ids(EngineId::kVllm, request, Placement::kPinned), IsEmpty()) << "emulated";
  request.model.precision = "FP8";
  EXPECT_THAT(ids(EngineId::kSglang, request, Placement::kPinned), IsEmpty());
}

TEST(Limits, VllmLeavesNoRankWithoutHashHeads) {
  Request request = request_for("deepseek_engram", "safetensors", "b300");
  for (const auto& [tp, refused] : {std::pair{1u, false}, {2u, false}, {8u, false}, {12u, false}, {16u, true}}) {
    request.tp = request.devices = tp;
    const auto found = ids(EngineId::kVllm, request, Placement::kPinned);
    EXPECT_EQ(std::count(found.begin(), found.end(), "vllm-head-shards"), refused ? 1 : 0) << tp;
  }
}

TEST(Limits, SglangsFileNeedsAGpuThatReadsHostPages) {
  EXPECT_THAT(ids(EngineId::kSglang, qwen_request(), Placement::kNvme), IsEmpty());
  EXPECT_THAT(ids(EngineId::kSglang, qwen_request("rtx-pro-6000"), Placement::kNvme),
              Contains("sglang-file-needs-host-page-tables"));
}

TEST(Limits, ModelsThatLlamaCppDoesNotKnow) {
  EXPECT_THAT(ids(EngineId::kLlamaCpp, request_for("deepseek_engram", "safetensors", "b300"), Placement::kHost),
              testing::IsSupersetOf({"llama-deepseek-v41", "llama-gguf-only"}));
  EXPECT_THAT(ids(EngineId::kLlamaCpp, request_for("longcat", "gguf", "b300"), Placement::kHost),
              Contains("llama-longcat"));
}

/// All limits that any combination meets.
std::set<std::string> all_that_occur() {
  std::set<std::string> met;
  for (const char* family : {"", "qwen_ple", "deepseek_engram", "longcat"}) {
    for (const char* format : {"gguf", "safetensors"}) {
      for (const char* device : {"dgx-spark", "rtx-pro-6000", "m4-max"}) {
        Request request = request_for(family, format, device);
        request.state = StateType::kBf16;
        for (const std::uint32_t ranks : {1u, 16u}) {
          request.tp = request.devices = request.nodes = ranks;
          for (const KvType kv : {KvType::kBf16, KvType::kFp8, KvType::kQ8_0}) {
            request.kv = kv;
            for (const Placement placement :
                 {Placement::kDevice, Placement::kPinned, Placement::kHost, Placement::kNvme, Placement::kRemote}) {
              for (const Engine& each : engines()) {
                for (const std::string& id : ids(each.id, request, placement)) met.insert(id);
              }
            }
          }
        }
      }
    }
  }
  return met;
}

TEST(Limits, EveryOneOfTheDataOccursAndSaysWhatToDo) {
  std::set<std::string> met = all_that_occur();
  Request amd = qwen_request("mi300x");
  amd.model.precision = "NVFP4";
  for (const std::string& id : ids(EngineId::kSglang, amd, Placement::kPinned)) met.insert(id);
  Request many = qwen_gguf();
  many.concurrency = 257;
  for (const std::string& id : ids(EngineId::kLlamaCpp, many, Placement::kNvme)) met.insert(id);
  Request cpu = qwen_request();
  cpu.machine.device.id = "cpu";
  for (const std::string& id : ids(EngineId::kVllm, cpu, Placement::kNvme)) met.insert(id);
  const nlohmann::json all = nlohmann::json::parse(data::engines);
  for (const auto& limit : all.at("limits")) {
    const std::string id = limit.at("id"), reason = limit.at("reason");
    EXPECT_TRUE(met.count(id)) << id;
    EXPECT_THAT(reason, testing::ContainsRegex("; (use|put|take|choose|without)")) << id;
    EXPECT_FALSE(limit.at("source").get<std::string>().empty()) << id;
  }
}

}  // namespace
}  // namespace rowtide::sizing
