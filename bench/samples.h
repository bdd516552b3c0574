// Repeated measurements: the middle one, how far they lie apart, and how busy the machine was before.
#pragma once

#include <stdlib.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace rowtide::bench {

class Samples {
 public:
  void add(double value) { values_.insert(std::ranges::upper_bound(values_, value), value); }
  bool empty() const { return values_.empty(); }
  /// `share` 0 is the least, 0.5 the median, 1 the greatest.
  double at(double share) const {
    return values_[static_cast<std::size_t>(share * static_cast<double>(values_.size() - 1) + 0.5)];
  }
  double median() const { return at(0.5); }
  nlohmann::json json() const { return {{"median", median()}, {"least", at(0)}, {"most", at(1)}}; }

 private:
  std::vector<double> values_;  // ascending
};

/// Tasks that wanted a core in the last minute, as the kernel averages them: what disturbed a measurement that starts.
inline double load_average() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? load : -1;
}

}  // namespace rowtide::bench
