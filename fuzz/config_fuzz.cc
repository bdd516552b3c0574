// A model's config.json, untrusted: read, and looked up by every type. The input is the file.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "checkpoint/model_config.h"

namespace {

using namespace rowtide;

constexpr std::string_view kPath = "config.json";
constexpr std::array<std::string_view, 10> kKeys = {"vocab_size",          "eos_token_id",
                                                    "ple_layer_ids",       "seed",
                                                    "quantization_config", "quantization_config.quant_method",
                                                    "rms_norm_eps",        "a",
                                                    "text_config",         ""};

void require(bool condition) {
  if (!condition) std::abort();
}

/// Absent means nothing, under each type; an error names file and key.
template <class T>
void check(const Result<std::optional<T>>& result, bool is_there, std::string_view key) {
  if (result) {
    require(result->has_value() == is_there);
  } else {
    require(is_there && result.error().message.find(kPath) == 0 &&
            result.error().message.find(key) != std::string::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  auto file = io::memory_file(std::string(kPath), {begin, begin + size});
  auto config = checkpoint::ModelConfig::read(*file);
  if (!config) {
    require(config.error().message.find(kPath) == 0);
    return 0;
  }
  for (const std::string_view key : kKeys) {
    const bool is_there = config->has(key);
    check(config->integer<std::int64_t>(key), is_there, key);
    check(config->integer<std::uint32_t>(key), is_there, key);
    check(config->integers<std::uint64_t>(key), is_there, key);
    check(config->real(key), is_there, key);
    check(config->boolean(key), is_there, key);
    check(config->text(key), is_there, key);
    check(config->texts(key), is_there, key);
    require(!config->error(ErrorCode::kMalformed, key, "no sense").message.empty());
  }
  require(config->is_quantized() == config->has("quantization_config"));
  (void)config->model_type();
  (void)config->architectures();
  return 0;
}
