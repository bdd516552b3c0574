#include "cli/llama_server.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "base/printable.h"
#include "cli/json_output.h"

namespace rowtide::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kServerProgram = "llama-server";
constexpr const char* kPluginFile = "librowtide-ggml.so";
constexpr std::string_view kSign = "/memfd:rowtide-status";

bool is_program(const std::string& path) {
  std::error_code absent;
  return fs::is_regular_file(path, absent) && ::access(path.c_str(), X_OK) == 0;
}

fs::path own_folder() {
  std::error_code absent;
  return fs::read_symlink("/proc/self/exe", absent).parent_path();
}

PlugInSign read_sign(const fs::path& descriptor) {
  std::ifstream file(descriptor, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  text.resize(std::min(text.find('\0'), text.size()));
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  PlugInSign sign;
  if (!document.is_object() || !document.contains("tables")) return sign;
  for (const Json& table : document["tables"]) {
    if (table.is_object() && table.contains("name")) sign.tables.push_back(table["name"].get<std::string>());
  }
  return sign;
}

}  // namespace

std::string find_llama_server(const std::string& search_path) {
  for (std::size_t at = 0; at <= search_path.size();) {
    const std::string folder = search_path.substr(at, search_path.find(':', at) - at);
    const std::string path = (folder.empty() ? "." : folder) + "/" + kServerProgram;
    if (is_program(path)) return path;
    at += folder.size() + 1;
  }
  const std::string beside = (own_folder() / kServerProgram).string();
  return is_program(beside) ? beside : std::string();
}

PlugIn find_plug_in() {
  std::error_code absent;
  if (const char* named = std::getenv(kPluginVariable); named != nullptr && *named != '\0') {
    return {named, true, !fs::is_regular_file(named, absent)};
  }
  const fs::path folder = own_folder();
  for (const fs::path& candidate : {folder, folder.parent_path() / ROWTIDE_LIBRARY_FOLDER}) {
    if (fs::is_regular_file(candidate / kPluginFile, absent)) return {(candidate / kPluginFile).string(), false, false};
  }
  return {};
}

std::optional<PlugInSign> sign_of(pid_t process) {
  std::error_code failed;
  const fs::path descriptors = "/proc/" + std::to_string(process) + "/fd";
  for (fs::directory_iterator at(descriptors, failed), end; !failed && at != end; at.increment(failed)) {
    std::error_code gone;
    if (fs::read_symlink(at->path(), gone).string().starts_with(kSign)) return read_sign(at->path());
  }
  return std::nullopt;
}

std::string line_with(const std::string& text, const std::vector<std::string_view>& words) {
  for (const std::string_view word : words) {
    const std::size_t at = text.find(word);
    if (at != std::string::npos) return printable(text.substr(at, text.find('\n', at) - at));
  }
  return {};
}

std::string plug_in_refusal_reason(const std::string& output) {
  return line_with(output, {"rowtide: not serving", "incompatible API version", "failed to load ",
                            "failed to initialize", "undefined symbol", "no CPU backend found"});
}

std::string plug_in_refusal_fix(std::string_view reason) {
  const auto says = [&](std::string_view words) { return reason.find(words) != std::string_view::npos; };
  if (says("not serving")) return "set or unset that variable, as the line says";
  if (says("API version")) return "use llama.cpp v0.5.0 or v0.6.0, whose backend API is 2 or 3, or a newer Rowtide";
  if (says("no CPU backend")) return "start llama-server from, or beside, its own libraries";
  if (says("undefined symbol")) return "use a llama.cpp that is built with shared libraries";
  if (reason.empty()) {
    return "use a llama.cpp with shared libraries and dynamic backends (GGML_BACKEND_DL=ON), such as its releases";
  }
  return "see what it says: GGML_BACKEND_PATH=... llama-server --list-devices";
}

}  // namespace rowtide::cli
