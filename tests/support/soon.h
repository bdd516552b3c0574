// Waiting for what another thread does: as short as it takes, and not for ever.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace rowtide {

/// True as soon as `holds` is; false when it is not within a time that no machine needs.
inline bool soon(const std::function<bool()>& holds) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// Long enough for another thread to do what it must not do, in the most cases: after it, a test that something did
/// not happen may pass wrongly but never fails wrongly.
inline void a_while() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

}  // namespace rowtide
