#include "cli/generate/llama_model.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <ggml-backend.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "cli/failure.h"
#include "cli/log_sink.h"
#include "cli/progress.h"
#include "ggml/plugin.h"

namespace rowtide::cli {
namespace {

/// What llama.cpp said at level error, for the sentence that reports a failure.
std::string& llama_errors() {
  static std::string words;
  return words;
}

void log_llama(ggml_log_level level, const char* text, void* print_all) {
  constexpr std::size_t kMost = 4096;
  if (level == GGML_LOG_LEVEL_ERROR && llama_errors().size() < kMost) llama_errors() += text;
  if (print_all != nullptr) std::fputs(text, stderr);
}

Failure llama_failure(ExitCode exit_code, std::string_view what) {
  std::string words = llama_errors();
  while (!words.empty() && words.back() == '\n') words.pop_back();
  for (std::size_t end = 0; (end = words.find('\n', end)) != std::string::npos;) words.replace(end, 1, "; ");
  return {exit_code, "llama", fmt::format("{}{}{}", what, words.empty() ? "" : ": ", words)};
}

/// The folder of the ggml library in use; its back ends lie beside it.
std::string library_folder() {
  Dl_info info{};
  void* function = dlsym(RTLD_DEFAULT, "ggml_backend_register");
  if (function == nullptr || dladdr(function, &info) == 0) return ".";
  return std::filesystem::path(info.dli_fname).parent_path().string();
}

}  // namespace

std::optional<ggml::Settings> plugin_settings(const GenerateOptions& options) {
  if (!options.with_store) return std::nullopt;
  auto settings = value_of(ggml::read_settings());
  if (options.memory_bytes != 0) settings.store.memory_bytes = options.memory_bytes;
  if (options.mode) settings.store.mode = *options.mode;
  check(ggml::check_store_options(settings.store));
  return settings;
}

void start_llama(const std::optional<ggml::Settings>& plugin) {
  llama_log_set(log_llama, debug_log_wanted() ? stderr : nullptr);
  // The plug-in is part of this program: one loaded from a file would serve beside it, or in spite of --no-store.
  unsetenv("GGML_BACKEND_PATH");
  if (plugin) ggml_backend_register(ggml::registration(*plugin));
  std::string folder = library_folder();
  ggml_backend_load_all_from_path(folder.c_str());
  llama_backend_init();
  if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU) == nullptr) {
    throw llama_failure(kExitFailed, fmt::format("{}: llama.cpp finds no CPU back end (libggml-cpu-*.so) there; build, "
                                                 "install or unpack Rowtide again",
                                                 folder));
  }
}

LlamaModel::LlamaModel(const std::string& path, Part part) {
  Progress progress("loading");
  ggml_backend_dev_t no_devices[] = {nullptr};
  llama_model_params params = llama_model_default_params();
  params.devices = no_devices;  // the CPU alone
  params.n_gpu_layers = 0;
  params.vocab_only = part == Part::kVocabulary;
  params.load_mode = LLAMA_LOAD_MODE_MMAP;
  params.lazy_mode = LLAMA_LAZY_MODE_ON;  // the table stays in the file, however small it is
  params.progress_callback = [](float share, void* bar) {
    static_cast<Progress*>(bar)->update(static_cast<double>(share));
    return true;
  };
  params.progress_callback_user_data = &progress;
  model_.reset(llama_model_load_from_file(path.c_str(), params));
  if (!model_) throw llama_failure(kExitRefused, fmt::format("{}: llama.cpp cannot load the model", path));
  vocab_ = llama_model_get_vocab(model_.get());
}

std::vector<llama_token> LlamaModel::tokenize(const std::string& text) const {
  constexpr bool kAddSpecial = true, kParseSpecial = true;
  auto length = static_cast<std::int32_t>(text.size());  // read_text() and the kernel's argument limit keep it small
  std::int32_t needed = -llama_tokenize(vocab_, text.data(), length, nullptr, 0, kAddSpecial, kParseSpecial);
  std::vector<llama_token> tokens(static_cast<std::size_t>(std::max(needed, 0)));
  llama_tokenize(vocab_, text.data(), length, tokens.data(), needed, kAddSpecial, kParseSpecial);
  return tokens;
}

std::string LlamaModel::piece(llama_token token) const {
  constexpr std::int32_t kKeepLeadingSpaces = 0;
  constexpr bool kShowControlTokens = false;
  std::string text(16, '\0');
  auto into = [&] {
    return llama_token_to_piece(vocab_, token, text.data(), static_cast<std::int32_t>(text.size()), kKeepLeadingSpaces,
                                kShowControlTokens);
  };
  std::int32_t bytes = into();
  if (bytes < 0) {
    text.resize(static_cast<std::size_t>(-bytes));
    bytes = into();
  }
  text.resize(static_cast<std::size_t>(std::max(bytes, 0)));
  return text;
}

LlamaContext::LlamaContext(const LlamaModel& model, const Size& size)
    : timer_(size.timer), vocabulary_(model.vocabulary()) {
  llama_context_params params = llama_context_default_params();
  params.n_ctx = size.tokens;
  params.n_batch = size.ubatch;
  params.n_ubatch = size.ubatch;
  params.n_threads = static_cast<std::int32_t>(size.threads);
  params.n_threads_batch = static_cast<std::int32_t>(size.threads);
  if (timer_ != nullptr) {
    params.cb_eval = GatherTimer::on_node;
    params.cb_eval_user_data = timer_;
  }
  context_.reset(llama_init_from_model(model.get(), params));
  if (!context_) {
    throw llama_failure(kExitFailed, fmt::format("llama.cpp cannot make a context of {} tokens", size.tokens));
  }
}

void LlamaContext::append(std::span<const llama_token> tokens) {
  std::vector<llama_token> batch(tokens.begin(), tokens.end());  // the C API takes no const
  if (timer_ != nullptr) timer_->next_graph();
  int status = llama_decode(context_.get(), llama_batch_get_one(batch.data(), static_cast<std::int32_t>(batch.size())));
  if (status != 0) {
    std::string what = batch.size() == 1 ? fmt::format("token {}", position_)
                                         : fmt::format("tokens {} to {}", position_, position_ + batch.size() - 1);
    std::string where = fmt::format("computing {} failed", what);
    if (auto failure = ggml::last_failure()) throw Failure({failure->code, where + ": " + failure->message});
    throw llama_failure(kExitFailed, fmt::format("{} (llama_decode gives {})", where, status));
  }
  position_ += batch.size();
}

void LlamaContext::clear() {
  constexpr bool kDataToo = true;
  llama_memory_clear(llama_get_memory(context_.get()), kDataToo);
  position_ = 0;
}

std::span<const float> LlamaContext::logits() const {
  const float* values = llama_get_logits_ith(context_.get(), -1);
  std::span<const float> logits(values, vocabulary_);
  for (std::size_t token = 0; token < logits.size(); ++token) {
    if (!std::isnan(logits[token])) continue;
    throw Failure(
        kExitFailed, "nan",
        fmt::format("after token {} the model's logit of token {} is not a number: the computation went wrong, "
                    "so its text would mean nothing",
                    position_ - 1, token));
  }
  return logits;
}

}  // namespace rowtide::cli
