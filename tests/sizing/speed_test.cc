#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rapidcheck/gtest.h>

#include <numeric>

#include "sizing/acceptance.h"
#include "sizing/anatomy.h"
#include "sizing/speed.h"
#include "sizing/traffic.h"

namespace rowtide::sizing {
namespace {

using ::testing::HasSubstr;

Request request_of(std::string_view model, std::string_view precision, std::string_view device,
                   std::uint32_t devices = 1) {
  Request request;
  request.model = *known_model(model, precision);
  request.machine = machine_of(*known_device(device));
  request.devices = request.nodes = request.tp = devices;
  request.context = 32'768;
  return request;
}

Request qwen_q4_on_a_spark() { return request_of("Qwen3.8-Flash-Next", "Q4", "dgx-spark"); }

/// Without any term but the weights: 100 GB/s, 8 GB of dense weights, and 16 GB of experts, two of 16 a token.
Request small() {
  Request request;
  Model& model = request.model;
  model.layers = 10;
  model.vocabulary = 1000;
  model.experts = 16;
  model.experts_per_token = 2;
  model.part(Part::kDense) = {7'000'000'000, 3'500'000'000, ""};
  model.part(Part::kHead) = {1'000'000'000, 500'000'000, ""};
  model.part(Part::kRoutedExpert) = {16'000'000'000, 8'000'000'000, ""};
  Device& device = request.machine.device;
  device.bandwidth_bytes_per_s = 100e9;
  device.bandwidth_share = 0.8;
  device.flops_bf16 = 1e15;
  device.compute_share = 0.5;
  request.context = 4096;
  return request;
}

double total_ms(const std::vector<TimeTerm>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0,
                         [](double sum, const TimeTerm& term) { return sum + term.ms; });
}
double step_ms(const Speed& speed) { return total_ms(speed.step); }

double term_ms(const std::vector<TimeTerm>& terms, std::string_view name) {
  for (const TimeTerm& term : terms) {
    if (term.name == name) return term.ms;
  }
  return 0;
}

TEST(UnionTest, OnePositionReadsItsOwnExpertsAndManyReadAll) {
  EXPECT_DOUBLE_EQ(union_share(1, 10, 512), 10.0 / 512);
  EXPECT_LT(union_share(8, 10, 512), 8 * 10.0 / 512);
  EXPECT_NEAR(union_share(1e6, 10, 512), 1, 1e-9);
  EXPECT_EQ(union_share(5, 0, 0), 1);  // a dense model
}

// What the published steps leave for experts, as independent positions.
TEST(UnionTest, PositionsChooseAlikeAsMeasured) {
  const auto independent = [](double positions) { return 1 - std::pow(1 - 10.0 / 512, positions); };
  EXPECT_NEAR(union_share(4, 10, 512), independent(3.3), 0.004);
  EXPECT_NEAR(union_share(16, 10, 512), independent(10.9), 0.01);
  EXPECT_NEAR(union_share(32, 10, 512), independent(17.2), 0.03);
}

TEST(AcceptanceTest, TokensOfAStepAreThoseAcceptedInARow) {
  EXPECT_EQ(tokens_per_step(0, 0.9), 1);
  EXPECT_EQ(tokens_per_step(4, 0), 1);
  EXPECT_EQ(tokens_per_step(4, 1), 5);
  EXPECT_DOUBLE_EQ(tokens_per_step(2, 0.5), 1.75);
}

TEST(AcceptanceTest, IsOfTheModelsOwnDraftsAndSaysWhereItIsFrom) {
  const Drafter mtp = drafter_of(*known_model("Qwen3.8-Flash-Next", "NVFP4"));
  EXPECT_EQ(mtp.name, "MTP");
  EXPECT_NEAR(tokens_per_step(3, mtp.acceptance), 2.83, 0.05);
  EXPECT_NEAR(tokens_per_step(1, mtp.acceptance), 1.86, 0.1);
  const Drafter block = drafter_of(*known_model("DeepSeek-V4.1-Flash"));
  EXPECT_EQ(draft_passes(block, 5), 1);
  EXPECT_NEAR(tokens_per_step(5, block.acceptance), 2.2, 0.05);
  const Drafter text = drafter_of(*known_model("Qwen3.8-Flash-Next", "Q4"));
  EXPECT_EQ(draft_passes(text, 5), 0);
  for (const Drafter& drafter : {mtp, block, text}) EXPECT_FALSE(drafter.source.empty());
}

TEST(SpeedTest, AStepIsTheBytesItReadsOverTheBandwidthThatIsReached) {
  const Request request = small();
  const Speed speed = estimate_speed(request, EngineId::kVllm, nullptr);
  EXPECT_NEAR(term_ms(speed.step, "dense"), 7 / 80.0 * 1e3, 1e-9);
  EXPECT_NEAR(term_ms(speed.step, "output head"), 1 / 80.0 * 1e3, 1e-9);
  EXPECT_NEAR(term_ms(speed.step, "routed experts"), 16 * 2 / 16.0 / 80 * 1e3, 1e-9);
  EXPECT_NEAR(speed.decode_tok_s, 1e3 / step_ms(speed), 1e-9);
  EXPECT_NEAR(speed.bytes_per_token, 10e9, 1);
  EXPECT_NEAR(speed.decode_bound_tok_s, 10, 1e-9);
}

TEST(SpeedTest, ArithmeticCountsWhereItTakesLonger) {
  Request request = small();
  request.machine.device.flops_bf16 = 1e12;  // 2 x 5 G operations at half of it: 20 ms, less than the traffic
  EXPECT_EQ(term_ms(estimate_speed(request, EngineId::kVllm, nullptr).step, "arithmetic beyond memory traffic"), 0);
  request.machine.device.flops_bf16 = 1e11;
  const Speed slow = estimate_speed(request, EngineId::kVllm, nullptr);
  EXPECT_NEAR(term_ms(slow.step, "arithmetic beyond memory traffic"), 200 - 125, 0.1);
}

TEST(SpeedTest, AnchorsOfQwenQ4OnOneSpark) {
  const Speed speed = estimate_speed(qwen_q4_on_a_spark(), EngineId::kLlamaCpp, nullptr);
  EXPECT_NEAR(speed.decode_bound_tok_s, 71, 71 * 0.05);
  EXPECT_NEAR(speed.decode_tok_s, 27.8, 27.8 * 0.20);
  EXPECT_NEAR(term_ms(speed.step, "engine's fixed time"), 22, 1e-9);
}

TEST(SpeedTest, PrefillIsWhatTheEngineReaches) {
  Request request = qwen_q4_on_a_spark();
  EXPECT_NEAR(estimate_speed(request, EngineId::kLlamaCpp, nullptr).prefill_tok_s, 798, 798 * 0.1);
  request = request_of("Qwen3.8-Flash-Next", "NVFP4", "dgx-spark");
  const Speed bare = estimate_speed(request, EngineId::kVllm, nullptr);
  const TableCost rows = table_cost(request, EngineId::kVllm, Placement::kNvme, std::uint64_t{4} << 30, bare);
  EXPECT_NEAR(estimate_speed(request, EngineId::kVllm, &rows).prefill_tok_s, 2231, 2231 * 0.1);
}

// A report of machines whose ranks meet over a network says little of cards.
TEST(SpeedTest, FixedTimesComeFromTheSameKindOfMachine) {
  const Request request = request_of("DeepSeek-V4.1-Flash", "", "h200", 8);
  const StepOverhead overhead = step_overhead(EngineId::kVllm, request.model, request.machine.device, true);
  EXPECT_LT(overhead.ms, 10);
  EXPECT_THAT(overhead.source, HasSubstr("nearest report"));
}

struct Published {
  const char *model, *precision, *device;
  std::uint64_t prompt, output;
  double tok_s, share;
};

// llama-bench and the like; see docs/sizing.md for their sources. The first of a device and kind was an input.
TEST(SpeedTest, PlainModelsAreAsFastAsPublished) {
  for (const Published& each : {Published{"Qwen3-30B-A3B", "Q8", "dgx-spark", 1, 32, 60.9, 0.05},
                                {"Qwen3-30B-A3B", "Q8", "dgx-spark", 4096, 32, 53.5, 0.25},
                                {"Qwen3-30B-A3B", "Q4", "rtx-5090", 1, 128, 352, 0.05},
                                {"Qwen3-30B-A3B", "Q4", "rtx-pro-6000", 1, 128, 251, 0.25},
                                {"Llama-3.1-8B", "Q4", "rtx-4090", 1, 512, 130.6, 0.25},
                                {"Llama-3.1-8B", "Q4", "rtx-5090", 1, 512, 221.7, 0.25},
                                {"Llama-3.1-8B", "Q4", "m3-ultra", 1, 512, 78.8, 0.25}}) {
    Request request = request_of(each.model, each.precision, each.device);
    request.prompt = each.prompt;
    request.output = each.output;
    EXPECT_NEAR(estimate_speed(request, EngineId::kLlamaCpp, nullptr).decode_tok_s, each.tok_s, each.tok_s * each.share)
        << each.model << " on " << each.device;
  }
}

TEST(SpeedTest, PromptsOfPlainModelsAreAsFastAsPublished) {
  Request request = request_of("Llama-3.1-8B", "Q4", "rtx-4090");
  request.prompt = request.chunk = 1024;
  EXPECT_NEAR(estimate_speed(request, EngineId::kLlamaCpp, nullptr).prefill_tok_s, 6899, 6899 * 0.1);
  request = request_of("Llama-3.1-8B", "Q4", "rtx-3090");
  request.prompt = request.chunk = 1024;
  EXPECT_NEAR(estimate_speed(request, EngineId::kLlamaCpp, nullptr).prefill_tok_s, 3865, 3865 * 0.25);
  request = request_of("Qwen3-30B-A3B", "Q8", "dgx-spark");
  EXPECT_NEAR(estimate_speed(request, EngineId::kLlamaCpp, nullptr).prefill_tok_s, 3176, 3176 * 0.25);
}

// Every pair of those cards met over both processors (kubesimplify/website#267).
TEST(SpeedTest, FourCardsWithoutNvlinkAreSlowerThanTwoWithOneStream) {
  Request two = request_of("Qwen3.8-Flash-Next", "FP8", "rtx-pro-6000", 2);
  Request four = request_of("Qwen3.8-Flash-Next", "FP8", "rtx-pro-6000", 4);
  two.nodes = four.nodes = 1;
  const double of_two = estimate_speed(two, EngineId::kVllm, nullptr).decode_tok_s;
  const double of_four = estimate_speed(four, EngineId::kVllm, nullptr).decode_tok_s;
  EXPECT_NEAR(of_two, 81.45, 81.45 * 0.05);
  EXPECT_NEAR(of_four, 64.61, 64.61 * 0.05);
  EXPECT_EQ(all_reduce_latency_us(four), 3 * all_reduce_latency_us(two));
  Request switched = request_of("Qwen3.8-Flash-Next", "FP8", "h100", 4);
  switched.nodes = 1;
  EXPECT_EQ(all_reduce_latency_us(switched), switched.machine.device.peer_link.latency_us);
}

TEST(SpeedTest, Nvfp4IsComputedInBf16WhereItIsEmulated) {
  Request request = request_of("Qwen3.8-Flash-Next", "NVFP4", "mi355x");
  EXPECT_TRUE(emulates_fp4(request));
  const double emulated_ms = arithmetic_ms(request, EngineId::kVllm, {1, 2048, 0, 1});
  request.machine.device.has_nvfp4 = true;
  EXPECT_FALSE(emulates_fp4(request));
  EXPECT_GT(emulated_ms, 1.3 * arithmetic_ms(request, EngineId::kVllm, {1, 2048, 0, 1}));
  EXPECT_TRUE(emulates_fp4(request_of("Qwen3.8-Flash-Next", "NVFP4", "h100")));
  EXPECT_FALSE(emulates_fp4(request_of("Qwen3.8-Flash-Next", "FP8", "h100")));
  EXPECT_FALSE(emulates_fp4(request_of("Qwen3.8-Flash-Next", "NVFP4", "b200")));
  EXPECT_FALSE(emulates_fp4(request_of("DeepSeek-V4.1-Flash", "FP4", "mi355x"))) << "MXFP4, as its cores have it";
}

TEST(SpeedTest, APriceSaysWhatItLeavesOut) {
  Request request = small();
  const auto said = [&] {
    const auto texts = estimate_speed(request, EngineId::kVllm, nullptr).assumptions;
    return std::accumulate(texts.begin(), texts.end(), std::string());
  };
  EXPECT_THAT(said(), testing::Not(HasSubstr("price")));
  request.price_per_hour = 2;
  EXPECT_THAT(said(), HasSubstr("price is that of decoded tokens alone, with 1 sequences"));
}

// What plans count apart must not be in the fixed time too.
TEST(SpeedTest, AllReducesBetweenNodesAreCountedOnce) {
  Request request = request_of("DeepSeek-V4.1-Flash", "", "dgx-spark", 4);
  request.speculate = 5;
  request.prompt = request.output = 128;
  request.kv = KvType::kFp8;
  EXPECT_NEAR(step_ms(estimate_speed(request, EngineId::kVllm, nullptr)), 69, 69 * 0.03);
}

// Steps of the one-Spark recipe with the whole draft head, of which only the one of one stream is an input.
TEST(SpeedTest, StepsOfManyStreamsWithDraftsAreAsPublished) {
  Request request = request_of("Qwen3.8-Flash-Next", "NVFP4-MXFP8", "dgx-spark");
  request.kv = KvType::kFp8;
  request.speculate = 3;
  for (const auto& [streams, ms] : {std::pair{1u, 76.9}, {2u, 93.0}, {4u, 117.3}, {8u, 155.7}}) {
    request.concurrency = streams;
    EXPECT_NEAR(step_ms(estimate_speed(request, EngineId::kVllm, nullptr)), ms, ms * 0.08) << streams;
  }
}

TEST(SpeedTest, EveryTermSaysHowItWasMadeAndEveryAssumptionIsText) {
  Request request = request_of("DeepSeek-V4.1-Flash", "", "dgx-spark", 4);
  request.speculate = 5;
  const Speed speed = estimate_speed(request, EngineId::kVllm, nullptr);
  for (const auto& terms : {speed.step, speed.chunk}) {
    for (const TimeTerm& term : terms) {
      EXPECT_FALSE(term.formula.empty()) << term.name;
      EXPECT_FALSE(term.source.empty()) << term.name;
    }
  }
  const std::string all = std::accumulate(speed.assumptions.begin(), speed.assumptions.end(), std::string());
  for (const char* word : {"all-reduces", "DSpark", "experts", "first token", "estimate"})
    EXPECT_THAT(all, HasSubstr(word));
}

TEST(SpeedTest, APromptTakesItsChunksAndItsLastGivesTheFirstToken) {
  Request request = small();
  request.prompt = 4096;
  request.chunk = 2048;
  const Speed speed = estimate_speed(request, EngineId::kVllm, nullptr);
  EXPECT_NEAR(speed.prefill_tok_s, 2048e3 / total_ms(speed.chunk), 1e-6);
  request.prompt = 2048;
  const Speed half = estimate_speed(request, EngineId::kVllm, nullptr);
  EXPECT_NEAR(speed.ttft_ms - half.ttft_ms, total_ms(half.chunk), 1e-6);
}

TEST(SpeedTest, OfACausalEncoderDecoderAPromptsEndGoesThroughAllLayers) {
  Request request = small();
  request.model.prefill_share = 0.5;
  request.prompt = 100;
  const double half = estimate_speed(request, EngineId::kVllm, nullptr).ttft_ms;
  request.model.prefill_share = 1;
  const double whole = estimate_speed(request, EngineId::kVllm, nullptr).ttft_ms;
  EXPECT_LT(half, whole);
  request.model.prefill_share = 0.5;
  request.model.attention = {
      {.kind = Attention::Kind::kWindow, .name = "window", .layers = 10, .readers = 10, .window = 128}};
  EXPECT_NEAR(estimate_speed(request, EngineId::kVllm, nullptr).ttft_ms, whole, whole * 0.01);
}

TEST(SpeedTest, RanksShareTheWeightsAndPayForTheirExchange) {
  const Request one = request_of("DeepSeek-V4.1-Flash", "", "b300", 1);
  Request four = request_of("DeepSeek-V4.1-Flash", "", "b300", 4);
  four.nodes = 1;
  const Speed speed_one = estimate_speed(one, EngineId::kVllm, nullptr);
  const Speed speed_four = estimate_speed(four, EngineId::kVllm, nullptr);
  EXPECT_NEAR(term_ms(speed_four.step, "dense"), term_ms(speed_one.step, "dense") / 4, 1e-9);
  EXPECT_EQ(term_ms(speed_one.step, "all-reduces"), 0);
  EXPECT_GT(term_ms(speed_four.step, "all-reduces"), 0);
  EXPECT_THAT(all_reduce_link(four).name, HasSubstr("NVLink"));
  four.nodes = 4;
  EXPECT_EQ(all_reduce_link(four).name, four.machine.device.node_link.name);
}

TEST(SpeedTest, SparseAttentionReadsItsBestBlocksAndAllOfItsIndexKeys) {
  Request request = small();
  request.model.attention = {{.kind = Attention::Kind::kSparse,
                              .name = "sparse",
                              .layers = 2,
                              .readers = 2,
                              .values = 1000,
                              .index_values = 100,
                              .attended_most = 2048}};
  request.kv = KvType::kBf16;
  const double short_bytes = kv_traffic(request, {1, 1, 1000, 1}).bytes;
  EXPECT_NEAR(short_bytes, 2.0 * (1000 + 1) * 2200, 1);
  const double long_bytes = kv_traffic(request, {1, 1, 100'000, 1}).bytes;
  EXPECT_NEAR(long_bytes, 2.0 * (2048 * 2000 + 100'000 * 200 + 2200), 1);
}

TEST(SpeedTest, AStateIsReadOnceAndWrittenWithACopyForEachDraft) {
  Request request = small();
  request.model.states = {{.name = "recurrent", .layers = 2, .values = 1000, .copied_per_draft = true}};
  const Pass pass = {3, 4, 0, 12};
  EXPECT_EQ(state_traffic(request, pass, 0).bytes, 3 * 2 * 4 * 2000);
  EXPECT_EQ(state_traffic(request, pass, 3).bytes, 3 * 2 * 4 * 5000);
  request.state = StateType::kBf16;
  EXPECT_EQ(state_traffic(request, pass, 3).bytes, 3 * 2 * 2 * 5000);
}

Request drawn_request() {
  Request request = *rc::gen::element(request_of("Qwen3.8-Flash-Next", "NVFP4", "dgx-spark"),
                                      request_of("Qwen3.8-Flash-Next", "Q4", "rtx-pro-6000"),
                                      request_of("DeepSeek-V4.1-Flash", "", "dgx-spark", 8));
  request.concurrency = *rc::gen::inRange(1u, 65u);
  request.speculate = *rc::gen::inRange(0u, 6u);
  request.prompt = *rc::gen::inRange<std::uint64_t>(1, 20'000);
  request.output = *rc::gen::inRange<std::uint64_t>(1, 5'000);
  request.chunk = *rc::gen::inRange(64u, 8192u);
  return request;
}

RC_GTEST_PROP(SpeedProperty, MoreBandwidthIsNeverSlower, ()) {
  const Request request = drawn_request();
  Request faster = request;
  faster.machine.device.bandwidth_bytes_per_s *= *rc::gen::element(1.1, 2.0, 10.0);
  const Speed before = estimate_speed(request, EngineId::kSglang, nullptr);
  const Speed after = estimate_speed(faster, EngineId::kSglang, nullptr);
  constexpr double kRounding = 1 - 1e-12;
  RC_ASSERT(after.decode_tok_s >= before.decode_tok_s * kRounding);
  RC_ASSERT(after.prefill_tok_s >= before.prefill_tok_s * kRounding);
  RC_ASSERT(after.ttft_ms * kRounding <= before.ttft_ms);
  RC_ASSERT(after.request_tok_s >= before.request_tok_s * kRounding);
}

RC_GTEST_PROP(SpeedProperty, MoreStreamsNeverGiveFewerTokensInTotal, ()) {
  const Request request = drawn_request();
  Request more = request;
  more.concurrency += *rc::gen::inRange(1u, 20u);
  const Speed before = estimate_speed(request, EngineId::kVllm, nullptr);
  const Speed after = estimate_speed(more, EngineId::kVllm, nullptr);
  RC_ASSERT(after.decode_total_tok_s >= before.decode_total_tok_s);
  RC_ASSERT(after.decode_tok_s <= before.decode_tok_s);
}

RC_GTEST_PROP(SpeedProperty, DraftsThatAreNeverAcceptedAreNeverFaster, ()) {
  Request request = drawn_request();
  request.speculate = 0;
  const double without_ms = step_ms(estimate_speed(request, EngineId::kSglang, nullptr));
  const double fixed_ms = term_ms(estimate_speed(request, EngineId::kSglang, nullptr).step, "engine's fixed time");
  request.speculate = *rc::gen::inRange(1u, 6u);
  const Speed with = estimate_speed(request, EngineId::kSglang, nullptr);
  // With an acceptance of 0 a step gives one token, so it must take at least as long; fixed times are from reports.
  RC_ASSERT(step_ms(with) - term_ms(with.step, "engine's fixed time") >= without_ms - fixed_ms);
  RC_ASSERT(tokens_per_step(request.speculate, 0) == 1);
}

RC_GTEST_PROP(SpeedProperty, TheBoundIsAboveWhatOneStreamReachesWithoutDrafts, ()) {
  Request request = drawn_request();
  request.speculate = 0;
  const Speed speed = estimate_speed(request, EngineId::kVllm, nullptr);
  RC_ASSERT(speed.decode_bound_tok_s > speed.decode_tok_s);
  RC_ASSERT(std::isfinite(speed.ttft_ms));
  RC_ASSERT(speed.request_tok_s > 0);
}

}  // namespace
}  // namespace rowtide::sizing
