// What a person hands over: lists of ids, and text in files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rowtide::cli {

/// Whole numbers separated by commas or white space; a sign is allowed. Throws a usage Failure that names `option` and
/// the piece that is no number of 64 bits.
std::vector<std::int64_t> parse_ids(std::string_view option, std::string_view list);

/// parse_byte_size() (rowtide/byte_size.h). Throws a usage Failure that names `option` for what that refuses, and for
/// 0.
std::uint64_t parse_size(std::string_view option, std::string_view given);

/// What stands between the commas of a list, empty pieces included.
std::vector<std::string_view> split_list(std::string_view list);

/// parse_size() of each piece of a list.
std::vector<std::uint64_t> parse_sizes(std::string_view option, std::string_view list);

/// The whole of a file, or of standard input for "-". Throws a Failure: a file that is not there (not_found) or
/// cannot be read (io), or one of more than `longest` bytes.
std::string read_text(const std::string& path, std::size_t longest = std::size_t{64} << 20);
/// The same, of a file that must hold UTF-8.
std::string read_utf8(const std::string& path);

}  // namespace rowtide::cli
