#include "checkpoint/safetensors_header.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <string>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/json_events.h"
#include "checkpoint/lfs_pointer.h"

namespace rowtide::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are copied as they lie in the file");

constexpr std::size_t kLengthBytes = 8;
constexpr std::size_t kNameBytesMax = 4'096;  // of one tensor
constexpr std::string_view kMetadata = "__metadata__";

/// Takes the tensors over into the list, each checked by itself.
class HeaderVisitor final : public JsonVisitor {
 public:
  HeaderVisitor(std::uint64_t data_start, std::uint64_t data_bytes, const std::vector<SafetensorsFile>& before,
                TensorList& list)
      : data_start_(data_start), data_bytes_(data_bytes), before_(before), list_(list) {}

  void object_begins() override {
    if (depth() >= 2) refuse("an object is not expected here");
    if (depth() == 1) tensor_begins();
  }

  bool name(std::string_view name) override {
    if (depth() == 1) {
      name_ = name;
      if (name.size() > kNameBytesMax) {
        refuse(fmt::format("a name of {} bytes, more than the limit of {}", name.size(), kNameBytesMax),
               ErrorCode::kUnsupported);
      }
      return true;
    }
    if (is_metadata()) return true;
    field_ = name == "dtype"          ? Field::kDtype
             : name == "shape"        ? Field::kShape
             : name == "data_offsets" ? Field::kOffsets
                                      : Field::kOther;
    return field_ != Field::kOther;
  }

  void object_ends() override {
    if (depth() == 1 && !is_metadata()) tensor_ends();
  }

  void array_begins() override {
    if (depth() != 2 || is_metadata() || field_ == Field::kDtype) return refuse("a list is not expected here");
    (field_ == Field::kShape ? has_shape_ : has_offsets_) = true;
  }

  void scalar(const JsonScalar& value) override {
    if (is_metadata()) return metadata_value(value);
    if (depth() < 2) return refuse(value.described() + " stands where a tensor's object belongs");
    if (field_ == Field::kDtype) return dtype_value(value);
    if (depth() == 2) return refuse(value.described() + " stands where a list belongs");
    if (value.kind != JsonScalar::Kind::kUnsigned) return refuse(value.described() + " is no whole number from 0 on");
    if (field_ == Field::kShape) {
      if (shape_.size() == TensorList::kRankMax) {
        return refuse(fmt::format("more than {} dimensions, the limit", TensorList::kRankMax), ErrorCode::kUnsupported);
      }
      shape_.push_back(value.unsigned_value);
    } else {
      if (offsets_ == offset_.size()) return refuse("more than two numbers");
      offset_[offsets_++] = value.unsigned_value;
    }
  }

 private:
  enum class Field { kDtype, kShape, kOffsets, kOther };

  bool is_metadata() const { return depth() > 0 && name_ == kMetadata; }

  void metadata_value(const JsonScalar& value) {
    const bool is_absent = depth() == 1 && value.kind == JsonScalar::Kind::kNull;  // as some writers leave it
    if (is_absent || (depth() == 2 && value.kind == JsonScalar::Kind::kText)) return;
    refuse(value.described() + (depth() == 1 ? " stands where an object belongs" : " stands where a text belongs"));
  }

  void dtype_value(const JsonScalar& value) {
    if (value.kind != JsonScalar::Kind::kText) return refuse(value.described() + " is no name of a dtype");
    has_dtype_ = true;
    dtype_ = dtype_of(value.text);
  }

  void tensor_begins() {
    has_dtype_ = has_shape_ = has_offsets_ = false;
    dtype_ = Dtype::kUnknown;
    shape_.clear();
    offsets_ = 0;
  }

  void tensor_ends() {
    if (!has_dtype_) return refuse("has no dtype");
    if (!has_shape_) return refuse("has no shape");
    if (!has_offsets_ || offsets_ < offset_.size()) return refuse("data_offsets are not two numbers");
    const auto [begin, end] = offset_;
    if (begin > end) return refuse(fmt::format("data_offsets [{}, {}] go backwards", begin, end));
    if (end > data_bytes_) {
      return refuse(
          fmt::format("data_offsets [{}, {}] pass the end of the file, whose data has {} bytes (cut off, or "
                      "damaged)",
                      begin, end, data_bytes_));
    }
    if (dtype_ != Dtype::kUnknown && !fits(end - begin)) return;
    SafetensorsTensor tensor;
    tensor.name = name_;
    tensor.dtype = dtype_;
    tensor.shape = shape_;
    tensor.file = static_cast<std::uint32_t>(before_.size());
    tensor.offset = data_start_ + begin;
    tensor.bytes = end - begin;
    const auto other = list_.add(tensor);
    if (!other) return refuse(other.error().message, other.error().code);
    if (*other) refuse(fmt::format("occurs twice, also in {}", before_[list_[**other].file].path));
  }

  bool fits(std::uint64_t bytes) {
    std::optional<std::uint64_t> bits = dtype_bits(dtype_);
    for (const std::uint64_t dimension : shape_) bits = bits ? checked_mul(*bits, dimension) : bits;
    if (bits && *bits % 8 == 0 && *bits / 8 == bytes) return true;
    const std::string what = fmt::format("shape [{}] of {}", fmt::join(shape_, ", "), dtype_name(dtype_));
    if (!bits) {
      refuse(what + " has more bytes than 64 bits can count");
    } else if (*bits % 8 != 0) {
      refuse(what + " fills no whole number of bytes");
    } else {
      refuse(fmt::format("data_offsets [{}, {}] are {} bytes, but {} takes {}", offset_[0], offset_[1], bytes, what,
                         *bits / 8));
    }
    return false;
  }

  const std::uint64_t data_start_;
  const std::uint64_t data_bytes_;
  const std::vector<SafetensorsFile>& before_;
  TensorList& list_;

  std::string name_;
  Field field_ = Field::kOther;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
  Dtype dtype_ = Dtype::kUnknown;
  std::vector<std::uint64_t> shape_;
  std::array<std::uint64_t, 2> offset_{};
  std::size_t offsets_ = 0;  // read so far
};

/// How many bytes the header has, from the file's first eight; checked against the file and the limit.
Result<std::uint64_t> read_header_length(const io::File& file) {
  if (file.bytes() < kLengthBytes) {
    return make_error(ErrorCode::kMalformed,
                      "{}: has {} bytes, a safetensors file begins with 8 that tell its header's", file.path(),
                      file.bytes());
  }
  std::array<std::byte, kLengthBytes + 1> start{};
  const std::size_t at_hand = std::min<std::uint64_t>(start.size(), file.bytes());
  if (auto read = file.read(0, std::span(start).first(at_hand)); !read) return read.error();
  std::uint64_t length = 0;
  std::memcpy(&length, start.data(), kLengthBytes);
  if (length > file.bytes() - kLengthBytes) {
    return make_error(ErrorCode::kMalformed,
                      "{}: tells of a header of {} bytes, the file has {} (cut off, or no safetensors file)",
                      file.path(), length, file.bytes());
  }
  if (length > kSafetensorsHeaderBytesMax) {
    return make_error(ErrorCode::kUnsupported, "{}: tells of a header of {} bytes, more than the format's limit of {}",
                      file.path(), length, kSafetensorsHeaderBytesMax);
  }
  if (length == 0 || start[kLengthBytes] != std::byte{'{'}) {
    return make_error(ErrorCode::kMalformed, "{}: its header is no JSON object: it does not begin with '{{'",
                      file.path());
  }
  return length;
}

std::string described(const SafetensorsTensor& tensor, std::uint64_t data_start) {
  return fmt::format("tensor '{}' (data_offsets [{}, {}])", printable(tensor.name), tensor.offset - data_start,
                     tensor.offset - data_start + tensor.bytes);
}

/// The tensors of the list from `first` on cover the data from `data_start` to the file's end, each byte once.
Result<void> check_cover(const io::File& file, const TensorList& list, std::size_t first, std::uint64_t data_start) {
  const auto start_and_end = [&](std::uint32_t index) {
    const SafetensorsTensor tensor = list[index];
    return std::pair(tensor.offset, tensor.offset + tensor.bytes);
  };
  std::vector<std::uint32_t> order(list.size() - first);
  std::iota(order.begin(), order.end(), static_cast<std::uint32_t>(first));
  const auto before = [&](auto a, auto b) { return start_and_end(a) < start_and_end(b); };
  if (!std::is_sorted(order.begin(), order.end(), before)) std::sort(order.begin(), order.end(), before);

  std::uint64_t covered = data_start;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const SafetensorsTensor tensor = list[order[i]];
    if (tensor.offset < covered) {
      return make_error(ErrorCode::kMalformed, "{}: {} overlaps {}", file.path(), described(tensor, data_start),
                        described(list[order[i - 1]], data_start));
    }
    if (tensor.offset > covered) {
      return make_error(ErrorCode::kMalformed, "{}: a hole of {} bytes, which belong to no tensor, lies before {}",
                        file.path(), tensor.offset - covered, described(tensor, data_start));
    }
    covered = tensor.offset + tensor.bytes;
  }
  if (covered == file.bytes()) return {};
  return make_error(ErrorCode::kMalformed,
                    "{}: the last {} bytes belong to no tensor: the file is longer than its header "
                    "tells",
                    file.path(), file.bytes() - covered);
}

}  // namespace

Result<SafetensorsFile> read_safetensors_header(const io::File& file, const std::vector<SafetensorsFile>& before,
                                                TensorList& list) {
  if (auto itself = refuse_lfs_pointer(file); !itself) return itself.error();
  const auto length = read_header_length(file);
  if (!length) return length.error();
  const std::uint64_t data_start = kLengthBytes + *length;
  const std::size_t first = list.size();
  HeaderVisitor visitor(data_start, file.bytes() - data_start, before, list);
  if (auto read = read_json(file, kLengthBytes, *length, visitor); !read) return read.error();
  if (auto covered = check_cover(file, list, first, data_start); !covered) return covered.error();
  return SafetensorsFile{file.path(), file.bytes(), data_start, file.stamp()};
}

}  // namespace rowtide::checkpoint
