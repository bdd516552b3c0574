// A trace of token ids as a cache sees it: batches of bundles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "rowtide/addressing.h"

namespace rowtide::cli {

using BundleNumber = std::uint32_t;

/// A bundle that a batch asks for, `count` times.
struct Touch {
  BundleNumber bundle;
  std::uint32_t count;
};

/// Distinct bundles have numbers from 0 on, in the order of their first lookup.
class BundleTrace {
 public:
  /// Cuts `tokens`, one sequence, into batches of `chunk` tokens. Throws a Failure where the trace has 2^32 lookups or
  /// more. Cost: about 0.3 us a lookup, 12 bytes a lookup and 72 a distinct bundle.
  BundleTrace(const Addressing& addressing, std::span<const std::int32_t> tokens, std::size_t chunk);

  /// Of a trace that was made up: each batch lists the numbers of its bundles, repeats included; rows_per_bundle row
  /// ids for each number.
  BundleTrace(std::vector<RowId> rows, std::uint32_t rows_per_bundle,
              const std::vector<std::vector<BundleNumber>>& batches);

  std::uint32_t rows_per_bundle() const { return rows_per_bundle_; }
  std::uint64_t lookups() const { return lookups_; }
  std::size_t distinct() const { return rows_.size() / rows_per_bundle_; }
  std::span<const RowId> rows(BundleNumber bundle) const {
    return std::span(rows_).subspan(std::size_t{bundle} * rows_per_bundle_, rows_per_bundle_);
  }

  std::size_t batches() const { return ends_.size(); }
  /// What batch `i` asks for: each bundle once, in the order first asked.
  std::span<const Touch> batch(std::size_t i) const {
    return std::span(touches_).subspan(batch_start(i), ends_[i] - batch_start(i));
  }
  /// All batches in a row; batch i begins at batch_start(i).
  std::span<const Touch> touches() const { return touches_; }
  std::size_t batch_start(std::size_t i) const { return i == 0 ? 0 : ends_[i - 1]; }

 private:
  class Numbers;
  void add_batch(std::span<const BundleNumber> asked);

  std::uint32_t rows_per_bundle_;
  std::uint64_t lookups_ = 0;
  std::vector<RowId> rows_;
  std::vector<Touch> touches_;
  std::vector<std::size_t> ends_;
  std::vector<std::size_t> last_touch_;  // of each bundle, in touches_, while batches are added
};

/// The token ids of a file of int32, little-endian. Throws a Failure that names it: one that cannot be read, is empty
/// or ends within an id.
std::vector<std::int32_t> read_token_trace(const std::string& path);

}  // namespace rowtide::cli
