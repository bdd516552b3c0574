// How fast a plan decodes and how long its prompts take: sums over traffic, arithmetic and sourced overheads.
#include "sizing/speed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sizing/acceptance.h"
#include "sizing/traffic.h"

namespace rowtide::sizing {
namespace {

// What is left of published times to a first token after prompts of 128 tokens, less the pass itself: 99 and 48 ms with
// SGLang on an RTX PRO 6000 and a GB10, 29, 69 and 53 ms with vLLM on four and eight GB10 (openzeka/white-papers).
constexpr double kServingMs = 60;
constexpr const char* kServingSource =
    "mean of what five published times to a first token leave beside the pass (openzeka/white-papers): tokenizer, "
    "HTTP, "
    "scheduling";

double total_ms(const std::vector<TimeTerm>& terms) {
  return std::accumulate(terms.begin(), terms.end(), 0.0,
                         [](double sum, const TimeTerm& term) { return sum + term.ms; });
}

/// One replica's view of a request, on one engine.
class Estimator {
 public:
  Estimator(const Request& request, EngineId engine, const TableCost* table)
      : request_(request),
        device_(request.machine.device),
        engine_(engine),
        table_(table),
        drafter_(drafter_of(request.model)),
        overhead_(step_overhead(engine, request.model, device_, request.speculate > 0)),
        arithmetic_(arithmetic_share(engine, request.model, device_)) {}

  Speed speed() const;

 private:
  double streams() const { return std::ceil(static_cast<double>(request_.concurrency) / std::max(request_.dp, 1u)); }
  /// Tokens behind a position in the middle of the output.
  double length() const { return static_cast<double>(request_.prompt) + static_cast<double>(request_.output) / 2; }

  TimeTerm memory_term(const Traffic& traffic, double share = 1) const;
  void add_shared(std::vector<TimeTerm>& terms, double arithmetic_ms, double layers, double positions) const;
  std::vector<TimeTerm> step_terms() const;
  std::vector<TimeTerm> prompt_terms(double tokens, double share) const;
  std::vector<TimeTerm> chunk_terms(double tokens) const;
  double chunk_ms(double tokens) const { return total_ms(chunk_terms(tokens)); }
  double tail_ms(double prompts) const;
  double prompts_ms(double prompts) const;
  double first_token_ms() const;
  void set_bound(Speed& speed) const;
  std::vector<std::string> assumptions() const;

  const Request& request_;
  const Device& device_;
  EngineId engine_;
  const TableCost* table_;
  Drafter drafter_;
  StepOverhead overhead_;
  ArithmeticShare arithmetic_;
};

TimeTerm Estimator::memory_term(const Traffic& traffic, double share) const {
  const double bytes_per_ms = device_.bandwidth_bytes_per_s * device_.bandwidth_share / 1e3;
  const std::string part = share < 1 ? fmt::format(" x {:g} of the layers", share) : "";
  return {traffic.name, traffic.bytes * share / bytes_per_ms,
          fmt::format("{}{} = {:.3g} GB, at {:.0f} GB/s x {:g}", traffic.formula, part, traffic.bytes * share / 1e9,
                      device_.bandwidth_bytes_per_s / 1e9, device_.bandwidth_share),
          device_.bandwidth_share_source};
}

/// What a step and a chunk have alike: arithmetic where it takes longer than the traffic so far, and exchange.
void Estimator::add_shared(std::vector<TimeTerm>& terms, double arithmetic_ms, double layers, double positions) const {
  const double memory_ms = total_ms(terms);
  if (arithmetic_ms > memory_ms) {
    terms.push_back({"arithmetic beyond memory traffic", arithmetic_ms - memory_ms,
                     fmt::format("{:.3g} ms at {:g} of the peak, less {:.3g} ms of traffic", arithmetic_ms,
                                 arithmetic_.share, memory_ms),
                     arithmetic_.source});
  }
  if (request_.tp > 1) {
    const Link& link = all_reduce_link(request_);
    terms.push_back({"all-reduces", all_reduce_ms(request_, layers, positions),
                     fmt::format("2 x {:g} layers, {:g} us each and {:g} positions over {}", layers,
                                 all_reduce_latency_us(request_), positions, link.name),
                     link.source});
  }
}

std::vector<TimeTerm> Estimator::step_terms() const {
  const std::uint32_t drafts = request_.speculate;
  const std::uint32_t passes = draft_passes(drafter_, drafts);
  Pass pass = {streams(), 1.0 + drafts, length()};
  pass.chosen_at = pass.positions();

  std::vector<TimeTerm> terms;
  for (const Traffic& traffic : weight_traffic(request_, pass)) terms.push_back(memory_term(traffic));
  terms.push_back(memory_term(kv_traffic(request_, pass)));
  if (!request_.model.states.empty()) terms.push_back(memory_term(state_traffic(request_, pass, drafts)));
  if (passes > 0) {
    const auto drafting = draft_traffic(request_, pass, passes);
    std::string formula;
    for (const Traffic& each : drafting)
      formula += fmt::format("{}{} {}", formula.empty() ? "" : ", ", each.name, each.formula);
    terms.push_back(memory_term({"drafting", bytes_of(drafting), formula}));
  }
  const double layers = request_.model.layers + static_cast<double>(passes) * request_.model.draft_layers;
  add_shared(terms, arithmetic_ms(request_, engine_, pass), layers, pass.positions());
  terms.push_back({"engine's fixed time", overhead_.ms, fmt::format("{:g} ms a step", overhead_.ms), overhead_.source});
  if (table_ != nullptr) {
    terms.push_back({"table rows that nothing hides", table_->us_per_step_added / 1e3,
                     fmt::format("{:.0f} us of {:.0f} us", table_->us_per_step_added, table_->us_per_step), ""});
  }
  return terms;
}

/// A pass of a prompt's `tokens` through `share` of the layers.
std::vector<TimeTerm> Estimator::prompt_terms(double tokens, double share) const {
  const Pass pass = {1, tokens, static_cast<double>(request_.prompt) / 2, 1};
  std::vector<TimeTerm> terms;
  for (const Traffic& traffic : weight_traffic(request_, pass)) terms.push_back(memory_term(traffic, share));
  terms.push_back(memory_term(kv_traffic(request_, pass), share));
  add_shared(terms, arithmetic_ms(request_, engine_, pass) * share, request_.model.layers * share, tokens);
  return terms;
}

std::vector<TimeTerm> Estimator::chunk_terms(double tokens) const {
  std::vector<TimeTerm> terms = prompt_terms(tokens, request_.model.prefill_share);
  terms.push_back({"engine's fixed time", overhead_.ms, fmt::format("{:g} ms a step", overhead_.ms), overhead_.source});
  if (table_ != nullptr) {
    const double part = tokens / request_.chunk;
    terms.push_back(
        {"table rows that nothing hides", table_->ms_per_chunk_added * part,
         fmt::format("{:.3g} ms of {:.3g} ms", table_->ms_per_chunk_added * part, table_->ms_per_chunk * part), ""});
  }
  return terms;
}

/// Layers that a prompt's tokens do not need, its end does: as many tokens as their windows hold.
double Estimator::tail_ms(double prompts) const {
  const double share = 1 - request_.model.prefill_share;
  if (share <= 0) return 0;
  double window = 1;
  for (const Attention& group : request_.model.attention) window = std::max(window, static_cast<double>(group.window));
  const double prompt = static_cast<double>(std::max<std::uint64_t>(request_.prompt, 1));
  const double passes = std::min(prompts, std::ceil(prompts * prompt / request_.chunk));
  return passes * total_ms(prompt_terms(prompts * std::min(window, prompt) / passes, share));
}

/// So many prompts, chunk after chunk.
double Estimator::prompts_ms(double prompts) const {
  const double tokens = prompts * static_cast<double>(std::max<std::uint64_t>(request_.prompt, 1));
  const double full = std::floor(tokens / request_.chunk);
  const double rest = tokens - full * request_.chunk;
  return (full > 0 ? full * chunk_ms(request_.chunk) : 0) + (rest > 0 ? chunk_ms(rest) : 0) + tail_ms(prompts);
}

/// The mean of all streams, which start together: the first prompt goes alone, since it is there first; the others
/// share the chunks after it, and each has its token when the chunk with its end is done.
double Estimator::first_token_ms() const {
  const double first = prompts_ms(1);
  const double others = streams() - 1;
  if (others <= 0) return kServingMs + first;
  const double prompt = static_cast<double>(std::max<std::uint64_t>(request_.prompt, 1));
  const double chunks = std::ceil(others * prompt / request_.chunk);
  const double chunk_ms_mean = chunk_ms(request_.chunk) + tail_ms(others) / chunks;
  const double last = prompts_ms(others);
  double sum = first;
  for (double i = 1; i <= others; ++i) {
    sum += first + std::min(last, std::ceil(i * prompt / request_.chunk) * chunk_ms_mean);
  }
  return kServingMs + sum / streams();
}

void Estimator::set_bound(Speed& speed) const {
  speed.bytes_per_token = bytes_of(weight_traffic(request_, {1, 1, length(), 1}));
  speed.decode_bound_tok_s = device_.bandwidth_bytes_per_s / speed.bytes_per_token;
}

std::vector<std::string> Estimator::assumptions() const {
  std::vector<std::string> texts = {
      fmt::format("estimate: weights, keys and values stream at {:g} of {:.0f} GB/s ({})", device_.bandwidth_share,
                  device_.bandwidth_bytes_per_s / 1e9, device_.bandwidth_share_source),
      fmt::format("a step takes {:g} ms beside that ({})", overhead_.ms, overhead_.source),
      fmt::format("prefill reaches {:g} of the arithmetic peak ({})", arithmetic_.share, arithmetic_.source),
      fmt::format(
          "{:g} sequences of a replica run at once, each in the middle of {} tokens of output behind {} of prompt",
          streams(), request_.output, request_.prompt),
      fmt::format(
          "time to the first token: all sequences start together, nothing of a prompt is cached, the last chunk of "
          "a prompt gives its first token, and {:g} ms go elsewhere ({})",
          kServingMs, kServingSource),
      "tokens/s of a request: while it decodes, each other sequence ends and begins anew, and it waits for those "
      "prompts",
      "the bandwidth bound counts the weights that one token needs, at the full bandwidth, and nothing else",
  };
  if (request_.model.experts > 0) {
    texts.push_back(
        "p positions are routed to as many different experts as p^0.85 that chose by themselves, as measured "
        "with 4 to 32 (MiaAI-Lab/Qwen3.8-Flash-Next-Single-DGX-Spark:CHANGELOG.md)");
  }
  if (request_.speculate > 0) {
    texts.push_back(fmt::format("{} drafts a step by {}, of which {:g} are accepted in a row each ({})",
                                request_.speculate, drafter_.name, drafter_.acceptance, drafter_.source));
  }
  if (request_.speculate > 0 && draft_passes(drafter_, 1) > 0) {
    texts.push_back(request_.draft_vocabulary == request_.model.vocabulary
                        ? "the draft module chooses from the whole vocabulary; --draft-vocabulary says otherwise"
                        : fmt::format("the draft module chooses from {} tokens, which is taken to cost no acceptance",
                                      request_.draft_vocabulary));
  }
  if (request_.tp > 1) {
    texts.push_back(fmt::format("weights are split evenly over {} ranks; two all-reduces a layer over {} ({})",
                                request_.tp, all_reduce_link(request_).name, all_reduce_link(request_).source));
  }
  if (emulates_fp4(request_)) {
    texts.push_back(
        fmt::format("{} does not compute in {}: its values are widened and computed in BF16 "
                    "(vllm-project/vllm#35733, #35737)",
                    device_.name, request_.model.precision));
  }
  if (request_.price_per_hour) {
    texts.push_back(
        fmt::format("the price is that of decoded tokens alone, with {} sequences always busy: time for prompts, idle "
                    "time and what is not decoded at that concurrency are not in it",
                    request_.concurrency));
  }
  if (request_.model.prefill_share < 1) {
    texts.push_back(
        fmt::format("a prompt's tokens need {:g} of the layers, its end as many tokens as the window holds all of them",
                    request_.model.prefill_share));
  }
  return texts;
}

Speed Estimator::speed() const {
  Speed speed;
  speed.tokens_per_step = tokens_per_step(request_.speculate, drafter_.acceptance);
  speed.step = step_terms();
  speed.decode_tok_s = speed.tokens_per_step * 1e3 / total_ms(speed.step);
  speed.decode_total_tok_s = speed.decode_tok_s * request_.concurrency;
  set_bound(speed);
  speed.chunk = chunk_terms(request_.chunk);
  speed.prefill_tok_s = request_.chunk * 1e3 / total_ms(speed.chunk);
  speed.ttft_ms = first_token_ms();
  // While a stream decodes, each of the others begins a request, whose prompt it waits for.
  const double output = static_cast<double>(std::max<std::uint64_t>(request_.output, 1));
  const double waited_ms = output > 1 ? (streams() - 1) * prompts_ms(1) : 0;
  speed.request_tok_s = output * 1e3 / (speed.ttft_ms + waited_ms + (output - 1) * 1e3 / speed.decode_tok_s);
  speed.assumptions = assumptions();
  return speed;
}

}  // namespace

Speed estimate_speed(const Request& request, EngineId engine, const TableCost* table) {
  return Estimator(request, engine, table).speed();
}

}  // namespace rowtide::sizing
