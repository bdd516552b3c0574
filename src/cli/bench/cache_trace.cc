#include "cli/bench/cache_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "cli/failure.h"
#include "cli/input.h"

namespace rowtide::cli {

/// Finds a bundle's number by its row ids, all of which are compared. Open addressing; at most half full.
class BundleTrace::Numbers {
 public:
  explicit Numbers(BundleTrace& trace) : trace_(trace), slots_(1 << 16, kFree) {}

  BundleNumber number_of(std::span<const RowId> rows) {
    if (2 * trace_.distinct() >= slots_.size()) grow();
    std::size_t slot = slot_of(rows);
    if (slots_[slot] == kFree) {
      slots_[slot] = static_cast<BundleNumber>(trace_.distinct());
      trace_.rows_.insert(trace_.rows_.end(), rows.begin(), rows.end());
    }
    return slots_[slot];
  }

 private:
  static constexpr BundleNumber kFree = std::numeric_limits<BundleNumber>::max();

  std::size_t slot_of(std::span<const RowId> rows) const {
    std::uint64_t mix = 0;
    for (RowId row : rows) mix = std::rotl(mix ^ row, 29) * 0x9E3779B97F4A7C15;
    std::size_t mask = slots_.size() - 1, slot = (mix >> 20) & mask;
    while (slots_[slot] != kFree && !std::ranges::equal(trace_.rows(slots_[slot]), rows)) slot = (slot + 1) & mask;
    return slot;
  }

  void grow() {
    std::vector<BundleNumber> smaller(slots_.size() * 2, kFree);
    slots_.swap(smaller);
    for (BundleNumber number : smaller) {
      if (number != kFree) slots_[slot_of(trace_.rows(number))] = number;
    }
  }

  BundleTrace& trace_;
  std::vector<BundleNumber> slots_;
};

BundleTrace::BundleTrace(const Addressing& addressing, std::span<const std::int32_t> tokens, std::size_t chunk)
    : rows_per_bundle_(addressing.heads_per_order()) {
  if (tokens.size() * addressing.orders().size() > std::numeric_limits<std::uint32_t>::max()) {
    throw Failure(kExitRefused, "too_long", fmt::format("the trace has {} tokens, too many to hold", tokens.size()));
  }
  Numbers numbers(*this);
  History history = addressing.start();
  std::vector<TokenId> ids;
  std::vector<RowId> rows;
  std::vector<BundleNumber> asked;
  for (std::size_t first = 0; first < tokens.size(); first += chunk) {
    auto batch = tokens.subspan(first, std::min(chunk, tokens.size() - first));
    ids.assign(batch.begin(), batch.end());
    rows.resize(ids.size() * addressing.rows_per_token());
    addressing.rows(ids, history, rows);
    asked.clear();
    for (std::size_t row = 0; row < rows.size(); row += rows_per_bundle_) {
      asked.push_back(numbers.number_of(std::span(rows).subspan(row, rows_per_bundle_)));
    }
    add_batch(asked);
  }
}

BundleTrace::BundleTrace(std::vector<RowId> rows, std::uint32_t rows_per_bundle,
                         const std::vector<std::vector<BundleNumber>>& batches)
    : rows_per_bundle_(rows_per_bundle), rows_(std::move(rows)) {
  for (const auto& batch : batches) add_batch(batch);
}

void BundleTrace::add_batch(std::span<const BundleNumber> asked) {
  constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();
  std::size_t start = touches_.size();
  last_touch_.resize(distinct(), kNever);
  for (BundleNumber bundle : asked) {
    std::size_t& last = last_touch_[bundle];
    if (last != kNever && last >= start) {
      ++touches_[last].count;
    } else {
      last = touches_.size();
      touches_.push_back({bundle, 1});
    }
  }
  lookups_ += asked.size();
  ends_.push_back(touches_.size());
}

std::vector<std::int32_t> read_token_trace(const std::string& path) {
  constexpr std::size_t kLongest = std::size_t{1} << 32;
  std::string bytes = read_text(path, kLongest);
  std::vector<std::int32_t> tokens(bytes.size() / sizeof(std::int32_t));
  if (tokens.empty() || bytes.size() % sizeof(std::int32_t) != 0) {
    throw Failure(
        kExitRefused, "malformed",
        fmt::format("{}: has {} bytes; a trace is token ids of 4 bytes, int32 little-endian (`scripts/corpora.sh "
                    "trace` makes one from text)",
                    path, bytes.size()));
  }
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(tokens.data(), bytes.data(), bytes.size());
  return tokens;
}

}  // namespace rowtide::cli
