#include "checkpoint/metadata.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::array<std::string_view, 13> kNames = {"u8",   "i8",  "u16", "i16", "u32", "i32", "f32",
                                                     "bool", "str", "arr", "u64", "i64", "f64"};

std::string describe(const MetadataPair& pair) {
  const std::string_view type = value_type_name(pair.type);
  if (pair.is_array) return fmt::format("an array of {} {}", pair.count, type);
  return fmt::format("{} {}", pair.type == ValueType::kText && !pair.is_kept ? "a long" : "a", type);
}

bool is_integer_scalar(const MetadataPair& pair) { return !pair.is_array && is_integer(pair.type); }
bool is_kept_integer_array(const MetadataPair& pair) { return pair.is_array && pair.is_kept && is_integer(pair.type); }
bool is_kept_text(const MetadataPair& pair) { return !pair.is_array && pair.is_kept && pair.type == ValueType::kText; }
bool is_any_array(const MetadataPair& pair) { return pair.is_array; }

std::optional<std::int64_t> find_negative(const MetadataPair& pair) {
  if (!is_signed(pair.type)) return std::nullopt;
  for (const std::uint64_t bits : pair.integers) {
    if (const auto value = static_cast<std::int64_t>(bits); value < 0) return value;
  }
  return std::nullopt;
}

}  // namespace

std::string_view value_type_name(ValueType type) { return kNames[static_cast<std::size_t>(type)]; }

bool is_signed(ValueType type) {
  return type == ValueType::kI8 || type == ValueType::kI16 || type == ValueType::kI32 || type == ValueType::kI64;
}

bool is_integer(ValueType type) {
  return is_signed(type) || type == ValueType::kU8 || type == ValueType::kU16 || type == ValueType::kU32 ||
         type == ValueType::kU64;
}

Result<Metadata> Metadata::from_pairs(std::string path, std::vector<MetadataPair> pairs) {
  Metadata metadata;
  metadata.path_ = std::move(path);
  std::sort(pairs.begin(), pairs.end(), [](const MetadataPair& a, const MetadataPair& b) { return a.key < b.key; });
  const auto twice = std::adjacent_find(pairs.begin(), pairs.end(),
                                        [](const MetadataPair& a, const MetadataPair& b) { return a.key == b.key; });
  if (twice != pairs.end()) return metadata.error(ErrorCode::kMalformed, twice->key, "occurs twice");
  metadata.pairs_ = std::move(pairs);
  return metadata;
}

Result<std::uint64_t> Metadata::integer(std::string_view key) const {
  auto pair = require(key, is_integer_scalar, "a non-negative integer");
  if (!pair) return pair.error();
  return (*pair)->integers.front();
}

Result<std::vector<std::uint64_t>> Metadata::integers(std::string_view key) const {
  auto pair = require(key, is_kept_integer_array, "a short array of non-negative integers");
  if (!pair) return pair.error();
  return (*pair)->integers;
}

Result<std::string> Metadata::text(std::string_view key) const {
  auto pair = require(key, is_kept_text, "a short text");
  if (!pair) return pair.error();
  return (*pair)->text;
}

Result<std::uint64_t> Metadata::array_size(std::string_view key) const {
  auto pair = require(key, is_any_array, "an array");
  if (!pair) return pair.error();
  return (*pair)->count;
}

Error Metadata::error(ErrorCode code, std::string_view key, std::string_view message) const {
  return make_error(code, "{}: key '{}': {}", path_, printable(key), message);
}

const MetadataPair* Metadata::find(std::string_view key) const {
  const auto found =
      std::lower_bound(pairs_.begin(), pairs_.end(), key,
                       [](const MetadataPair& pair, std::string_view wanted) { return pair.key < wanted; });
  return found != pairs_.end() && found->key == key ? &*found : nullptr;
}

Result<const MetadataPair*> Metadata::require(std::string_view key, bool fits(const MetadataPair&),
                                              std::string_view wanted) const {
  const MetadataPair* pair = find(key);
  if (pair == nullptr) return error(ErrorCode::kMalformed, key, "is missing");
  if (!fits(*pair)) {
    return error(ErrorCode::kMalformed, key, fmt::format("must be {}, but is {}", wanted, describe(*pair)));
  }
  if (const auto negative = find_negative(*pair)) {
    return error(ErrorCode::kMalformed, key, fmt::format("must be {}, but holds {}", wanted, *negative));
  }
  return pair;
}

}  // namespace rowtide::checkpoint
