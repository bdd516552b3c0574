#include "cli/model_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "address/qwen_ple.h"
#include "cli/failure.h"
#include "cli/nearest.h"

namespace rowtide::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kServed = "qwen_ple";
constexpr std::array<std::string_view, 4> kNotYetServed = {"deepseek_engram", "engram_demo", "longcat", "unigram"};

AddressedTable qwen_table(const QwenPleConfig& config, const QwenPleConstants& constants, std::uint32_t layer) {
  return {fmt::format("model.language_model.layers.{}.ple.ple_embedding.ngram_embedding", layer), layer,
          make_qwen_ple(config, constants)};
}

/// The keys of one config.json. A key that is absent or null takes the default that transformers gives it.
class ConfigReader {
 public:
  ConfigReader(const std::string& path, std::string_view text) : path_(path), top_(json::parse(text, nullptr, false)) {
    if (!top_.is_object()) throw Failure(kExitRefused, "malformed", path + ": not a JSON object");
    auto nested = top_.find("text_config");
    text_ = nested != top_.end() && nested->is_object() ? &*nested : &top_;
  }

  /// Of a list the first element counts, as in transformers.
  std::int64_t eos_token_id() const {
    const json* value = find(*text_, "eos_token_id");
    if (value != nullptr && value->is_array() && !value->empty()) value = &value->front();
    if (value == nullptr) throw refused("has no eos_token_id");
    return integer<std::int64_t>("eos_token_id", *value);
  }

  std::optional<std::int64_t> image_token_id() const {
    const json* value = find(top_, "image_token_id");
    if (value == nullptr) return std::nullopt;
    return integer<std::int64_t>("image_token_id", *value);
  }

  template <class T>
  T number(const char* key, T otherwise) const {
    const json* value = find(*text_, key);
    return value == nullptr ? otherwise : integer<T>(key, *value);
  }

  /// 0-based, ascending, each once.
  std::set<std::uint32_t> table_layers() const {
    const json* ids = find(*text_, "ple_layer_ids");
    if (ids == nullptr || !ids->is_array() || ids->empty()) {
      throw refused(
          "names no n-gram table (ple_layer_ids is missing or empty); this version knows the addressing of "
          "qwen4_exp models only");
    }
    std::set<std::uint32_t> layers;
    for (const json& id : *ids) {
      auto layer = integer<std::uint32_t>("ple_layer_ids", id);
      if (layer == 0) throw refused("ple_layer_ids holds 0, but layers are counted from 1 there");
      layers.insert(layer - 1);
    }
    return layers;
  }

 private:
  Failure refused(std::string_view what) const {
    return {kExitRefused, "malformed", fmt::format("{}: {}", path_, what)};
  }

  static const json* find(const json& object, const char* key) {
    auto value = object.find(key);
    return value == object.end() || value->is_null() ? nullptr : &*value;
  }

  template <class T>
  T integer(const char* key, const json& value) const {
    bool fits = value.is_number_unsigned()  ? std::in_range<T>(value.get<std::uint64_t>())
                : value.is_number_integer() ? std::in_range<T>(value.get<std::int64_t>())
                                            : false;
    if (!fits) throw refused(fmt::format("{} is {}, which is not a whole number in range", key, value.dump()));
    return value.get<T>();
  }

  std::string path_;
  json top_;
  const json* text_;
};

}  // namespace

std::vector<AddressedTable> tables_of_family(const std::string& name) {
  if (name == kServed) {
    QwenPleConfig config = released_qwen_ple();
    return {qwen_table(config, value_of(derive_qwen_ple(config)), 1)};
  }
  if (std::find(kNotYetServed.begin(), kNotYetServed.end(), name) != kNotYetServed.end()) {
    throw Failure(kExitRefused, "unsupported",
                  fmt::format("--family: the addressing of {} is not in this version; it knows {}", name, kServed));
  }
  std::vector<std::string> names(kNotYetServed.begin(), kNotYetServed.end());
  names.emplace_back(kServed);
  throw usage_failure("--family: unknown family '{}'{}; this version knows {}", name, suggestion(name, names), kServed);
}

std::vector<AddressedTable> tables_of_config(const std::string& path, std::string_view text) {
  ConfigReader reader(path, text);
  QwenPleConfig config{};
  config.vocab_size = reader.number<std::int64_t>("vocab_size", 248320);
  config.eos_token_id = reader.eos_token_id();
  config.image_token_id = reader.image_token_id();
  config.seed = reader.number<std::uint64_t>("seed", 1234);
  config.base = reader.number<std::uint64_t>("ngram_vocab_size_base", 20000000);
  config.ngram_size = reader.number<std::uint32_t>("ngram_size", 3);
  config.heads_per_order = reader.number<std::uint32_t>("heads_per_ngram", 8);

  std::vector<AddressedTable> tables;
  for (std::uint32_t layer : reader.table_layers()) {
    config.dense_index = static_cast<std::uint32_t>(tables.size());
    auto constants = derive_qwen_ple(config);
    if (!constants) throw Failure(kExitRefused, "malformed", fmt::format("{}: {}", path, constants.error().message));
    tables.push_back(qwen_table(config, *constants, layer));
  }
  return tables;
}

}  // namespace rowtide::cli
