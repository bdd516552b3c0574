#include "cli/generate/tokens.h"

#include "cli/generate/llama_model.h"

namespace rowtide::cli {

std::vector<std::int32_t> tokens_of(const std::string& model, const std::string& text) {
  start_llama(/*plugin=*/std::nullopt);
  return LlamaModel(model, LlamaModel::Part::kVocabulary).tokenize(text);
}

}  // namespace rowtide::cli
