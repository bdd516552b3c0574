// The GGUF parser on untrusted bytes, up to the table with its addressing and identity. The input is the file; where it
// holds the magic a second time, the bytes from there on are the second part of a split set of two.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "table/checkpoint_opener.h"
#include "table/identity.h"

namespace {

using namespace rowtide;

constexpr std::string_view kFirst = "fuzz-00001-of-00002.gguf";
constexpr std::string_view kSecond = "fuzz-00002-of-00002.gguf";

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

void require(bool condition) {
  if (!condition) std::abort();
}

/// What every consumer relies on: rows inside the file, row ids inside the table.
void check_table(const Table& table, const Checkpoint& checkpoint, const io::FileOpener& open) {
  require(table.components.size() == 1 && table.components[0].extents.size() == 1 && table.rows > 0);
  require(table.components[0].row_bytes == table.row_bytes);
  const Extent& extent = table.components[0].extents[0];
  std::uint64_t file_bytes = 0;
  for (const CheckpointFile& file : checkpoint.files()) {
    if (file.path == extent.path) file_bytes = file.bytes;
  }
  require(table.bytes() / table.rows == table.row_bytes && table.bytes() <= file_bytes);
  require(extent.header_bytes <= extent.offset && extent.offset <= file_bytes - table.bytes());
  History history = table.addressing->start();
  const std::vector<TokenId> tokens = {0, 1, 2, history.back(), 3};
  std::vector<RowId> ids(tokens.size() * table.addressing->rows_per_token());
  table.addressing->rows(tokens, history, ids);
  for (const RowId id : ids) require(id < table.rows);
  require(table_identity(table, open).ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t second = input.rfind("GGUF");
  const io::FileOpener open = [&](const std::string& path) -> Result<std::unique_ptr<io::File>> {
    if (path == kFirst) return io::memory_file(path, bytes_of(input));
    if (path == kSecond && second != std::string_view::npos && second > 0) {
      return io::memory_file(path, bytes_of(input.substr(second)));
    }
    return make_error(ErrorCode::kNotFound, "{}: is not there", path);
  };
  auto checkpoint = CheckpointOpener(open).open(std::string(kFirst));
  if (!checkpoint) {
    require(!checkpoint.error().message.empty());
    return 0;
  }
  for (const Table& table : checkpoint->tables()) check_table(table, *checkpoint, open);
  return 0;
}
