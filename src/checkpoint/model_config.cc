#include "checkpoint/model_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/lfs_pointer.h"

namespace rowtide::checkpoint {
namespace {

using Kind = JsonScalar::Kind;

constexpr std::array<std::string_view, 2> kKeptObjects = {"text_config", "quantization_config"};
constexpr std::string_view kTextConfig = kKeptObjects[0];

// What is kept at most: a config beyond that is no less valid, but its longer values cannot be looked up.
constexpr std::size_t kKeysMax = 20'000;
constexpr std::size_t kKeyBytesMax = 256;
constexpr std::size_t kElementsMax = 100'000;                // of all lists
constexpr std::size_t kTextBytesMax = std::size_t{8} << 20;  // of all texts

constexpr std::size_t kElementsDescribed = 8;

bool is_kept_object(std::string_view key) {
  return std::find(kKeptObjects.begin(), kKeptObjects.end(), key) != kKeptObjects.end();
}

}  // namespace

/// Keeps the scalars, and lists of scalars, of the top level and of the kept objects.
class ModelConfig::Visitor final : public JsonVisitor {
 public:
  explicit Visitor(std::vector<Value>& values) : values_(values) {}

  void object_begins() override {
    if (depth() == 0) return;
    if (in_list_) {
      values_.back().is_whole = false;
    } else {
      add(Value::Kind::kObject);
      if (depth() == 1 && is_kept_object(key_)) object_ = key_;
    }
  }

  bool name(std::string_view name) override {
    if (depth() == 1) object_.clear();
    const bool is_kept = depth() == 1 || (depth() == 2 && !object_.empty());
    if (!is_kept || in_list_) return false;
    if (name.size() > kKeyBytesMax || name.find('.') != std::string_view::npos) return false;  // nobody's key
    key_ = object_.empty() ? std::string(name) : object_ + "." + std::string(name);
    if (values_.size() == kKeysMax)
      refuse(fmt::format("more than {} keys, the limit", kKeysMax), ErrorCode::kUnsupported);
    return true;
  }

  void array_begins() override {
    if (depth() == 0) return refuse("a list stands where the config's object belongs");
    if (lists_++ > 0) {
      values_.back().is_whole = false;
      return;
    }
    in_list_ = true;
    add(Value::Kind::kList);
  }
  void array_ends() override { in_list_ = --lists_ > 0; }

  void scalar(const JsonScalar& value) override {
    if (depth() == 0) return refuse(value.described() + " stands where the config's object belongs");
    if (!in_list_) {
      if (value.kind == Kind::kNull) return;
      add(Value::Kind::kScalar);
    }
    if (lists_ > 1) return;
    Value& kept = values_.back();
    const bool fits = elements_ < kElementsMax && value.text.size() <= kTextBytesMax - text_bytes_;
    kept.is_whole = kept.is_whole && fits;
    if (!fits) return;
    ++elements_;
    text_bytes_ += value.text.size();
    Scalar scalar{value, std::string(value.text)};
    scalar.value.text = {};
    kept.elements.push_back(std::move(scalar));
  }

 private:
  void add(Value::Kind kind) { values_.push_back({.key = key_, .kind = kind, .is_whole = true, .elements = {}}); }

  std::vector<Value>& values_;
  std::string object_;  // the kept one that is being read
  std::string key_;
  bool in_list_ = false;
  std::size_t lists_ = 0;  // inside each other
  std::size_t elements_ = 0;
  std::size_t text_bytes_ = 0;
};

Result<ModelConfig> ModelConfig::read(const io::File& file) {
  if (auto itself = refuse_lfs_pointer(file); !itself) return itself.error();
  ModelConfig config;
  config.path_ = file.path();
  Visitor visitor(config.values_);
  if (auto read = read_json(file, 0, file.bytes(), visitor, {.has_non_finite = true}); !read) return read.error();
  std::sort(config.values_.begin(), config.values_.end(), [](const Value& a, const Value& b) { return a.key < b.key; });
  return config;
}

const ModelConfig::Value* ModelConfig::find_exactly(std::string_view key) const {
  const auto found = std::lower_bound(values_.begin(), values_.end(), key,
                                      [](const Value& value, std::string_view wanted) { return value.key < wanted; });
  return found != values_.end() && found->key == key ? &*found : nullptr;
}

const ModelConfig::Value* ModelConfig::find(std::string_view key) const {
  if (const Value* value = find_exactly(fmt::format("{}.{}", kTextConfig, key))) return value;
  return find_exactly(key);
}

std::string ModelConfig::Value::described() const {
  const auto element = [](const Scalar& scalar) {
    JsonScalar whole = scalar.value;
    whole.text = scalar.text;
    return whole.described();
  };
  if (kind == Kind::kObject) return "an object";
  if (kind == Kind::kScalar) return elements.empty() ? "a very long text" : element(elements[0]);
  std::string text = "[";
  for (std::size_t i = 0; i < std::min(elements.size(), kElementsDescribed); ++i) {
    text += (i == 0 ? "" : ", ") + element(elements[i]);
  }
  return text + (elements.size() > kElementsDescribed || !is_whole ? ", ...]" : "]");
}

Error ModelConfig::error(ErrorCode code, std::string_view key, std::string_view message) const {
  const Value* value = find(key);
  if (value == nullptr) return make_error(code, "{}: {} is missing, {}", path_, key, message);
  return make_error(code, "{}: {} is {}, {}", path_, printable(value->key), value->described(), message);
}

Error ModelConfig::unfit(const Value& value, std::string_view wanted) const {
  return make_error(ErrorCode::kMalformed, "{}: {} is {}, which is not {}", path_, printable(value.key),
                    value.described(), wanted);
}

/// The scalar as `convert` makes it; nothing for a key that is absent.
template <class T>
Result<std::optional<T>> ModelConfig::one(const Value* value, Convert<T> convert, std::string_view wanted) const {
  if (value == nullptr) return std::optional<T>();
  std::optional<T> converted;
  if (value->kind == Value::Kind::kScalar && value->is_whole) converted = convert(value->elements[0]);
  if (!converted) return unfit(*value, wanted);
  return converted;
}

template <class T>
Result<std::optional<std::vector<T>>> ModelConfig::many(const Value* value, Convert<T> convert,
                                                        std::string_view wanted) const {
  if (value == nullptr) return std::optional<std::vector<T>>();
  if (value->kind == Value::Kind::kObject || !value->is_whole) return unfit(*value, wanted);
  std::vector<T> all;
  for (const Scalar& scalar : value->elements) {
    auto converted = convert(scalar);
    if (!converted) return unfit(*value, wanted);
    all.push_back(*std::move(converted));
  }
  return std::optional(std::move(all));
}

template <class T>
std::optional<T> ModelConfig::integer_of(const Scalar& scalar) {
  const JsonScalar& value = scalar.value;
  if (value.kind == Kind::kUnsigned && std::in_range<T>(value.unsigned_value))
    return static_cast<T>(value.unsigned_value);
  if (value.kind == Kind::kNegative && std::in_range<T>(value.negative_value))
    return static_cast<T>(value.negative_value);
  return std::nullopt;
}

std::optional<std::string> ModelConfig::text_of(const Scalar& scalar) {
  return scalar.value.kind == Kind::kText ? std::optional(scalar.text) : std::nullopt;
}

template <class T>
Result<std::optional<T>> ModelConfig::integer(std::string_view key) const {
  using Limits = std::numeric_limits<T>;
  return one<T>(find(key), integer_of<T>, fmt::format("a whole number from {} to {}", Limits::min(), Limits::max()));
}

template <class T>
Result<std::optional<std::vector<T>>> ModelConfig::integers(std::string_view key) const {
  using Limits = std::numeric_limits<T>;
  return many<T>(find(key), integer_of<T>,
                 fmt::format("a list of whole numbers from {} to {}", Limits::min(), Limits::max()));
}

template Result<std::optional<std::int32_t>> ModelConfig::integer(std::string_view) const;
template Result<std::optional<std::int64_t>> ModelConfig::integer(std::string_view) const;
template Result<std::optional<std::uint32_t>> ModelConfig::integer(std::string_view) const;
template Result<std::optional<std::uint64_t>> ModelConfig::integer(std::string_view) const;
template Result<std::optional<std::vector<std::int32_t>>> ModelConfig::integers(std::string_view) const;
template Result<std::optional<std::vector<std::int64_t>>> ModelConfig::integers(std::string_view) const;
template Result<std::optional<std::vector<std::uint32_t>>> ModelConfig::integers(std::string_view) const;
template Result<std::optional<std::vector<std::uint64_t>>> ModelConfig::integers(std::string_view) const;

Result<std::optional<double>> ModelConfig::real(std::string_view key) const {
  const auto convert = [](const Scalar& scalar) -> std::optional<double> {
    const JsonScalar& value = scalar.value;
    switch (value.kind) {
      case Kind::kReal:
        if (!std::isfinite(value.real_value)) return std::nullopt;
        return value.real_value;
      case Kind::kUnsigned: return static_cast<double>(value.unsigned_value);
      case Kind::kNegative: return static_cast<double>(value.negative_value);
      default: return std::nullopt;
    }
  };
  return one<double>(find(key), convert, "a finite number");
}

Result<std::optional<bool>> ModelConfig::boolean(std::string_view key) const {
  const auto convert = [](const Scalar& scalar) {
    return scalar.value.kind == Kind::kBool ? std::optional(scalar.value.bool_value) : std::nullopt;
  };
  return one<bool>(find(key), convert, "true or false");
}

Result<std::optional<std::string>> ModelConfig::text(std::string_view key) const {
  return one<std::string>(find(key), text_of, "a text");
}

Result<std::optional<std::vector<std::string>>> ModelConfig::texts(std::string_view key) const {
  return many<std::string>(find(key), text_of, "a list of texts");
}

Result<std::string> ModelConfig::model_type() const {
  auto type = one<std::string>(find_exactly("model_type"), text_of, "a text");
  if (!type) return type.error();
  return type->value_or("");
}

Result<std::vector<std::string>> ModelConfig::architectures() const {
  auto names = many<std::string>(find_exactly("architectures"), text_of, "a list of texts");
  if (!names) return names.error();
  return names->value_or(std::vector<std::string>());
}

}  // namespace rowtide::checkpoint
