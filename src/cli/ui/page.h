// The files of the Explorer page (page/), in the program.
#pragma once

#include <span>
#include <string_view>

namespace rowtide::cli::ui {

struct PageFile {
  std::string_view name;  // "index.html"
  std::string_view text;
};
std::span<const PageFile> page_files();

}  // namespace rowtide::cli::ui
