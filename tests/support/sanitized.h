// Whether this program is built with a sanitizer: it is slow then, and holds memory of its own.
#pragma once

namespace rowtide {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace rowtide
