// Names that come from files, made fit for an error message.
#pragma once

#include <string>
#include <string_view>

namespace rowtide {

/// Whether `text` is printable ASCII throughout.
bool is_printable(std::string_view text);

/// `text` with every byte outside printable ASCII written as \xNN, cut after 160 bytes ("..." follows).
std::string printable(std::string_view text);

/// `text` with every control character written as \xNN, the rest, UTF-8 too, as it is: what a terminal may be given.
std::string without_controls(std::string_view text);

}  // namespace rowtide
