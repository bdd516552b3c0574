// Whether this program is built with a sanitizer: it is slow then, and holds memory of its own.
#pragma once

#include "support/emulated.h"

namespace rowtide {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

/// So that tests which do the same over and over do it less often.
inline bool is_slow() { return kSanitized || is_emulated(); }

}  // namespace rowtide
