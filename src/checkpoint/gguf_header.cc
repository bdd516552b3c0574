#include "checkpoint/gguf_header.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/checked.h"
#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf_value.h"
#include "checkpoint/header_reader.h"
#include "checkpoint/lfs_pointer.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::string_view kAlignment = "general.alignment";
constexpr std::uint64_t kDefaultAlignment = 32;
constexpr std::uint64_t kMaxAlignment = 0x8000'0000;
constexpr std::uint64_t kMaxValues = std::numeric_limits<std::int64_t>::max();  // of a tensor, as in ggml
constexpr std::uint64_t kMinTensorBytes = 8 + 4 + 8 + 4 + 8;                    // no name, one dimension

struct Counts {
  std::uint64_t tensors = 0;
  std::uint64_t pairs = 0;
};

void check_version(HeaderReader& in, std::uint32_t version) {
  if (version == 2 || version == 3) return;
  const bool is_swapped = version != 0 && (version & 0xffffu) == 0;
  in.fail(ErrorCode::kUnsupported,
          is_swapped
              ? fmt::format("version {:#010x} shows a big-endian file; only little-endian ones are served", version)
              : fmt::format("GGUF version {} is not served; versions 2 and 3 are", version));
}

void check_limit(HeaderReader& in, std::uint64_t count, std::uint64_t limit, std::string_view what) {
  if (count > limit)
    in.fail(ErrorCode::kUnsupported, fmt::format("{} {} are more than the limit of {}", count, what, limit));
}

Counts read_counts(HeaderReader& in) {
  in.expect(4, 1, "bytes of the magic");
  const std::string magic = in.text(4);
  if (!in.failed() && magic != "GGUF") {
    in.fail(ErrorCode::kMalformed, fmt::format("not a GGUF file: it begins with '{}', not 'GGUF'", printable(magic)));
  }
  in.expect(20, 1, "bytes of version and counts");
  check_version(in, in.number<std::uint32_t>());
  Counts counts;
  counts.tensors = in.number<std::uint64_t>();
  counts.pairs = in.number<std::uint64_t>();
  in.expect(counts.tensors, kMinTensorBytes, "tensors");
  in.expect(counts.pairs, kMinPairBytes, "key-value pairs");
  check_limit(in, counts.tensors, kMaxTensors, "tensors");
  check_limit(in, counts.pairs, kMaxPairs, "key-value pairs");
  return counts;
}

std::vector<MetadataPair> read_pairs(HeaderReader& in, std::uint64_t count) {
  std::vector<MetadataPair> pairs;
  if (!in.failed()) pairs.reserve(count);
  std::uint64_t kept_bytes = 0;
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    in.set_subject(fmt::format("key {} of {}", i + 1, count));
    MetadataPair pair = read_pair(in);
    kept_bytes += pair.key.size() + pair.text.size() + pair.integers.size() * sizeof(std::uint64_t);
    check_limit(in, kept_bytes, kMaxKeptBytes, "bytes of keys and short values");
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

void check_size(HeaderReader& in, Tensor& tensor) {
  const GgmlType& type = *tensor.type;
  const auto& [values, d1, d2, d3] = tensor.shape;
  if (values % type.block_values != 0) {
    in.fail(ErrorCode::kMalformed, fmt::format("a row of {} values is no multiple of the {} values of a {} block",
                                               values, type.block_values, type.name));
    return;
  }
  std::optional<std::uint64_t> elements = values;
  std::optional<std::uint64_t> bytes = checked_mul(values / type.block_values, type.block_bytes);
  for (const std::uint64_t dimension : {d1, d2, d3}) {
    if (elements) elements = checked_mul(*elements, dimension);
    if (bytes) bytes = checked_mul(*bytes, dimension);
  }
  if (!elements || !bytes || *elements > kMaxValues) {
    in.fail(ErrorCode::kMalformed,
            fmt::format("the product of its shape [{}, {}, {}, {}] overflows", values, d1, d2, d3));
    return;
  }
  tensor.bytes = *bytes;
}

Tensor read_tensor(HeaderReader& in) {
  Tensor tensor;
  const auto name_bytes = in.number<std::uint64_t>();
  if (name_bytes > kMaxTensorNameBytes) {
    in.fail(ErrorCode::kMalformed, fmt::format("a name of {} bytes exceeds {}", name_bytes, kMaxTensorNameBytes));
  }
  in.expect(name_bytes, 1, "bytes of a tensor's name");
  tensor.name = in.text(name_bytes);
  in.set_subject(fmt::format("tensor '{}'", printable(tensor.name)));
  const auto dimensions = in.number<std::uint32_t>();
  if (dimensions < 1 || dimensions > 4) {
    in.fail(ErrorCode::kMalformed, fmt::format("{} dimensions are not 1 to 4", dimensions));
  }
  if (in.failed()) return tensor;
  in.expect(dimensions - 1, 8, "dimensions");
  for (std::uint32_t i = 0; i < dimensions; ++i) tensor.shape[i] = in.number<std::uint64_t>();
  const auto type = in.number<std::uint32_t>();
  tensor.type = find_ggml_type(type);
  tensor.offset = in.number<std::uint64_t>();
  if (tensor.type == nullptr) {
    in.fail(ErrorCode::kUnsupported, fmt::format("ggml type {} is unknown, so its size is too", type));
  }
  if (!in.failed()) check_size(in, tensor);
  return tensor;
}

std::vector<Tensor> read_tensors(HeaderReader& in, std::uint64_t count) {
  std::vector<Tensor> tensors;
  if (!in.failed()) tensors.reserve(count);
  for (std::uint64_t i = 0; i < count && !in.failed(); ++i) {
    in.set_subject(fmt::format("tensor {} of {}", i + 1, count));
    tensors.push_back(read_tensor(in));
  }
  return tensors;
}

Result<std::uint64_t> read_alignment(const Metadata& metadata) {
  if (!metadata.has(kAlignment)) return kDefaultAlignment;
  auto alignment = metadata.integer(kAlignment);
  if (alignment && (!std::has_single_bit(*alignment) || *alignment > kMaxAlignment)) {
    return metadata.error(ErrorCode::kMalformed, kAlignment,
                          fmt::format("{} is not a power of two of at most 32 bits", *alignment));
  }
  return alignment;
}

Error tensor_error(const io::File& file, const Tensor& tensor, std::string_view message) {
  return make_error(ErrorCode::kMalformed, "{}: tensor '{}': {}", file.path(), printable(tensor.name), message);
}

/// Turns offsets into the data section into offsets into the file.
Result<void> place(const io::File& file, std::uint64_t alignment, std::uint64_t header_bytes, Tensor& tensor) {
  const std::uint64_t relative = tensor.offset;
  if (relative % alignment != 0) {
    return tensor_error(file, tensor, fmt::format("offset {} is no multiple of the alignment {}", relative, alignment));
  }
  const auto offset = checked_add(header_bytes, relative);
  const auto end = offset ? checked_add(*offset, tensor.bytes) : std::nullopt;
  if (!end) return tensor_error(file, tensor, fmt::format("offset {} plus {} bytes overflows", relative, tensor.bytes));
  tensor.offset = *offset;
  return {};
}

Result<void> check_end(const io::File& file, const std::vector<Tensor>& tensors) {
  const auto last = std::max_element(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
    return a.offset + a.bytes < b.offset + b.bytes;
  });
  if (last == tensors.end() || last->offset + last->bytes <= file.bytes()) return {};
  return tensor_error(file, *last,
                      fmt::format("ends at byte {}, but the file has {} bytes (cut off, still being written, "
                                  "or damaged)",
                                  last->offset + last->bytes, file.bytes()));
}

Result<void> check_overlap(const io::File& file, const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> by_offset;
  for (const Tensor& tensor : tensors) {
    if (tensor.bytes > 0) by_offset.push_back(&tensor);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](const Tensor* a, const Tensor* b) { return a->offset < b->offset; });
  for (std::size_t i = 1; i < by_offset.size(); ++i) {
    const Tensor& before = *by_offset[i - 1];
    if (before.offset + before.bytes <= by_offset[i]->offset) continue;
    return tensor_error(file, *by_offset[i],
                        fmt::format("starts at byte {}, inside tensor '{}', which ends at {}", by_offset[i]->offset,
                                    printable(before.name), before.offset + before.bytes));
  }
  return {};
}

}  // namespace

Result<GgufHeader> read_gguf_header(const io::File& file) {
  if (auto itself = refuse_lfs_pointer(file); !itself) return itself.error();
  HeaderReader in(file);
  const Counts counts = read_counts(in);
  std::vector<MetadataPair> pairs = read_pairs(in, counts.pairs);
  GgufHeader header;
  header.tensors = read_tensors(in, counts.tensors);
  if (in.failed()) return in.error();

  auto metadata = Metadata::from_pairs(file.path(), std::move(pairs));
  if (!metadata) return metadata.error();
  header.metadata = *std::move(metadata);
  auto alignment = read_alignment(header.metadata);
  if (!alignment) return alignment.error();
  // The position lies inside a file, so this cannot wrap. Without tensors there is no padding.
  const std::uint64_t step = header.tensors.empty() ? 1 : *alignment;
  header.header_bytes = (in.position() + step - 1) / step * step;
  for (Tensor& tensor : header.tensors) {
    if (auto placed = place(file, *alignment, header.header_bytes, tensor); !placed) return placed.error();
  }
  if (auto inside = check_end(file, header.tensors); !inside) return inside.error();
  if (auto apart = check_overlap(file, header.tensors); !apart) return apart.error();
  return header;
}

}  // namespace rowtide::checkpoint
