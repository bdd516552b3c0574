// The findings as a page for people.
#pragma once

#include <cstdint>
#include <string>

#include "cli/doctor/finding.h"

namespace rowtide::cli::doctor {

/// Groups one after the other; what is not ok with its meaning and what mends it, in lines of at most `width` columns.
/// `colours`: the levels in colour, for a terminal.
std::string page_of(const Findings& findings, std::uint64_t suggested_memory_bytes, bool colours, std::size_t width);

}  // namespace rowtide::cli::doctor
