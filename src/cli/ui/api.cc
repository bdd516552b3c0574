#include "cli/ui/api.h"

#include <string>

#include "cli/failure.h"
#include "cli/json_output.h"
#include "cli/plan/plan_json.h"
#include "cli/ui/page.h"
#include "sizing/anatomy.h"
#include "sizing/device.h"
#include "sizing/plan.h"
#include "sizing/request.h"

namespace rowtide::cli::ui {
namespace {

HttpResponse json_response(int status, const Json& document) {
  return {status, "application/json", document.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"};
}

HttpResponse error_response(int status, std::string_view code, std::string_view message) {
  return json_response(status, {{"error", {{"code", code}, {"message", message}}}});
}

Json this_machine_json() {
  const auto machine = sizing::this_machine();
  if (!machine) return nullptr;
  return {{"name", machine->device.name},
          {"visible_bytes", machine->device.visible_bytes},
          {"is_unified", machine->device.is_unified}};
}

Json catalog(bool allows_paths) {
  Json models = Json::array(), devices = Json::array(), options = Json::array();
  for (const sizing::KnownModel& model : sizing::known_models()) {
    models.push_back({{"name", model.name}, {"precisions", model.precisions}, {"summary", model.summary}});
  }
  for (const sizing::Device& device : sizing::known_devices()) {
    devices.push_back({{"id", device.id},
                       {"name", device.name},
                       {"sold_as", device.sold_as},
                       {"visible_bytes", device.visible_bytes},
                       {"is_unified", device.is_unified}});
  }
  for (const sizing::PlanOption& option : sizing::plan_options()) {
    options.push_back(
        {{"name", option.name}, {"value_name", option.value_name}, {"group", option.group}, {"help", option.help}});
  }
  return {{"version", ROWTIDE_VERSION},          {"models", std::move(models)}, {"devices", std::move(devices)},
          {"this_machine", this_machine_json()}, {"paths", allows_paths},       {"options", std::move(options)}};
}

Json plan_of(const HttpRequest& request, bool allows_paths) {
  sizing::PlanOptions options;
  for (const auto& [name, value] : request.query) {
    if (name == "path" && !allows_paths) {
      throw usage_failure("path: checkpoints of this machine are planned where rowtide ui was started with --paths");
    }
  }
  for (const auto& [name, value] : request.query) check(sizing::set_plan_option(options, name, value));
  return to_json(sizing::make_plan(value_of(sizing::resolve(options))));
}

/// Whether a request with that Origin comes from a page of this server, or of a tunnel to it.
bool is_own_origin(const HttpRequest& request) {
  const auto origin = request.header("origin");
  const auto host = request.header("host");
  return !origin || (host && (*origin == "http://" + std::string(*host)));
}

HttpResponse answer_api(const HttpRequest& request, bool allows_paths) {
  const auto site = request.header("sec-fetch-site");  // browsers say it; other programs need not
  if ((site && *site != "same-origin" && *site != "none") || !is_own_origin(request)) {
    return error_response(403, "usage", "only the Explorer page itself may ask here");
  }
  if (request.path == "/api/catalog") return json_response(200, catalog(allows_paths));
  if (request.path != "/api/plan") return error_response(404, "not_found", "there is no " + request.path);
  try {
    return json_response(200, plan_of(request, allows_paths));
  } catch (const Failure& failure) {
    return error_response(400, failure.code(), failure.what());
  }
}

std::string_view content_type_of(std::string_view name) {
  if (name.ends_with(".css")) return "text/css; charset=utf-8";
  if (name.ends_with(".js")) return "text/javascript; charset=utf-8";
  return "text/html; charset=utf-8";
}

}  // namespace

HttpResponse answer_page(const HttpRequest& request, bool allows_paths) {
  if (request.path.starts_with("/api/")) return answer_api(request, allows_paths);
  const std::string_view asked = std::string_view(request.path).substr(1);
  const std::string_view name = asked.empty() ? "index.html" : asked;
  for (const PageFile& file : page_files()) {
    if (file.name == name) return {200, std::string(content_type_of(name)), std::string(file.text)};
  }
  return {404, "text/plain; charset=utf-8", "there is no such page here\n"};
}

}  // namespace rowtide::cli::ui
