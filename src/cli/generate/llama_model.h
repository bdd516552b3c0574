// libllama for one sequence on the CPU: a model, and a context that holds what has been read so far.
#pragma once

#include <llama.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/generate/gather_timer.h"
#include "cli/generate/generate.h"
#include "ggml/settings.h"

namespace rowtide::cli {

/// The plug-in's settings: the environment's, unless an option says otherwise. Nothing where it is not to serve. Throws
/// a usage Failure.
std::optional<ggml::Settings> plugin_settings(const GenerateOptions& options);

/// Sets llama.cpp up for this process: its log, and the CPU back end that lies beside its libraries. With settings for
/// it the plug-in is registered too, before anything of a model is loaded. Throws a Failure. Call it once.
void start_llama(const std::optional<ggml::Settings>& plugin);

class LlamaModel {
 public:
  enum class Part { kAll, kVocabulary };  // kVocabulary: all that tokenize() and piece() need

  /// Maps the file and loads everything but the table. Throws a Failure with llama.cpp's own words.
  explicit LlamaModel(const std::string& path, Part part = Part::kAll);

  std::vector<llama_token> tokenize(const std::string& text) const;
  /// The bytes of a token, which may be a part of a character; "" for control tokens.
  std::string piece(llama_token token) const;
  bool ends_text(llama_token token) const { return llama_vocab_is_eog(vocab_, token); }
  std::uint32_t trained_context() const { return static_cast<std::uint32_t>(llama_model_n_ctx_train(model_.get())); }
  std::size_t vocabulary() const { return static_cast<std::size_t>(llama_vocab_n_tokens(vocab_)); }
  llama_model* get() const { return model_.get(); }

 private:
  struct Free {
    void operator()(llama_model* model) const { llama_model_free(model); }
  };
  std::unique_ptr<llama_model, Free> model_;
  const llama_vocab* vocab_ = nullptr;
};

class LlamaContext {
 public:
  struct Size {
    std::uint32_t tokens;  // prompt and generated ones
    std::uint32_t ubatch;
    std::uint32_t threads;
    GatherTimer* timer = nullptr;  // to time the gathers; outlives the context
  };
  LlamaContext(const LlamaModel& model, const Size& size);

  /// Appends at most `ubatch` tokens to the sequence. Throws a Failure when the computation failed, with the store's
  /// sentence where it was a read.
  void append(std::span<const llama_token> tokens);
  /// Forgets the sequence.
  void clear();
  /// Of the last token appended; valid until the next append. Throws a Failure if one is not a number.
  std::span<const float> logits() const;
  llama_context* get() const { return context_.get(); }

 private:
  struct Free {
    void operator()(llama_context* context) const { llama_free(context); }
  };
  std::unique_ptr<llama_context, Free> context_;
  GatherTimer* timer_;
  std::size_t vocabulary_;
  std::size_t position_ = 0;
};

}  // namespace rowtide::cli
