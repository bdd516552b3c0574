// What a model says of its layers, under the names that config.json files use, whether it says so in a config.json or
// in the metadata of a GGUF file.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/metadata.h"
#include "checkpoint/model_config.h"
#include "rowtide/result.h"

namespace rowtide::sizing {

/// Numbers and lists by key. What goes wrong is remembered, the first of it, and told at the end by result(): a caller
/// asks for all that it needs without looking at each answer. Of several names for one thing the first that is there
/// counts.
class ModelKeys {
 public:
  using Names = std::initializer_list<std::string_view>;

  /// Numbers beyond these belong to no model; they keep every product of a few of them within 64 bits.
  static constexpr std::uint64_t kNumberMax = 1'000'000;
  static constexpr std::uint64_t kTokensMax = std::uint64_t{1} << 32;  // of a vocabulary, a context, a window

  virtual ~ModelKeys() = default;

  /// "qwen4_exp" of a config.json, "qwen4exp" of a GGUF file.
  const std::string& model_type() const { return model_type_; }

  /// The number of that name, a count or a width, 0 to `most`. If it is not there: a failure, and 0.
  std::uint32_t need(Names names, std::uint64_t most = kNumberMax);
  /// Those of the model, without its draft module's.
  std::uint32_t need_layers() { return need({"num_hidden_layers", "num_layers", "n_layer", "n_layers"}, 10'000); }
  /// The same for one that may be missing or be null.
  std::uint32_t get(Names names, std::uint64_t otherwise, std::uint64_t most = kNumberMax);
  std::uint64_t tokens(Names names, std::uint64_t otherwise);
  bool has(std::string_view name) const { return is_there(name); }
  /// Empty if it is not there.
  std::vector<std::uint64_t> numbers(std::string_view name);
  std::vector<std::string> texts(std::string_view name);
  /// False where it says nothing, or no such value can be looked up.
  bool flag(std::string_view name);

  /// Remembers that these layers are not known, for want of the key or because of its value.
  void refuse(std::string_view name, std::string_view message);
  Result<void> result() const;

 protected:
  explicit ModelKeys(std::string model_type) : model_type_(std::move(model_type)) {}

  virtual bool is_there(std::string_view name) const = 0;
  virtual Result<std::optional<std::uint64_t>> find_number(std::string_view name) const = 0;
  virtual Result<std::vector<std::uint64_t>> find_numbers(std::string_view name) const = 0;
  virtual Result<std::vector<std::string>> find_texts(std::string_view name) const = 0;
  virtual Result<bool> find_flag(std::string_view name) const = 0;
  /// The error for a key, as the file names it.
  virtual Error error(ErrorCode code, std::string_view name, std::string_view message) const = 0;

 private:
  template <class T>
  T kept(Result<T> result);
  void remember(Error error);

  std::string model_type_;
  std::optional<Error> failure_;
};

class ConfigKeys final : public ModelKeys {
 public:
  ConfigKeys(const checkpoint::ModelConfig& config, std::string model_type)
      : ModelKeys(std::move(model_type)), config_(config) {}

 private:
  bool is_there(std::string_view name) const override { return config_.has(name); }
  Result<std::optional<std::uint64_t>> find_number(std::string_view name) const override;
  Result<std::vector<std::uint64_t>> find_numbers(std::string_view name) const override;
  Result<std::vector<std::string>> find_texts(std::string_view name) const override;
  Result<bool> find_flag(std::string_view name) const override;
  Error error(ErrorCode code, std::string_view name, std::string_view message) const override;

  const checkpoint::ModelConfig& config_;
};

/// Keys stand in the file behind the architecture's name.
class GgufKeys final : public ModelKeys {
 public:
  GgufKeys(const checkpoint::Metadata& metadata, std::string architecture)
      : ModelKeys(std::move(architecture)), metadata_(metadata) {}

 private:
  bool is_there(std::string_view name) const override;
  Result<std::optional<std::uint64_t>> find_number(std::string_view name) const override;
  Result<std::vector<std::uint64_t>> find_numbers(std::string_view name) const override;
  Result<std::vector<std::string>> find_texts(std::string_view name) const override;
  Result<bool> find_flag(std::string_view name) const override;
  Error error(ErrorCode code, std::string_view name, std::string_view message) const override;
  /// Of the file; empty for a name that GGUF files have no key for.
  std::string key_of(std::string_view name) const;

  const checkpoint::Metadata& metadata_;
};

}  // namespace rowtide::sizing
