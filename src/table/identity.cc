#include "table/identity.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <map>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "base/error.h"

namespace rowtide {
namespace {

constexpr std::size_t kReadBytes = 65'536;
constexpr std::size_t kProbeTokens = 64;
constexpr std::uint64_t kNoToken = ~std::uint64_t{0};

class Digest {
 public:
  Digest() : state_(XXH3_createState()) { XXH3_128bits_reset(state_.get()); }

  void bytes(std::span<const std::byte> data) { XXH3_128bits_update(state_.get(), data.data(), data.size()); }
  void number(std::uint64_t value) {
    std::array<std::byte, 8> little_endian;
    for (std::size_t i = 0; i < 8; ++i) little_endian[i] = static_cast<std::byte>(value >> (8 * i));
    bytes(little_endian);
  }
  void text(std::string_view value) {
    number(value.size());
    bytes(std::as_bytes(std::span(value)));
  }
  std::string hex() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    std::string out;
    for (const unsigned char byte : canonical.digest) out += fmt::format("{:02x}", byte);
    return out;
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

void add_shape(Digest& digest, const Table& table) {
  digest.text("rowtide table identity 2");
  digest.number(table.rows);
  digest.number(table.row_values);
  digest.number(table.row_bytes);
  digest.text(row_format_name(table.row_format));
  digest.number(std::bit_cast<std::uint32_t>(table.scale));
}

void add_addressing(Digest& digest, const Addressing* addressing) {
  if (addressing == nullptr) return digest.text("none");
  digest.text(addressing->family());
  digest.number(addressing->heads_per_order());
  digest.number(addressing->orders().size());
  for (const std::uint32_t order : addressing->orders()) digest.number(order);
  digest.number(addressing->row_count());
  digest.number(addressing->history_tokens());
  History history = addressing->start();
  digest.number(history.size());
  for (const TokenId token : history) digest.number(static_cast<std::uint64_t>(token));
  const auto image = addressing->image_token_id();
  digest.number(image ? static_cast<std::uint64_t>(*image) : kNoToken);
  std::array<TokenId, kProbeTokens> tokens;
  std::iota(tokens.begin(), tokens.end(), 0);
  std::vector<RowId> ids(tokens.size() * addressing->rows_per_token());
  addressing->rows(tokens, history, ids);
  for (const RowId id : ids) digest.number(id);
}

/// Adds `bytes` bytes of `file` from `offset`.
Result<void> add_range(Digest& digest, const io::File& file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<std::byte> window;
  for (std::uint64_t done = 0; done < bytes; done += window.size()) {
    window.resize(std::min<std::uint64_t>(kReadBytes, bytes - done));
    if (auto read = file.read(offset + done, window); !read) return read;
    digest.bytes(window);
  }
  return {};
}

/// Says how the rows are cut. Gives an extent of each file, in the order in which files come up.
std::vector<const Extent*> add_components(Digest& digest, const Table& table) {
  std::map<std::string_view, std::uint64_t> numbers;
  std::vector<const Extent*> files;
  digest.number(table.components.size());
  for (const Component& component : table.components) {
    digest.text(component.name);
    digest.number(component.row_bytes);
    digest.number(component.extents.size());
    for (const Extent& extent : component.extents) {
      const auto [known, is_new] = numbers.emplace(extent.path, files.size());
      if (is_new) files.push_back(&extent);
      digest.number(extent.rows);
      digest.number(known->second);
    }
  }
  return files;
}

Result<void> add_header(Digest& digest, const Extent& extent, const io::FileOpener& open) {
  digest.number(extent.header_bytes);
  if (extent.header_bytes == 0) return {};
  auto file = open(extent.path);
  if (!file) return file.error();
  return add_range(digest, **file, 0, extent.header_bytes);
}

/// A component's parts of the rows as one run of bytes, whatever files they lie in. Holds the file of the last read
/// open.
class RowBytes {
 public:
  RowBytes(const Component& component, const io::FileOpener& open) : component_(component), open_(open) {}

  Result<void> add(Digest& digest, std::uint64_t start, std::uint64_t bytes) {
    while (bytes > 0) {
      const Extent& extent = extent_of(start / component_.row_bytes);
      if (auto opened = open_extent(extent); !opened) return opened;
      const std::uint64_t first = start - extent.first_row * component_.row_bytes;
      const std::uint64_t here = std::min(bytes, extent.rows * component_.row_bytes - first);
      if (auto added = add_range(digest, *file_, extent.offset + first, here); !added) return added;
      start += here;
      bytes -= here;
    }
    return {};
  }

 private:
  const Extent& extent_of(std::uint64_t row) const {
    const auto& extents = component_.extents;
    const auto after =
        std::upper_bound(extents.begin(), extents.end(), row,
                         [](std::uint64_t wanted, const Extent& extent) { return wanted < extent.first_row; });
    assert(after != extents.begin());
    return *std::prev(after);
  }

  Result<void> open_extent(const Extent& extent) {
    if (file_ && opened_ == &extent) return {};
    auto file = open_(extent.path);
    if (!file) return file.error();
    file_ = *std::move(file);
    opened_ = &extent;
    return {};
  }

  const Component& component_;
  const io::FileOpener& open_;
  const Extent* opened_ = nullptr;
  std::unique_ptr<io::File> file_;
};

/// Block `i` of `taken` that are spread evenly over `blocks`, first and last included.
std::uint64_t sample_index(std::uint64_t i, std::uint64_t taken, std::uint64_t blocks) {
  if (taken == 1) return 0;
  const std::uint64_t last = blocks - 1;
  const std::uint64_t steps = taken - 1;
  return last / steps * i + last % steps * i / steps;  // i * last / steps, safe from overflow
}

Result<void> add_samples(Digest& digest, const Component& component, std::uint64_t table_rows,
                         const io::FileOpener& open) {
  RowBytes rows(component, open);
  const std::uint64_t bytes = table_rows * component.row_bytes;
  const std::uint64_t blocks = bytes / kIdentityBlockBytes + (bytes % kIdentityBlockBytes != 0);
  const std::uint64_t taken = std::min(blocks, kIdentityBlocks);
  for (std::uint64_t i = 0; i < taken; ++i) {
    const std::uint64_t index = sample_index(i, taken, blocks);
    const std::uint64_t start = index * kIdentityBlockBytes;
    digest.number(index);
    if (auto added = rows.add(digest, start, std::min(kIdentityBlockBytes, bytes - start)); !added) return added;
  }
  return {};
}

}  // namespace

Result<std::string> table_identity(const Table& table, const io::FileOpener& open) {
  Digest digest;
  add_shape(digest, table);
  add_addressing(digest, table.addressing.get());
  const std::vector<const Extent*> files = add_components(digest, table);
  digest.number(files.size());
  for (const Extent* file : files) {
    if (auto added = add_header(digest, *file, open); !added) return added.error();
  }
  for (const Component& component : table.components) {
    if (auto added = add_samples(digest, component, table.rows, open); !added) return added.error();
  }
  return digest.hex();
}

Result<std::string> table_identity(const Table& table) {
  return without_throwing([&] { return table_identity(table, io::open_file); });
}

}  // namespace rowtide
