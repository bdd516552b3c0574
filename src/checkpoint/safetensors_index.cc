#include "checkpoint/safetensors_index.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/json_events.h"
#include "checkpoint/lfs_pointer.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::size_t kFileNameBytesMax = 255;
constexpr std::string_view kWeightMap = "weight_map";

bool is_plain_name(std::string_view name) {
  return !name.empty() && name.size() <= kFileNameBytesMax && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

}  // namespace

class SafetensorsIndex::Visitor final : public JsonVisitor {
 public:
  explicit Visitor(SafetensorsIndex& index) : index_(index) {}

  void object_begins() override {
    if (depth() > 1) refuse("an object is not expected here");
  }

  bool name(std::string_view name) override {
    if (depth() == 1) {
      is_map_ = name == kWeightMap;
      return is_map_;
    }
    tensor_ = name;
    return true;
  }

  void scalar(const JsonScalar& value) override {
    if (depth() < 2) return refuse(value.described() + " stands where an object belongs");
    shard(value);
  }

 private:
  void shard(const JsonScalar& value) {
    if (value.kind != JsonScalar::Kind::kText || !is_plain_name(value.text)) {
      return refuse(value.described() + " is no name of a file beside the index");
    }
    if (index_.shards_.empty() || index_.shards_[last_] != value.text) {
      const auto next = static_cast<std::uint32_t>(index_.shards_.size());
      const auto known = numbers_.add(value.text, next);
      last_ = known.value_or(next);
      if (!known && next == TensorList::kFilesMax) {
        return refuse(fmt::format("more than {} files, the limit", TensorList::kFilesMax), ErrorCode::kUnsupported);
      }
      if (!known) index_.shards_.emplace_back(value.text);
    }
    index_.shard_by_name_.add(tensor_, last_);
  }

  SafetensorsIndex& index_;
  bool is_map_ = false;
  std::string tensor_;
  NameTable numbers_;  // of the shards
  std::uint32_t last_ = 0;
};

/// Looks for the tensors that are nowhere, or not in the file that the index names.
class SafetensorsIndex::MissingVisitor final : public JsonVisitor {
 public:
  explicit MissingVisitor(const TensorList& tensors) : tensors_(tensors) {}

  void object_begins() override {}
  bool name(std::string_view name) override {
    if (depth() == 1) return name == kWeightMap;
    tensor_ = name;
    return true;
  }
  void scalar(const JsonScalar& value) override {
    if (tensors_.find(tensor_)) return;
    if (count++ > 0) return;
    first = tensor_;
    shard = value.text;
  }

  std::size_t count = 0;
  std::string first, shard;

 private:
  const TensorList& tensors_;
  std::string tensor_;
};

Result<SafetensorsIndex> SafetensorsIndex::read(const io::File& file) {
  if (auto itself = refuse_lfs_pointer(file); !itself) return itself.error();
  SafetensorsIndex index;
  index.path_ = file.path();
  Visitor visitor(index);
  if (auto read = read_json(file, 0, file.bytes(), visitor); !read) return read.error();
  if (index.shards_.empty()) {
    return make_error(ErrorCode::kMalformed, "{}: its {} names no tensor: is it the index of safetensors files?",
                      file.path(), kWeightMap);
  }
  index.sort_shards();
  return index;
}

void SafetensorsIndex::sort_shards() {
  std::vector<std::uint32_t> order(shards_.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return shards_[a] < shards_[b]; });
  std::vector<std::string> sorted;
  ranks_.resize(order.size());
  for (const std::uint32_t number : order) {
    ranks_[number] = static_cast<std::uint32_t>(sorted.size());
    sorted.push_back(std::move(shards_[number]));
  }
  shards_ = std::move(sorted);
}

Result<void> SafetensorsIndex::check(const TensorList& tensors, const std::vector<SafetensorsFile>& files,
                                     const io::File& index) const {
  std::size_t found = 0;
  std::vector<std::size_t> found_of_file(files.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const SafetensorsTensor tensor = tensors[i];
    const auto number = shard_by_name_.find(tensor.name);
    if (!number) continue;
    if (const std::uint32_t rank = ranks_[*number]; rank != tensor.file) {
      return make_error(ErrorCode::kMismatch, "{}: tensor '{}' is said to lie in {}, but lies in {}", path_,
                        printable(tensor.name), files[rank].path, files[tensor.file].path);
    }
    ++found;
    ++found_of_file[tensor.file];
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (found_of_file[i] > 0) continue;
    return make_error(ErrorCode::kMismatch,
                      "{}: holds none of the tensors that {} names for it: a file of another "
                      "checkpoint",
                      files[i].path, path_);
  }
  if (found < shard_by_name_.size()) {
    MissingVisitor missing(tensors);
    if (auto read = read_json(index, 0, index.bytes(), missing); !read) return read.error();
    const std::string more = missing.count > 1 ? fmt::format(" (and {} more)", missing.count - 1) : "";
    return make_error(ErrorCode::kMismatch, "{}: tensor '{}'{} is said to lie in {}, but is in no file", path_,
                      printable(missing.first), more, printable(missing.shard));
  }
  return {};
}

}  // namespace rowtide::checkpoint
