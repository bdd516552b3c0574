#include "cli/generate/generation.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "base/sha256.h"
#include "cli/progress.h"

namespace rowtide::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "logits are hashed as little-endian words");

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// llama.cpp's samplers, for one sequence: the likeliest token, or a draw.
class Sampler {
 public:
  explicit Sampler(const GenerateOptions& options)
      : chain_(llama_sampler_chain_init(llama_sampler_chain_default_params())) {
    if (options.temperature > 0) {
      llama_sampler_chain_add(chain_.get(), llama_sampler_init_temp(options.temperature));
      llama_sampler_chain_add(chain_.get(), llama_sampler_init_dist(options.seed));
    } else {
      llama_sampler_chain_add(chain_.get(), llama_sampler_init_greedy());
    }
  }

  llama_token choose(const LlamaContext& context) { return llama_sampler_sample(chain_.get(), context.get(), -1); }

 private:
  struct Free {
    void operator()(llama_sampler* sampler) const { llama_sampler_free(sampler); }
  };
  std::unique_ptr<llama_sampler, Free> chain_;
};

void read_prompt(LlamaContext& context, std::span<const llama_token> prompt, std::size_t ubatch,
                 const PromptSink& sink) {
  Progress progress("prompt");
  std::size_t read = 0;
  sink(read);
  while (read < prompt.size()) {
    const std::size_t count = std::min(ubatch, prompt.size() - read);
    context.append(prompt.subspan(read, count));
    read += count;
    sink(read);
    progress.update(static_cast<double>(read) / static_cast<double>(prompt.size()));
  }
}

}  // namespace

std::vector<llama_token> prompt_tokens(const LlamaModel& model, const GenerateOptions& options) {
  std::vector<llama_token> prompt = model.tokenize(options.prompt);
  if (prompt.empty()) throw usage_failure("{}: the prompt gives no token", options.model);
  if (prompt.size() + options.tokens > model.trained_context()) {
    throw usage_failure(
        "{}: {} tokens of prompt and {} to generate are more than the {} that the model was trained for; "
        "shorten the prompt or give a smaller -n",
        options.model, prompt.size(), options.tokens, model.trained_context());
  }
  return prompt;
}

Generation generate_text(const LlamaModel& model, LlamaContext& context, std::span<const llama_token> prompt,
                         const GenerateOptions& options, const PromptSink& prompt_sink, const TextSink& sink) {
  Generation generation;
  generation.prompt_tokens = prompt.size();
  auto start = Clock::now();
  read_prompt(context, prompt, options.ubatch, prompt_sink);
  generation.prompt_seconds = seconds_since(start);

  Sampler sampler(options);
  Sha256 digest;
  start = Clock::now();
  while (true) {
    digest.update(std::as_bytes(context.logits()));
    llama_token token = sampler.choose(context);
    generation.ended = model.ends_text(token);
    if (generation.ended) break;
    std::string piece = model.piece(token);
    sink(piece);
    generation.tokens.push_back(token);
    generation.text += piece;
    if (generation.tokens.size() == options.tokens) break;
    context.append({&token, 1});
  }
  generation.generate_seconds = seconds_since(start);
  generation.logits_sha256 = digest.finish_hex();
  return generation;
}

}  // namespace rowtide::cli
