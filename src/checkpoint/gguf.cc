#include "checkpoint/gguf.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/printable.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::string_view kSplitNo = "split.no";
constexpr std::string_view kSplitCount = "split.count";
constexpr std::string_view kSplitTensors = "split.tensors.count";

/// What a part says of its set.
struct Split {
  std::uint64_t number = 0;  // 0-based
  std::uint64_t count = 1;
  std::uint64_t tensors = 0;
};

struct Part {
  GgufFile file;
  GgufHeader header;
  Split split;
};

Result<Split> read_split(const Metadata& metadata) {
  Split split;
  if (!metadata.has(kSplitCount)) return split;
  auto count = metadata.integer(kSplitCount);
  if (!count) return count.error();
  if (*count <= 1) return split;
  auto number = metadata.integer(kSplitNo);
  if (!number) return number.error();
  auto tensors = metadata.integer(kSplitTensors);
  if (!tensors) return tensors.error();
  if (*number >= *count) {
    return metadata.error(ErrorCode::kMalformed, kSplitNo,
                          fmt::format("{} is not below {} {}", *number, kSplitCount, *count));
  }
  return Split{*number, *count, *tensors};
}

Result<Part> open_part(const std::string& path, const io::FileOpener& open) {
  auto file = open(path);
  if (!file) return file.error();
  auto header = read_gguf_header(**file);
  if (!header) return header.error();
  auto split = read_split(header->metadata);
  if (!split) return split.error();
  if (split->number != 0) header->metadata = {};  // only the first part's is asked for
  const std::uint64_t header_bytes = header->header_bytes;
  return Part{{path, (*file)->bytes(), header_bytes, (*file)->stamp()}, *std::move(header), *split};
}

std::string name_ending(std::uint64_t number, std::uint64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

/// Opens part `number` of the set that the file `given` says it belongs to by `wanted`.
Result<Part> open_other_part(const std::string& path, std::uint64_t number, const std::string& given,
                             const Split& wanted, const io::FileOpener& open) {
  auto part = open_part(path, open);
  if (!part && part.error().code == ErrorCode::kNotFound) {
    return make_error(ErrorCode::kNotFound, "{}: part {} of {} is missing beside {}", path, number + 1, wanted.count,
                      given);
  }
  if (!part) return part;
  const Split& found = part->split;
  if (found.number != number || found.count != wanted.count || found.tensors != wanted.tensors) {
    return make_error(
        ErrorCode::kMalformed,
        "{}: belongs to another set: it says part {} of {} with {} tensors, {} needs part {} of {} with {}", path,
        found.number + 1, found.count, found.tensors, given, number + 1, wanted.count, wanted.tensors);
  }
  return part;
}

/// Takes over a part's file and tensors, and the first part's metadata.
Result<void> append(Gguf& set, Part part) {
  const auto index = static_cast<std::uint32_t>(set.files.size());
  if (set.tensors.size() + part.header.tensors.size() > kMaxTensors) {
    return make_error(ErrorCode::kUnsupported, "{}: with this part the set has {} tensors, more than the limit of {}",
                      part.file.path, set.tensors.size() + part.header.tensors.size(), kMaxTensors);
  }
  for (Tensor& tensor : part.header.tensors) tensor.file = index;
  if (index == 0) {
    set.metadata = std::move(part.header.metadata);
    set.tensors = std::move(part.header.tensors);
  } else {
    set.tensors.insert(set.tensors.end(), std::move_iterator(part.header.tensors.begin()),
                       std::move_iterator(part.header.tensors.end()));
  }
  set.files.push_back(std::move(part.file));
  return {};
}

/// The set's parts [from, to), found by the name of `given`.
Result<void> append_parts(Gguf& set, const std::string& given, const Split& split, std::uint64_t from, std::uint64_t to,
                          const io::FileOpener& open) {
  const std::string stem = given.substr(0, given.size() - name_ending(split.number, split.count).size());
  for (std::uint64_t number = from; number < to; ++number) {
    auto part = open_other_part(stem + name_ending(number, split.count), number, given, split, open);
    if (!part) return part.error();
    if (auto done = append(set, *std::move(part)); !done) return done;
  }
  return {};
}

Result<void> append_set(Gguf& set, Part given, const io::FileOpener& open) {
  const Split split = given.split;
  const std::string path = given.file.path;
  if (const std::string ending = name_ending(split.number, split.count); !path.ends_with(ending)) {
    return make_error(ErrorCode::kMalformed,
                      "{}: says that it is part {} of {}, so for the others to be found its name must end in {}", path,
                      split.number + 1, split.count, ending);
  }
  if (auto done = append_parts(set, path, split, 0, split.number, open); !done) return done;
  if (auto done = append(set, std::move(given)); !done) return done;
  if (auto done = append_parts(set, path, split, split.number + 1, split.count, open); !done) return done;
  if (set.tensors.size() == split.tensors) return {};
  return make_error(ErrorCode::kMalformed, "{}: key '{}': {}, but the {} parts hold {} tensors", path, kSplitTensors,
                    split.tensors, split.count, set.tensors.size());
}

Result<void> sort_by_name(Gguf& set) {
  std::sort(set.tensors.begin(), set.tensors.end(),
            [](const Tensor& a, const Tensor& b) { return std::tie(a.name, a.file) < std::tie(b.name, b.file); });
  const auto twice = std::adjacent_find(set.tensors.begin(), set.tensors.end(),
                                        [](const Tensor& a, const Tensor& b) { return a.name == b.name; });
  if (twice == set.tensors.end()) return {};
  const std::string& first = set.path_of(twice[0]);
  const std::string& second = set.path_of(twice[1]);
  return make_error(ErrorCode::kMalformed, "{}: tensor '{}': occurs twice{}", second, printable(twice->name),
                    first == second ? "" : ", also in " + first);
}

}  // namespace

const Tensor* Gguf::find_tensor(std::string_view name) const {
  const auto found =
      std::lower_bound(tensors.begin(), tensors.end(), name,
                       [](const Tensor& tensor, std::string_view wanted) { return tensor.name < wanted; });
  return found != tensors.end() && found->name == name ? &*found : nullptr;
}

Result<Gguf> open_gguf(const std::string& path, const io::FileOpener& open) {
  auto given = open_part(path, open);
  if (!given) return given.error();
  Gguf set;
  const bool is_split = given->split.count > 1;
  auto appended = is_split ? append_set(set, *std::move(given), open) : append(set, *std::move(given));
  if (!appended) return appended.error();
  if (auto sorted = sort_by_name(set); !sorted) return sorted.error();
  return set;
}

}  // namespace rowtide::checkpoint
