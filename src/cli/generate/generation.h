// Reading a prompt and continuing it.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/generate/generate.h"
#include "cli/generate/llama_model.h"

namespace rowtide::cli {

struct Generation {
  std::string text;  // of the generated tokens; the last character may be incomplete
  std::vector<llama_token> tokens;
  bool ended = false;         // the model ended the text itself; that token is not among `tokens`
  std::string logits_sha256;  // over the logits of every position that a token was chosen at
  std::size_t prompt_tokens = 0;
  double prompt_seconds = 0;
  double generate_seconds = 0;  // the choices, and computing all tokens but the last
};

/// Called with the bytes of each token as it is chosen.
using TextSink = std::function<void(std::string_view piece)>;

/// The prompt's tokens. Throws a usage Failure if there are none, or if with what is to be generated they do not fit
/// the context that the model was trained for.
std::vector<llama_token> prompt_tokens(const LlamaModel& model, const GenerateOptions& options);

/// Called with how many of the prompt's tokens have been computed: 0 at first, then after each ubatch.
using PromptSink = std::function<void(std::size_t read)>;

/// Reads `prompt` into an empty context and generates. Throws a Failure.
Generation generate_text(const LlamaModel& model, LlamaContext& context, std::span<const llama_token> prompt,
                         const GenerateOptions& options, const PromptSink& prompt_sink, const TextSink& sink);

}  // namespace rowtide::cli
