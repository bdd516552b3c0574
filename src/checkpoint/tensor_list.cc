#include "checkpoint/tensor_list.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "base/error.h"
#include "base/printable.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 18;

}  // namespace

SafetensorsTensor TensorList::operator[](std::size_t index) const {
  assert(index < entries_.size());
  const Entry& entry = entries_[index];
  SafetensorsTensor tensor;
  tensor.name = {entry.name, entry.name_bytes};
  tensor.dtype = entry.dtype;
  tensor.shape = std::span(dimensions_).subspan(entry.shape_start, entry.rank);
  tensor.file = entry.file;
  tensor.offset = entry.offset;
  tensor.bytes = entry.bytes;
  return tensor;
}

std::optional<SafetensorsTensor> TensorList::find(std::string_view name) const {
  const auto index = by_name_.find(name);
  if (!index || (*this)[*index].name != name) return std::nullopt;
  return (*this)[*index];
}

Result<std::optional<std::uint32_t>> TensorList::add(const SafetensorsTensor& tensor) {
  const auto passes = [&](std::string_view what, std::size_t limit) {
    return make_error(ErrorCode::kUnsupported, "with tensor '{}' there are more than {} {}, the limit",
                      printable(tensor.name), limit, what);
  };
  if (entries_.size() == kTensorsMax) return passes("tensors", kTensorsMax);
  if (tensor.name.size() > kNameBytesMax - name_bytes_) return passes("bytes of names", kNameBytesMax);
  if (tensor.shape.size() > kDimensionsMax - dimensions_.size()) return passes("dimensions", kDimensionsMax);
  assert(tensor.shape.size() <= kRankMax && tensor.file < kFilesMax);

  const auto other = by_name_.add(tensor.name, static_cast<std::uint32_t>(entries_.size()));
  if (other) return other;
  Entry entry;
  entry.name = keep(tensor.name);
  entry.offset = tensor.offset;
  entry.bytes = tensor.bytes;
  entry.name_bytes = static_cast<std::uint32_t>(tensor.name.size());
  entry.shape_start = static_cast<std::uint32_t>(dimensions_.size());
  entry.file = static_cast<std::uint16_t>(tensor.file);
  entry.rank = static_cast<std::uint8_t>(tensor.shape.size());
  entry.dtype = tensor.dtype;
  entries_.push_back(entry);
  dimensions_.insert(dimensions_.end(), tensor.shape.begin(), tensor.shape.end());
  return std::optional<std::uint32_t>();
}

const char* TensorList::keep(std::string_view name) {
  if (name.size() > block_bytes_ - block_used_) {
    block_bytes_ = std::max(kBlockBytes, name.size());
    block_used_ = 0;
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_bytes_));
  }
  char* kept = blocks_.back().get() + block_used_;
  if (!name.empty()) std::memcpy(kept, name.data(), name.size());
  block_used_ += name.size();
  name_bytes_ += name.size();
  return kept;
}

}  // namespace rowtide::checkpoint
