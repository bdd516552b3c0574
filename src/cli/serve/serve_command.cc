// rowtide serve: llama-server with the plug-in and the flags of a plan.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <optional>

#include "base/printable.h"
#include "cli/command.h"
#include "cli/json_output.h"
#include "cli/llama_server.h"
#include "cli/plan/plan_arguments.h"
#include "cli/serve/listen_address.h"
#include "cli/serve/served.h"
#include "cli/stop_signals.h"
#include "sizing/plan.h"

namespace rowtide::cli {
namespace serve {
namespace {

constexpr const char* kDescription =
    "Runs llama-server with Rowtide's plug-in and the flags of a plan for this machine: context, slots, chunk, types "
    "of\n"
    "keys and values, drafts, the table's place and its cache. Waits until it answers, sees that the plug-in really\n"
    "serves, which llama.cpp does not tell, and says where it listens. Ctrl-C or SIGTERM stops it.\n\n"
    "MODEL is a GGUF file; of a split set the first. What stands behind -- goes to llama-server as it is. Its log\n"
    "goes to standard error.";

constexpr const char* kExamples =
    "  rowtide serve models/tidepool.gguf\n"
    "  rowtide serve Qwen3.8-Flash-Next-Q4.gguf --context 262144 --memory 8GiB --port 8000\n"
    "  rowtide serve model.gguf --llama-server ~/llama.cpp/build/bin/llama-server -- --jinja --threads 8\n";

struct ServeArguments {
  std::string model;
  std::string host = "127.0.0.1";
  std::uint32_t port = 8080;
  std::optional<std::string> llama_server;
  bool anyway = false;
  bool json = false;
  std::deque<plan::GivenOption> options;
  Arguments passed_on;  // to llama-server
};

/// Where the server listens must be known here: it is waited for there.
void refuse_own(const Arguments& passed_on) {
  for (const std::string& argument : passed_on) {
    const std::string_view name = std::string_view(argument).substr(0, argument.find('='));
    if (name == "--port" || name == "--host" || name == "--api-prefix" || name == "--ssl-key-file") {
      throw usage_failure("{} after --: rowtide serve must know where the server listens; give {} before it", name,
                          name == "--port" || name == "--host" ? name : std::string_view("other options"));
    }
  }
}

bool read_arguments(const Arguments& arguments, ServeArguments& given) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  if (dashes != arguments.end()) given.passed_on.assign(dashes + 1, arguments.end());
  refuse_own(given.passed_on);
  ArgumentParser parser("rowtide serve", kDescription, kExamples, given.json);
  std::optional<std::string> host;
  parser.required("MODEL", " ", given.model, "a GGUF model");
  parser.number("--port", given.port, 0, 65535, "where to listen; 0: any that is free");
  parser.optional("--host", "ADDRESS", host, "the address to listen on (127.0.0.1); 0.0.0.0: for other machines too");
  parser.optional("--llama-server", "FILE", given.llama_server,
                  "the program; else the one in PATH, or beside this program");
  parser.flag("--anyway", given.anyway, "start although the plan says that it cannot run or does not fit");
  // Left out is what belongs to other engines, to several machines, or to comparisons alone.
  plan::declare_options(parser, given.options,
                        {"model", "precision", "engine", "nodes", "dp", "ep", "price-per-hour", "decode-tok-s",
                         "prefill-tok-s", "prompt", "output"});
  if (!parser.parse(Arguments(arguments.begin(), dashes))) return false;
  if (host) given.host = *host;
  return true;
}

sizing::Plan plan_for(const ServeArguments& given) {
  sizing::PlanOptions options = plan::options_of(given.model, given.options);
  options.engine = engine_key(sizing::EngineId::kLlamaCpp);
  options.this_machine = options.this_machine || options.device.empty();
  return make_plan(opened(resolve(options)));
}

const sizing::Recipe& recipe_of(const sizing::Plan& plan) {
  return *std::find_if(plan.recipes.begin(), plan.recipes.end(),
                       [](const sizing::Recipe& each) { return each.engine == sizing::EngineId::kLlamaCpp; });
}

/// Refuses what cannot be run, or would not fit.
void check_plan(const sizing::Plan& plan, const ServeArguments& given) {
  if (given.anyway) return;
  const sizing::Recipe& recipe = recipe_of(plan);
  if (!recipe.runs) {
    std::vector<std::string> reasons;
    for (const sizing::EngineLimit& limit : recipe.limits) reasons.push_back(limit.reason);
    throw Failure(kExitRefused, "unsupported",
                  fmt::format("{}: {}", printable(given.model), fmt::join(reasons, "; and ")));
  }
  if (plan.fits) return;
  throw Failure(kExitNotSo, "does_not_fit",
                fmt::format("{} `rowtide plan {} --explain` shows every term; --anyway starts it all the same",
                            plan.verdict, printable(given.model)));
}

std::string server_program(const ServeArguments& given) {
  std::error_code absent;
  if (given.llama_server) {
    if (std::filesystem::is_regular_file(*given.llama_server, absent) &&
        ::access(given.llama_server->c_str(), X_OK) == 0) {
      return *given.llama_server;
    }
    throw usage_failure("--llama-server {}: is no program that this user may run", printable(*given.llama_server));
  }
  const char* const search_path = std::getenv("PATH");
  std::string found = find_llama_server(search_path != nullptr ? search_path : "");
  if (found.empty()) {
    throw Failure(kExitNotSo, "not_found",
                  "no llama-server in PATH, nor beside this program: install llama.cpp v0.5.0 or v0.6.0 and add its "
                  "folder to PATH, or give --llama-server FILE");
  }
  return found;
}

PlugIn plug_in_for(const sizing::Recipe& recipe) {
  const bool is_needed = std::any_of(recipe.environment.begin(), recipe.environment.end(),
                                     [](const auto& each) { return each.first == kPluginVariable; });
  if (!is_needed) return {};
  PlugIn plug_in = find_plug_in();
  if (plug_in.is_missing) {
    throw Failure(kExitNotSo, "not_served",
                  fmt::format("GGML_BACKEND_PATH names {}, which is no file: unset it, or name librowtide-ggml.so",
                              printable(plug_in.path)));
  }
  if (plug_in.path.empty()) {
    throw Failure(
        kExitNotSo, "not_served",
        "no librowtide-ggml.so beside this program: `make build` makes it where llama.cpp is set up; else name "
        "it in GGML_BACKEND_PATH");
  }
  return plug_in;
}

ServerCommand command_of(const sizing::Recipe& recipe, const ServeArguments& given, const ListenAddress& address) {
  ServerCommand command;
  command.program = server_program(given);
  command.plug_in = plug_in_for(recipe);
  command.arguments.assign(recipe.arguments.begin() + 1, recipe.arguments.end());
  command.environment = recipe.environment;
  for (auto& [name, value] : command.environment) {
    if (name == kPluginVariable) value = std::filesystem::absolute(command.plug_in.path).string();
  }
  for (const std::string& argument :
       {std::string("--host"), address.host(), std::string("--port"), std::to_string(address.port())}) {
    command.arguments.push_back(argument);
  }
  command.arguments.insert(command.arguments.end(), given.passed_on.begin(), given.passed_on.end());
  return command;
}

/// The command as a person would type it.
std::string text_of(const ServerCommand& command) {
  sizing::Recipe typed;
  typed.environment = command.environment;
  typed.arguments = command.arguments;
  typed.arguments.insert(typed.arguments.begin(), command.program);
  return typed.text();
}

/// What is going to be run, and why.
std::string beginning_text(const sizing::Plan& plan, const ServerCommand& command) {
  std::string text = plan.verdict + "\n";
  for (const std::string& warning : plan.warnings) text += fmt::format("Warning: {}\n", warning);
  return text + fmt::format("\n{}\n\n", text_of(command));
}

void print_ready(const Ready& ready, const ServerCommand& command, const ListenAddress& address,
                 const sizing::Plan& plan, bool json) {
  if (json) {
    Json environment = Json::object();
    for (const auto& [name, value] : command.environment) environment[name] = value;
    print_json({{"url", address.url()},
                {"pid", ready.pid},
                {"ready_seconds", ready.seconds},
                {"tables", ready.tables},
                {"plug_in", command.plug_in.path},
                {"llama_server", command.program},
                {"arguments", command.arguments},
                {"environment", environment},
                {"fits", plan.fits},
                {"verdict", plan.verdict}});
  } else {
    const std::string served = command.plug_in.path.empty() ? "the model has no table"
                               : ready.tables.empty()
                                   ? "the plug-in is loaded, and has gathered no row yet"
                                   : fmt::format("the plug-in serves {}", fmt::join(ready.tables, ", "));
    fmt::print("llama-server listens on {} after {:.1f} s; {}. Ctrl-C stops it.\n", address.url(), ready.seconds,
               served);
  }
  flush_output();  // nobody would learn of the address
}

}  // namespace
}  // namespace serve

ExitCode run_serve(const Arguments& arguments) {
  serve::ServeArguments given;
  if (!serve::read_arguments(arguments, given)) return kExitDone;
  const sizing::Plan plan = serve::plan_for(given);
  serve::check_plan(plan, given);
  const serve::ListenAddress address(given.host, static_cast<std::uint16_t>(given.port));
  const serve::ServerCommand command = serve::command_of(serve::recipe_of(plan), given, address);
  std::fputs(serve::beginning_text(plan, command).c_str(), stderr);
  const StopSignals signals;
  run_server(command, address, signals,
             [&](const serve::Ready& ready) { serve::print_ready(ready, command, address, plan, given.json); });
  return kExitDone;
}

}  // namespace rowtide::cli
