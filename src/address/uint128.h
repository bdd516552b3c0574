// The compiler's 128-bit integer under a name that -Wpedantic accepts.
#pragma once

namespace rowtide {

__extension__ typedef unsigned __int128 Uint128;  // NOLINT(modernize-use-using): takes no __extension__

}  // namespace rowtide
