// Whether this program, built for another machine, runs under an emulator of user processes, as tests/CMakeLists.txt
// says. It carries out system calls on the host's kernel, but not all of them: what is only advice may be dropped,
// limits are not handed on, nothing can be traced, and what the kernel tells of the process is of the emulator.
#pragma once

#include <cstdlib>

namespace rowtide {

inline bool is_emulated() { return std::getenv("ROWTIDE_EMULATED") != nullptr; }

}  // namespace rowtide
