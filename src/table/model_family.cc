#include "table/model_family.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.h"
#include "base/printable.h"

namespace rowtide {
namespace {

constexpr std::array kFamilies = {&kQwenFamily, &kDeepseekFamily, &kLongcatFamily, &kGemmaFamily};

/// An empty list and a size of 0 say that there is none.
bool tells_of_table(const checkpoint::ModelConfig& config, std::string_view key) {
  if (auto size = config.integer<std::int64_t>(key)) return size->value_or(0) != 0;
  auto layers = config.integers<std::int64_t>(key);
  return !layers || (*layers && !(*layers)->empty());  // what is neither, the family's reader refuses
}

bool tells_of_table(const checkpoint::ModelConfig& config, const ModelFamily& family) {
  return std::any_of(family.told_by.begin(), family.told_by.end(),
                     [&](std::string_view key) { return tells_of_table(config, key); });
}

/// What the model calls itself: its type, then its architectures.
Result<std::vector<std::string>> names_of(const checkpoint::ModelConfig& config) {
  auto names = config.architectures();
  if (!names) return names.error();
  auto type = config.model_type();
  if (!type) return type.error();
  if (!type->empty()) names->insert(names->begin(), *std::move(type));
  return names;
}

bool is_known(const std::vector<std::string>& names, const ModelFamily& family) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::find(family.known_as.begin(), family.known_as.end(), name) != family.known_as.end();
  });
}

/// Whose keys it has is the nearest family that is known.
Error unknown(const checkpoint::ModelConfig& config, const std::string& name, const ModelFamily& nearest) {
  return make_error(ErrorCode::kUnsupported,
                    "{}: model type '{}' is not known; the nearest that is known is '{}', whose keys it has, but its "
                    "tables may be addressed in another way",
                    config.path(), printable(name), nearest.known_as.front());
}

}  // namespace

Result<const ModelFamily*> family_of(const checkpoint::ModelConfig& config) {
  auto names = names_of(config);
  if (!names) return names.error();
  const ModelFamily* told = nullptr;
  for (const ModelFamily* family : kFamilies) {
    if (!tells_of_table(config, *family)) continue;
    if (names->empty() || is_known(*names, *family)) return family;
    if (told == nullptr) told = family;
  }
  if (told != nullptr) return unknown(config, names->front(), *told);
  return nullptr;
}

std::string telling_keys() {
  std::vector<std::string_view> keys;
  for (const ModelFamily* family : kFamilies) keys.insert(keys.end(), family->told_by.begin(), family->told_by.end());
  return fmt::format("{}", fmt::join(keys, ", "));
}

}  // namespace rowtide
