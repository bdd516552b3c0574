// A model in safetensors form, untrusted: its config.json and its one file, up to tables with addressing and identity.
// The input is the configuration, a zero byte, and the file.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "check_table.h"
#include "table/checkpoint_opener.h"

namespace {

using namespace rowtide;

constexpr std::string_view kConfig = "m/config.json";
constexpr std::string_view kFile = "m/model.safetensors";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  if (end == std::string_view::npos) return 0;
  io::Disk disk;
  disk.open = [&](const std::string& path) -> Result<std::unique_ptr<io::File>> {
    if (path == kConfig) return io::memory_file(path, bytes_of(input.substr(0, end)));
    if (path == kFile) return io::memory_file(path, bytes_of(input.substr(end + 1)));
    return make_error(ErrorCode::kNotFound, "{}: is not there", path);
  };
  disk.list = [](const std::string& path) -> Result<std::vector<io::FolderEntry>> {
    if (path != "m") return make_error(ErrorCode::kUnsupported, "{}: is no folder", path);
    return std::vector<io::FolderEntry>{{"config.json", false, 0}, {"model.safetensors", false, 0}};
  };
  auto checkpoint = CheckpointOpener(disk, {.token_map = "identity"}).open("m");
  if (!checkpoint) {
    require(!checkpoint.error().message.empty());
    return 0;
  }
  for (const Table& table : checkpoint->tables()) check_table(table, *checkpoint, disk.open);
  return 0;
}
