// llama-server and the plug-in it is to load: where they are, and whether one has taken the other (docs/llama-cpp.md).
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rowtide::cli {

/// The path of llama-server: in the folders of `search_path` (as the variable PATH), else beside this program. Empty
/// where there is none.
std::string find_llama_server(const std::string& search_path);

inline constexpr const char* kPluginVariable = "GGML_BACKEND_PATH";

struct PlugIn {
  std::string path;               // empty: none
  bool from_environment = false;  // GGML_BACKEND_PATH names it
  bool is_missing = false;        // it names a file that is not there
};
/// GGML_BACKEND_PATH of the environment, else beside this program, or where both were installed.
PlugIn find_plug_in();

/// What the plug-in says of itself in a process that has accepted it.
struct PlugInSign {
  std::vector<std::string> tables;  // that were gathered from by now, by name
};
/// Nothing where the process has not accepted it. The server may be of another user: then nothing is seen either.
std::optional<PlugInSign> sign_of(pid_t process);

/// Why a server does without the plug-in, in its own words or the plug-in's: a line of its output. May be empty.
std::string plug_in_refusal_reason(const std::string& output);
/// What mends it, by that reason.
std::string plug_in_refusal_fix(std::string_view reason);

/// The first line of `text` that holds one of `words`, the words tried in their order, from the word on; else empty.
std::string line_with(const std::string& text, const std::vector<std::string_view>& words);

}  // namespace rowtide::cli
