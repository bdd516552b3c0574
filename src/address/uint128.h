// The compiler's 128-bit integer under a name that -Wpedantic accepts.
#pragma once

namespace rowtide {

__extension__ typedef unsigned __int128 Uint128;

}  // namespace rowtide
