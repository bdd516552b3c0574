// A model's config.json, looked up by type.
//
// A key is looked for in the object text_config first, where models of several modes keep what belongs to their
// language model, then at the top level. A value that is null counts as absent. "OBJECT.KEY" names a key of one of the
// objects kept: text_config and quantization_config; deeper ones are only known to be there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/json_events.h"
#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

class ModelConfig {
 public:
  /// Errors: those of read_json(); kMalformed for what is no object. Memory: below 64 MiB for any input.
  static Result<ModelConfig> read(const io::File& file);

  const std::string& path() const { return path_; }

  /// Of the top level, as every config has it; empty if absent. kMalformed if it is no text.
  Result<std::string> model_type() const;
  /// The names of classes; empty if absent.
  Result<std::vector<std::string>> architectures() const;
  bool is_quantized() const { return has("quantization_config"); }

  /// Whether the key is there, whatever its value but null.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Nothing for a key that is absent. A value of another type, or a number out of T's range (int64_t, uint64_t,
  // int32_t, uint32_t), is kMalformed: the message names file, key and value.
  template <class T>
  Result<std::optional<T>> integer(std::string_view key) const;
  // A single value counts as a list of one.
  template <class T>
  Result<std::optional<std::vector<T>>> integers(std::string_view key) const;
  Result<std::optional<double>> real(std::string_view key) const;  // finite; integers fit
  Result<std::optional<bool>> boolean(std::string_view key) const;
  Result<std::optional<std::string>> text(std::string_view key) const;
  Result<std::optional<std::vector<std::string>>> texts(std::string_view key) const;

  /// The error "FILE: KEY is VALUE, MESSAGE" for a value that makes no sense to the one who looked it up; "FILE: KEY is
  /// missing, MESSAGE" for one that is absent.
  Error error(ErrorCode code, std::string_view key, std::string_view message) const;

 private:
  class Visitor;

  /// A scalar that owns its text.
  struct Scalar {
    JsonScalar value;  // its text is unset
    std::string text;
  };
  struct Value {
    enum class Kind { kScalar, kList, kObject };
    std::string key;  // "text_config.vocab_size"
    Kind kind = Kind::kScalar;
    bool is_whole = true;          // false: more, longer or deeper than what is kept
    std::vector<Scalar> elements;  // the scalar, or those of the list
    std::string described() const;
  };

  /// Nothing for a scalar of another type.
  template <class T>
  using Convert = std::optional<T> (*)(const Scalar&);

  ModelConfig() = default;
  const Value* find(std::string_view key) const;
  const Value* find_exactly(std::string_view key) const;
  template <class T>
  Result<std::optional<T>> one(const Value* value, Convert<T> convert, std::string_view wanted) const;
  template <class T>
  Result<std::optional<std::vector<T>>> many(const Value* value, Convert<T> convert, std::string_view wanted) const;
  template <class T>
  static std::optional<T> integer_of(const Scalar& scalar);
  static std::optional<std::string> text_of(const Scalar& scalar);
  Error unfit(const Value& value, std::string_view wanted) const;

  std::string path_;
  std::vector<Value> values_;  // ascending by key
};

}  // namespace rowtide::checkpoint
