// What a host finds when it loads the plug-in from a file (GGML_BACKEND_PATH): one function. Its words go to standard
// error, since the host has no place for them.
#include <fmt/format.h>
#include <ggml-backend-impl.h>

#include <cstdio>

#include "ggml/plugin.h"
#include "rowtide/log.h"

extern "C" __attribute__((visibility("default"))) ggml_backend_reg_t ggml_backend_init() {
  auto settings = rowtide::ggml::read_settings();
  const auto lowest = settings ? settings->log_level : rowtide::LogLevel::kInfo;
  rowtide::set_log_sink([lowest](rowtide::LogLevel level, std::string_view line) {
    if (level <= lowest) std::fputs(fmt::format("rowtide: {}\n", line).c_str(), stderr);
  });
  if (!settings) {
    rowtide::log_line(rowtide::LogLevel::kError, fmt::format("not serving: {}", settings.error().message));
    return nullptr;
  }
  return rowtide::ggml::registration(*std::move(settings));
}
