// Models described by name (data/models.json).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/nearest.h"
#include "checkpoint/model_config.h"
#include "io/file.h"
#include "sizing/anatomy.h"
#include "sizing/data.h"
#include "sizing/layers.h"
#include "sizing/plain_name.h"

namespace rowtide::sizing {
namespace {

using Json = nlohmann::json;

const Json& described() {
  static const Json models = Json::parse(data::models);
  return models;
}

bool is_called(const Json& precision, std::string_view name) {
  const std::string wanted = hyphenated(name);
  if (hyphenated(precision["name"].get<std::string>()) == wanted) return true;
  const Json also = precision.value("also", Json::array());
  return std::any_of(also.begin(), also.end(),
                     [&](const Json& other) { return hyphenated(other.get<std::string>()) == wanted; });
}

const Json* find_precision(const Json& model, std::string_view name) {
  for (const Json& precision : model["precisions"]) {
    if (is_called(precision, name)) return &precision;
  }
  return nullptr;
}

std::vector<std::string> precisions_of(const Json& model) {
  std::vector<std::string> names;
  for (const Json& precision : model["precisions"]) names.push_back(precision["name"]);
  return names;
}

struct Chosen {
  const Json* model = nullptr;
  const Json* precision = nullptr;
};

/// `name`, or `name` and a precision behind a hyphen, space, underscore or colon.
Chosen find_model(std::string_view name) {
  const std::string wanted =
      hyphenated(name.substr(name.find('/') == std::string_view::npos ? 0 : name.rfind('/') + 1));
  for (const Json& model : described()["models"]) {
    const std::string known = hyphenated(model["name"].get<std::string>());
    if (wanted == known) return {&model, nullptr};
    if (wanted.size() > known.size() + 1 && wanted.starts_with(known) &&
        (wanted[known.size()] == '-' || wanted[known.size()] == ':')) {
      const Json* precision = find_precision(model, std::string_view(wanted).substr(known.size() + 1));
      if (precision != nullptr) return {&model, precision};
    }
  }
  return {};
}

Result<Chosen> choose(std::string_view name, std::string_view precision) {
  Chosen chosen = find_model(name);
  if (chosen.model == nullptr) {
    std::vector<std::string> names;
    for (const KnownModel& known : known_models()) names.push_back(known.name);
    return make_error(ErrorCode::kUsage, "there is no model '{}'{}: known are {}", name, suggestion(name, names),
                      fmt::join(names, ", "));
  }
  if (!precision.empty()) {
    const Json* asked = find_precision(*chosen.model, precision);
    if (asked == nullptr) {
      return make_error(ErrorCode::kUsage, "{} is not described in '{}': it is in {}",
                        (*chosen.model)["name"].get<std::string>(), precision,
                        fmt::join(precisions_of(*chosen.model), ", "));
    }
    if (chosen.precision != nullptr && chosen.precision != asked) {
      return make_error(ErrorCode::kUsage,
                        "the model '{}' is one in another precision than '{}': leave out one of both", name, precision);
    }
    chosen.precision = asked;
  }
  if (chosen.precision == nullptr) chosen.precision = &(*chosen.model)["precisions"].front();
  return chosen;
}

/// How a precision stores a group of tensors.
struct Format {
  std::string name;
  double bits = 0;
  std::string is;
};

Format format_of(const Json& precision, const std::string& group) {
  const Json& formats = precision["formats"];
  const std::string name = formats.contains(group) ? formats[group] : formats["*"];
  const Json& format = described()["formats"][name];
  return {name, format["bits"], format["is"]};
}

Part part_named(const std::string& name) {
  for (std::size_t i = 0; i < kParts; ++i) {
    if (part_name(static_cast<Part>(i)) == name) return static_cast<Part>(i);
  }
  return Part::kDense;
}

struct Values {
  std::uint64_t count = 0;
  std::string formula;  // "48 x 3 x 2560 x 640 + 48 x 2560"
};

Values values_of(const Json& group) {
  Values values;
  std::vector<std::string> products;
  for (const Json& factors : group["values"]) {
    std::uint64_t product = 1;
    for (const Json& factor : factors) product *= factor.get<std::uint64_t>();
    values.count += product;
    products.push_back(fmt::format("{}", fmt::join(factors.get<std::vector<std::uint64_t>>(), " x ")));
  }
  values.formula = fmt::format("{}", fmt::join(products, " + "));
  return values;
}

void add_to(PartSize& part, std::uint64_t values, std::uint64_t bytes, const std::string& source) {
  part.parameters += values;
  part.bytes += bytes;
  part.source += (part.source.empty() ? "" : "; ") + source;
}

void add_tensors(const Chosen& chosen, Model& model) {
  const Json without = chosen.precision->value("without", Json::array());
  const std::string remainder = chosen.precision->value("remainder", "");
  const Json* rest = nullptr;
  for (const Json& group : (*chosen.model)["tensors"]) {
    const std::string name = group["name"];
    if (std::find(without.begin(), without.end(), name) != without.end()) continue;
    if (name == remainder) {
      rest = &group;
      continue;
    }
    const Values values = values_of(group);
    const Format format = format_of(*chosen.precision, name);
    const auto bytes = static_cast<std::uint64_t>(std::ceil(static_cast<double>(values.count) * format.bits / 8));
    add_to(model.part(part_named(group["part"])), values.count, bytes,
           fmt::format("{}: {} ({}), {}: {}", name, values.formula, group["is"].get<std::string>(), format.name,
                       format.is));
  }
  if (rest == nullptr) return;
  const Values values = values_of(*rest);
  const std::uint64_t published = (*chosen.precision)["published_rest_bytes"];
  add_to(model.part(part_named((*rest)["part"])), values.count, published - model.bytes_total(),
         fmt::format("{}: {} ({}), in what the other groups leave of the published {} bytes", remainder, values.formula,
                     (*rest)["is"].get<std::string>(), published));
}

void add_tables(const Chosen& chosen, Model& model) {
  for (const Json& each : chosen.model->value("tables", Json::array())) {
    TableShape table;
    table.name = each["name"];
    table.layer = each["layer"];
    table.rows = each["rows"];
    table.row_values = each["row_values"];
    table.rows_per_token = each["rows_per_token"];
    table.heads_per_order = each["heads_per_order"];
    table.components = each.value("components", 1);
    const Format format = format_of(*chosen.precision, table.name);
    table.row_bytes = static_cast<std::uint64_t>(static_cast<double>(table.row_values) * format.bits / 8);
    add_to(model.part(Part::kTable), table.rows * table.row_values, table.bytes(),
           fmt::format("{}: {} rows x {} bytes, {} values in {}: {}", table.name, table.rows, table.row_bytes,
                       table.row_values, format.name, format.is));
    model.tables.push_back(std::move(table));
  }
}

/// What the description says of the layers, as the config.json that it is.
Result<void> add_described_layers(const Chosen& chosen, Model& model) {
  const std::string text = (*chosen.model)["config"].dump();
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  const auto file = io::memory_file("models.json: " + model.name, std::move(bytes));
  auto config = checkpoint::ModelConfig::read(*file);
  if (!config) return config.error();
  ConfigKeys keys(*config, model.model_type);
  const bool has_draft = model.part(Part::kDraftDense).bytes + model.part(Part::kDraftExpert).bytes > 0;
  return add_layers(keys, has_draft ? std::nullopt : std::optional<std::uint32_t>(0), model);
}

}  // namespace

const std::vector<KnownModel>& known_models() {
  static const std::vector<KnownModel> models = [] {
    std::vector<KnownModel> known;
    for (const Json& model : described()["models"]) {
      known.push_back({model["name"], precisions_of(model), model["summary"]});
    }
    return known;
  }();
  return models;
}

Result<Model> known_model(std::string_view name, std::string_view precision) {
  auto chosen = choose(name, precision);
  if (!chosen) return chosen.error();
  Model model;
  model.name = (*chosen->model)["name"];
  model.precision = (*chosen->precision)["name"];
  model.model_type = (*chosen->model)["config"]["model_type"];
  model.family = chosen->model->value("family", "");
  model.format = (*chosen->precision)["format"];
  model.source = fmt::format("{}; {}", (*chosen->model)["source"].get<std::string>(),
                             (*chosen->precision)["source"].get<std::string>());
  add_tensors(*chosen, model);
  add_tables(*chosen, model);
  if (auto layers = add_described_layers(*chosen, model); !layers) return layers.error();
  if (model.part(Part::kDraftExpert).bytes == 0) model.draft_experts = model.draft_experts_per_token = 0;
  return model;
}

}  // namespace rowtide::sizing
