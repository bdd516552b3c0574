#include "store/batch_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/checked.h"
#include "base/error.h"

namespace rowtide {

Result<RowMap> RowMap::make(const Table& table) {
  const auto encoded = row_bytes(table.row_format, table.row_values);
  if (!encoded || *encoded != table.row_bytes || *encoded == 0) {
    return make_error(ErrorCode::kUsage, "table {}: {} values as {} are not {} bytes a row", table.name,
                      table.row_values, row_format_name(table.row_format), table.row_bytes);
  }
  if (table.rows == 0 || table.rows > Request::kTableRowsMax) {
    return make_error(ErrorCode::kUsage, "table {}: {} rows; 1 to {} can be served", table.name, table.rows,
                      Request::kTableRowsMax);
  }
  if (table.components.empty() || table.components.size() > kComponentsMax) {
    return make_error(ErrorCode::kUsage, "table {}: {} components; 1 to {} can be served", table.name,
                      table.components.size(), kComponentsMax);
  }
  RowMap map;
  std::uint64_t bytes_left = table.row_bytes;
  for (const Component& component : table.components) {
    if (component.row_bytes == 0 || component.row_bytes > bytes_left) break;
    bytes_left -= component.row_bytes;
    if (auto added = map.add(table, component); !added) return added.error();
  }
  if (bytes_left != 0 || map.parts_.size() != table.components.size()) {
    return make_error(ErrorCode::kUsage, "table {}: its components do not make up a row of {} bytes", table.name,
                      table.row_bytes);
  }
  if (map.parts_.size() > 1 && table.row_bytes > table.row_values * sizeof(std::uint16_t)) {
    return make_error(ErrorCode::kUnsupported, "table {}: rows of {} are served from one place, not from {}",
                      table.name, row_format_name(table.row_format), map.parts_.size());
  }
  if (table.scale != 1 && !row_format_has_scale(table.row_format)) {
    return make_error(ErrorCode::kUsage, "table {}: rows of {} have no scale, but one of {} is given", table.name,
                      row_format_name(table.row_format), table.scale);
  }
  return map;
}

Result<void> RowMap::add(const Table& table, const Component& component) {
  const std::uint64_t at = parts_.empty() ? 0 : parts_.back().at + parts_.back().bytes;
  Part& part = parts_.emplace_back(Part{at, component.row_bytes, {}});
  std::uint64_t next_row = 0;
  for (const Extent& extent : component.extents) {
    const auto bytes = checked_mul(extent.rows, component.row_bytes);
    if (extent.first_row != next_row || extent.rows == 0 || !bytes || !checked_add(extent.offset, *bytes)) {
      return make_error(ErrorCode::kUsage, "table {}: the extents of its {} leave row {} out", table.name,
                        component.name, next_row);
    }
    next_row += extent.rows;
    auto known = std::find(paths_.begin(), paths_.end(), extent.path);
    if (known == paths_.end()) known = paths_.insert(known, extent.path);
    part.pieces.push_back(
        {extent.first_row, next_row, extent.offset, static_cast<std::uint32_t>(known - paths_.begin())});
  }
  if (next_row != table.rows) {
    return make_error(ErrorCode::kUsage, "table {}: the extents of its {} hold {} of {} rows", table.name,
                      component.name, next_row, table.rows);
  }
  return {};
}

RowMap::Place RowMap::Part::place(RowId row) const {
  const Piece* piece = pieces.data();
  if (pieces.size() > 1) {
    piece = &*std::upper_bound(pieces.begin(), pieces.end(), row,
                               [](RowId wanted, const Piece& candidate) { return wanted < candidate.end_row; });
  }
  return {piece->file, piece->offset + (row - piece->first_row) * bytes};
}

namespace {

constexpr std::size_t kRadixRowsMin = 512;  // below, comparing is faster than counting
constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = 1u << kDigitBits;

/// One stable counting pass over bits [shift, shift + kDigitBits).
void radix_pass(std::span<const Request> from, std::span<Request> to, int shift) {
  std::array<std::uint32_t, kDigits> begin{};
  for (const Request& request : from) ++begin[(request.key() >> shift) & (kDigits - 1)];
  std::uint32_t sum = 0;
  for (std::uint32_t& count : begin) sum += std::exchange(count, sum);
  for (const Request& request : from) to[begin[(request.key() >> shift) & (kDigits - 1)]++] = request;
}

}  // namespace

void BatchPlan::sort(std::uint64_t table_rows) {
  if (requests_.size() < kRadixRowsMin) {
    std::sort(requests_.begin(), requests_.end(), [](Request a, Request b) { return a.key() < b.key(); });
    return;
  }
  scratch_.resize(requests_.size());
  const auto row_bits = static_cast<int>(std::bit_width(table_rows - 1));
  for (int shift = 0; shift < row_bits; shift += kDigitBits) {
    radix_pass(requests_, scratch_, Request::kPositionBits + shift);
    requests_.swap(scratch_);
  }
}

void BatchPlan::make(const RowMap& map, std::uint64_t table_rows, std::uint32_t block_bytes,
                     std::uint32_t run_bytes_max) {
  sort(table_rows);
  for (std::uint32_t component = 0; component < map.parts().size(); ++component) {
    unique_rows_ = 0;  // the same for each
    add_runs(map.parts()[component], component, block_bytes, run_bytes_max);
  }
}

void BatchPlan::add_runs(const RowMap::Part& part, std::uint32_t component, std::uint32_t block_bytes,
                         std::uint32_t run_bytes_max) {
  const std::uint64_t block_mask = block_bytes - 1;
  const std::size_t first_run = runs_.size();
  for (std::uint32_t i = 0; i < requests_.size(); ++i) {
    if (i > 0 && requests_[i].row() == requests_[i - 1].row()) {
      runs_.back().end_request = i + 1;
      continue;
    }
    ++unique_rows_;
    const RowMap::Place place = part.place(requests_[i].row());
    const std::uint64_t begin = place.offset & ~block_mask;
    const std::uint64_t end = (place.offset + part.bytes + block_mask) & ~block_mask;
    Run* last = runs_.size() == first_run ? nullptr : &runs_.back();
    const bool touches =
        last != nullptr && last->file == place.file && begin >= last->offset && begin <= last->offset + last->bytes;
    const std::uint64_t covered = touches ? last->offset + last->bytes : begin;
    blocks_ += (end - std::min(std::max(covered, begin), end)) / block_bytes;
    if (touches && end - last->offset <= run_bytes_max) {
      last->bytes = static_cast<std::uint32_t>(std::max(covered, end) - last->offset);
      last->end_request = i + 1;
    } else {
      runs_.push_back({place.file, static_cast<std::uint32_t>(end - begin), begin, i, i + 1, component});
    }
  }
}

std::uint64_t BatchPlan::memory_bytes() const {
  return (requests_.capacity() + scratch_.capacity()) * sizeof(Request) + runs_.capacity() * sizeof(Run);
}

}  // namespace rowtide
