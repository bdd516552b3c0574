#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <string>

namespace rowtide::cli {

std::size_t page_width(std::size_t least, std::size_t most) {
  winsize window{};
  const bool told = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col != 0;
  return told ? std::clamp<std::size_t>(window.ws_col, least, most) : most;
}

bool wants_colours() {
  const char* unwanted = std::getenv("NO_COLOR");
  return ::isatty(STDOUT_FILENO) == 1 && (unwanted == nullptr || *unwanted == '\0');
}

bool shows_utf8() {
  // The variables themselves: their locale need not be installed for the terminal to show it.
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale(value);
    std::ranges::transform(locale, locale.begin(), [](unsigned char c) { return std::tolower(c); });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

}  // namespace rowtide::cli
