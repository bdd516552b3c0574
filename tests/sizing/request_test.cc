// What a plan may be asked for, and how a slip is answered.
#include <cstddef>

#include "sizing/planned.h"

namespace rowtide::sizing {
namespace {

using testing::Test;

bool names(const std::string& message, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words) {
    if (message.find(word) == std::string::npos) {
      ADD_FAILURE() << "'" << word << "' is not in: " << message;
      return false;
    }
  }
  return true;
}

TEST(PlanOption, EveryOneIsSetByItsName) {
  for (const PlanOption& option : plan_options()) {
    PlanOptions options;
    const std::string_view value = option.value_name == "SIZE"   ? "1GiB"
                                   : option.value_name == "N"    ? "1"
                                   : option.value_name == "X"    ? "0.5"
                                   : option.value_name == "TYPE" ? (option.name == "state" ? "f32" : "f16")
                                   : option.name == "placement"  ? "nvme"
                                   : option.name == "engine"     ? "vllm"
                                   : option.value_name.empty()   ? ""
                                                                 : "x";
    EXPECT_TRUE(set_plan_option(options, option.name, value)) << option.name;
  }
}

TEST(PlanOption, ASlipIsNamed) {
  PlanOptions options;
  const auto message = [&](std::string_view name, std::string_view value) {
    auto set = set_plan_option(options, name, value);
    return set ? std::string() : set.error().message;
  };
  names(message("contxt", "1"), {"contxt", "context"});
  names(message("context", "0"), {"--context 0", "1 to"});
  names(message("context", "-1"), {"--context -1"});
  names(message("context", "9999999999999999999999"), {"--context"});
  names(message("concurrency", "1.5"), {"--concurrency 1.5"});
  names(message("host-reserve", "26"), {});
  names(message("host-reserve", "lots"), {"--host-reserve lots", "26GiB"});
  names(message("weights", "99999999TB"), {"--weights"});
  names(message("memory-fraction", "1.2"), {"--memory-fraction 1.2", "at most 1"});
  names(message("memory-fraction", "nan"), {"--memory-fraction nan"});
  names(message("kv", "fp9"), {"--kv fp9", "f16, bf16, fp8, q8_0"});
  names(message("placement", "nvm"), {"--placement nvm", "nvme"});
  names(message("target-tok-s", "0"), {"--target-tok-s 0", "above 0"});
}

TEST(Request, ContradictionsAreTheSameInEitherOrder) {
  EXPECT_EQ(refusal({{"path", "x.gguf"}, {"model", kQwen}, {"device", kSpark}}),
            refusal({{"device", kSpark}, {"model", kQwen}, {"path", "x.gguf"}}));
  names(refusal({{"path", "x.gguf"}, {"model", kQwen}, {"device", kSpark}}), {"x.gguf", "--model", "contradict"});
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"this-machine", ""}}), {"--device", "--this-machine"});
  names(refusal({{"device", kSpark}}), {"no model"});
  names(refusal({{"model", kQwen}}), {"no machine"});
  names(refusal({{"path", "models/x.gguf"}, {"precision", "FP8"}, {"device", kSpark}}), {"--precision"});
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"host-memory", "64GiB"}}), {"--host-memory", "one memory"});
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"placement", "device"}, {"memory", "4GiB"}}), {"--memory"});
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"host-reserve", "200GiB"}}), {"--host-reserve"});
}

TEST(Request, WhatATableWouldNeedIsRefusedWithoutOne) {
  names(refusal({{"model", "Llama-3.1-8B"}, {"device", kSpark}, {"memory", "4GiB"}}),
        {"--memory", "no conditional-memory"});
  names(refusal({{"model", "Llama-3.1-8B"}, {"device", kSpark}, {"decode-tok-s", "5"}}), {"--decode-tok-s"});
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"memory", "1MiB"}}), {"--memory", "32.0 MiB at least"});
}

TEST(Request, NodesShareDevicesEvenly) {
  auto request = requested({{"model", "Llama-3.1-8B"}, {"device", "h100"}, {"devices", "9"}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->devices % request->nodes, 0u);
  EXPECT_LE(request->devices_per_node(), 8u);
}

TEST(Request, WhatIsNotKnownComesWithTheNearest) {
  names(refusal({{"model", "Qwen3.8-Flash-Nxt"}, {"device", kSpark}}), {"Qwen3.8-Flash-Next"});
  names(refusal({{"model", kQwen}, {"precision", "NVFP5"}, {"device", kSpark}}), {"NVFP4"});
  names(refusal({{"model", kQwen}, {"device", "dgx-sparc"}}), {"dgx-spark"});
}

TEST(Request, ContextBeyondTheModel) {
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"context", "262145"}}), {"--context 262145", "262144"});
  EXPECT_EQ(refusal({{"model", kQwen}, {"device", kSpark}, {"context", "262144"}}), "");
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"context", "1000"}, {"prompt", "900"}, {"output", "200"}}),
        {"prompt of 900", "--context 1100"});
  auto request = requested({{"model", kQwen}, {"device", kSpark}, {"context", "1024"}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->prompt + request->output, 1'024u);
}

TEST(Request, ADraftVocabularyIsOfAModuleThatDrafts) {
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"draft-vocabulary", "65000"}}), {"--draft-vocabulary 65000"});
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"speculate", "3"}, {"draft-vocabulary", "300000"}}),
        {"--draft-vocabulary 300000", "248320"});
}

TEST(Request, RoomOnTheDriveIsAsAskedFor) {
  const Plan unknown = planned({{"model", kQwen}, {"device", kSpark}});
  EXPECT_FALSE(unknown.request.machine.disk_free_bytes);
  const Plan small = planned({{"model", kQwen}, {"precision", "NVFP4"}, {"device", kSpark}, {"disk", "100GB"}});
  EXPECT_EQ(small.pools.back().capacity_bytes, 100'000'000'000u);
  EXPECT_FALSE(small.fits) << "a checkpoint of 133 GB";
  const Plan large = planned({{"model", kQwen}, {"precision", "NVFP4"}, {"device", kSpark}, {"disk", "1TB"}});
  EXPECT_TRUE(large.fits);
  names(refusal({{"model", kQwen}, {"device", kSpark}}), {});
  PlanOptions options;
  EXPECT_FALSE(set_plan_option(options, "disk", "0"));
}

TEST(Request, RanksThatDoNotDivide) {
  const auto split = [](std::string_view model, std::string_view tp) {
    return refusal({{"model", model}, {"device", "h100"}, {"devices", tp}, {"tp", tp}});
  };
  names(split(kQwen, "5"), {"--tp 5", "24", "1, 2, 4, 8"});
  names(split(kQwen, "3"), {"--tp 3", "key-value heads"});
  names(split(kQwen, "6"), {"--tp 6", "heads of its Gated DeltaNet"});
  names(refusal({{"model", kQwen}, {"device", "h100"}, {"devices", "4"}, {"tp", "8"}}), {"--tp 8", "4 devices"});
  names(refusal({{"model", kQwen}, {"device", "h100"}, {"devices", "8"}, {"dp", "3"}}), {"--dp 3", "8 devices"});
  names(refusal({{"model", kQwen}, {"device", "h100"}, {"devices", "8"}, {"ep", "3"}}), {"--ep 3"});
  names(split("DeepSeek-V4.1-Flash", "16"), {"--tp 16", "24 hash heads", "4 ranks without", "1, 2, 4, 8"});
  names(refusal({{"model", kQwen}, {"device", kSpark}, {"devices", "4"}, {"nodes", "2"}}), {"--nodes 2", "4 nodes"});
}

TEST(Request, DevicesThatCannotShareAModelAreReplicas) {
  auto request = requested({{"model", kQwen}, {"device", "h100"}, {"devices", "6"}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->tp, 2u);
  EXPECT_EQ(request->dp, 3u);
  ASSERT_FALSE(request->notes.empty());
  names(request->notes.front(), {"6 devices", "3 replicas of 2"});
  // Whole layers go to the devices of llama.cpp, however many.
  auto layers = requested({{"model", kQwen}, {"precision", "Q4"}, {"device", "rtx-3090"}, {"devices", "5"}});
  ASSERT_TRUE(layers) << layers.error().message;
  EXPECT_EQ(layers->tp, 5u);
}

TEST(Request, DefaultsAreSaidAndFit) {
  auto request = requested({{"model", kQwen}, {"device", kSpark}, {"devices", "2"}});
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->tp, 2u);
  EXPECT_EQ(request->nodes, 2u);
  EXPECT_EQ(request->context, 32'768u);
  EXPECT_EQ(request->chunk, 2'048u);
  EXPECT_FALSE(request->host_reserve_source.empty());
}

}  // namespace
}  // namespace rowtide::sizing
