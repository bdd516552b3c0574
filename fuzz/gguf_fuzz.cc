// The GGUF parser on untrusted bytes, up to the table with its addressing and identity. The input is the file; where it
// holds the magic a second time, the bytes from there on are the second part of a split set of two.
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "check_table.h"
#include "table/checkpoint_opener.h"

namespace {

using namespace rowtide;

constexpr std::string_view kFirst = "fuzz-00001-of-00002.gguf";
constexpr std::string_view kSecond = "fuzz-00002-of-00002.gguf";

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
  const auto no_folder = [](const std::string& path) -> Result<std::vector<io::FolderEntry>> {
    return make_error(ErrorCode::kUnsupported, "{}: is no folder", path);
  };
  auto checkpoint = CheckpointOpener({open, no_folder}).open(std::string(kFirst));
  if (!checkpoint) {
    require(!checkpoint.error().message.empty());
    return 0;
  }
  for (const Table& table : checkpoint->tables()) check_table(table, *checkpoint, open);
  return 0;
}
