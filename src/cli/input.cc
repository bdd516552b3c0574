#include "cli/input.h"

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/failure.h"
#include "cli/json_output.h"
#include "rowtide/byte_size.h"

namespace rowtide::cli {
namespace {

std::int64_t parse_id(std::string_view option, std::string_view piece) {
  std::int64_t id = 0;
  auto [end, error] = std::from_chars(piece.data(), piece.data() + piece.size(), id);
  if (error == std::errc() && end == piece.data() + piece.size()) return id;
  throw usage_failure("{}: '{}' is not an id; give whole numbers of at most 64 bits, separated by commas or spaces",
                      option, piece.substr(0, 64));
}

}  // namespace

std::uint64_t parse_size(std::string_view option, std::string_view given) {
  const auto bytes = parse_byte_size(given);
  if (!bytes) throw usage_failure("{}: {}", option, bytes.error().message);
  if (*bytes == 0) throw usage_failure("{}: '{}' is no bytes at all; give a size such as 64MiB", option, given);
  return *bytes;
}

std::vector<std::string_view> split_list(std::string_view list) {
  std::vector<std::string_view> pieces;
  while (true) {
    std::size_t comma = list.find(',');
    pieces.push_back(list.substr(0, comma));
    if (comma == std::string_view::npos) return pieces;
    list.remove_prefix(comma + 1);
  }
}

std::vector<std::uint64_t> parse_sizes(std::string_view option, std::string_view list) {
  std::vector<std::uint64_t> sizes;
  for (std::string_view piece : split_list(list)) sizes.push_back(parse_size(option, piece));
  return sizes;
}

std::vector<std::int64_t> parse_ids(std::string_view option, std::string_view list) {
  constexpr std::string_view kSeparators = ", \t\r\n";
  std::vector<std::int64_t> ids;
  std::size_t start = list.find_first_not_of(kSeparators);
  while (start != std::string_view::npos) {
    std::size_t end = list.find_first_of(kSeparators, start);
    ids.push_back(parse_id(option, list.substr(start, end - start)));
    start = list.find_first_not_of(kSeparators, end);
  }
  return ids;
}

std::string read_utf8(const std::string& path) {
  std::string text = read_text(path);
  try {
    (void)Json(text).dump();  // refuses what is no UTF-8
  } catch (const Json::type_error&) {
    throw Failure(kExitRefused, "malformed", fmt::format("{}: holds no UTF-8 text", path));
  }
  return text;
}

std::string read_text(const std::string& path, std::size_t longest) {
  auto close = [](std::FILE* file) {
    if (file != stdin) std::fclose(file);
  };
  bool from_input = path == "-";
  std::unique_ptr<std::FILE, decltype(close)> file(from_input ? stdin : std::fopen(path.c_str(), "rbe"), close);
  std::string name = from_input ? "standard input" : path;
  if (!file) {
    const int error = errno;
    const char* const code = error == ENOENT || error == ENOTDIR ? "not_found" : "io";
    throw Failure(kExitRefused, code, fmt::format("{}: cannot be opened: {}", name, errno_text(error)));
  }

  std::string text;
  std::array<char, 1 << 16> buffer;
  for (std::size_t bytes = buffer.size(); bytes == buffer.size();) {
    bytes = std::fread(buffer.data(), 1, buffer.size(), file.get());
    text.append(buffer.data(), bytes);
    if (text.size() > longest) {
      throw Failure(kExitRefused, "too_long", fmt::format("{}: more than {} bytes", name, longest));
    }
  }
  if (std::ferror(file.get()) != 0) {
    throw Failure(kExitRefused, "io", fmt::format("{}: cannot be read: {}", name, errno_text(errno)));
  }
  return text;
}

}  // namespace rowtide::cli
