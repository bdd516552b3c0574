#include "cli/generate/tokens.h"

#include "cli/generate/llama_model.h"

namespace rowtide::cli {

std::vector<std::int32_t> tokens_of(const std::string& model, const std::string& text) {
  constexpr bool kWithoutStore = false;
  start_llama(kWithoutStore);
  return LlamaModel(model, LlamaModel::Part::kVocabulary).tokenize(text);
}

}  // namespace rowtide::cli
