#include "cli/bench/cache_policy.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/nearest.h"
#include "cli/bench/cache_foresight.h"
#include "cli/bench/cache_recent.h"
#include "cli/bench/cache_rowtide.h"
#include "cli/bench/cache_s3fifo.h"
#include "cli/failure.h"

namespace rowtide::cli {
namespace {

using Policy = std::unique_ptr<CachePolicy>;

/// A policy that has no settings.
template <class Kind>
Policy plain(const CacheCase& of, std::string_view settings) {
  if (!settings.empty()) throw usage_failure("--policy: only s3fifo has settings, not '{}'", settings);
  return std::make_unique<Kind>(of);
}

Policy s3fifo(const CacheCase& of, std::string_view settings) {
  return std::make_unique<S3Fifo>(of, parse_s3fifo(settings));
}

struct NamedPolicy {
  std::string_view name;
  Policy (*make)(const CacheCase& of, std::string_view settings);
};
constexpr std::array<NamedPolicy, 6> kPolicies = {{
    {"rowtide", plain<RowtideCache>},
    {"s3fifo", s3fifo},
    {"lru", plain<LruCache>},
    {"static", plain<StaticSet>},
    {"page_cache", plain<PageCache>},
    {"optimum", plain<OptimalCache>},
}};

}  // namespace

std::vector<std::string> cache_policies() {
  std::vector<std::string> names;
  for (const NamedPolicy& policy : kPolicies) names.emplace_back(policy.name);
  return names;
}

Policy make_cache_policy(const std::string& name, const CacheCase& of) {
  std::string_view kind = std::string_view(name).substr(0, name.find(':'));
  std::string_view settings = std::string_view(name).substr(std::min(kind.size() + 1, name.size()));
  auto policy = std::ranges::find(kPolicies, kind, &NamedPolicy::name);
  if (policy != kPolicies.end()) return policy->make(of, settings);
  throw usage_failure("--policy: unknown policy '{}'{}", kind, suggestion(kind, cache_policies()));
}

void check_cache_policy(const std::string& name) {
  BundleTrace nothing({}, 1, {});
  make_cache_policy(name, {nothing, Table{}, 0});
}

double hit_share(const BundleTrace& trace, CachePolicy& policy) {
  std::uint64_t asked = 0, served = 0;
  for (std::size_t i = 0; i < trace.batches(); ++i) {
    std::uint64_t found = policy.serve(trace.batch(i));
    if (i < policy.first_counted_batch()) continue;
    std::uint64_t lookups = 0;
    for (const Touch& touch : trace.batch(i)) lookups += touch.count;
    asked += lookups * trace.rows_per_bundle();
    served += (lookups - trace.batch(i).size()) * trace.rows_per_bundle() + found;
  }
  return asked == 0 ? 0 : static_cast<double>(served) / static_cast<double>(asked);
}

}  // namespace rowtide::cli
