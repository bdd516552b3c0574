// Plans from options as a person gives them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "sizing/anatomy.h"
#include "sizing/plan.h"

namespace rowtide::sizing {

using Given = std::initializer_list<std::pair<std::string_view, std::string_view>>;

inline constexpr std::string_view kQwen = "Qwen3.8-Flash-Next", kSpark = "dgx-spark";
inline constexpr double kGB = 1e9;
inline constexpr double kGiB = 1024.0 * 1024 * 1024;

inline Model known(std::string_view name, std::string_view precision = "") {
  auto model = known_model(name, precision);
  EXPECT_TRUE(model) << (model ? "" : model.error().message);
  return model ? *std::move(model) : Model();
}

/// resolve() of those options, or the first error.
inline Result<Request> requested(Given given) {
  PlanOptions options;
  for (const auto& [name, value] : given) {
    if (auto set = set_plan_option(options, name, value); !set) return set.error();
  }
  return resolve(options);
}

inline Plan planned(Given given) {
  auto request = requested(given);
  if (!request) {
    ADD_FAILURE() << request.error().message;
    return {};
  }
  return make_plan(*request);
}

/// The message of the error that those options are; empty if they are none.
inline std::string refusal(Given given) {
  auto request = requested(given);
  if (request) return "";
  EXPECT_EQ(request.error().code, ErrorCode::kUsage) << request.error().message;
  return request.error().message;
}

/// Bytes of the first item whose name begins so; 0 if there is none.
inline double item(const Pool& pool, std::string_view name) {
  for (const PoolItem& one : pool.items) {
    if (one.name.starts_with(name)) return static_cast<double>(one.bytes);
  }
  return 0;
}

/// Of all items whose names begin so.
inline double items(const Pool& pool, std::string_view name) {
  double sum = 0;
  for (const PoolItem& one : pool.items) {
    if (one.name.starts_with(name)) sum += static_cast<double>(one.bytes);
  }
  return sum;
}

#define EXPECT_WITHIN(share, value, wanted) EXPECT_NEAR(value, wanted, (share) * (wanted))

}  // namespace rowtide::sizing
