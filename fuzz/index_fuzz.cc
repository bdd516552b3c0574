// An index of shards, untrusted, over two shards that are sound: "s-1" holds "a" (4 bytes) and "b" (8), "s-2" holds "c"
// (2). The input is the index.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace {

using namespace rowtide;

constexpr std::string_view kIndex = "m/x.json";
constexpr std::string_view kFirst =
    R"({"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[8],"data_offsets":[4,12]}})";
constexpr std::string_view kSecond = R"({"c":{"dtype":"BF16","shape":[1,1],"data_offsets":[0,2]}})";

void require(bool condition) {
  if (!condition) std::abort();
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

/// A file of that header, and of zeros where its tensors lie.
std::vector<std::byte> shard(std::string_view header, std::size_t data_bytes) {
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return bytes_of(file + std::string(header) + std::string(data_bytes, '\0'));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_assert(kFirst.size() < 128 && kSecond.size() < 128);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  io::Disk disk;
  disk.open = [&](const std::string& path) -> Result<std::unique_ptr<io::File>> {
    if (path == kIndex) return io::memory_file(path, bytes_of(input));
    if (path == "m/s-1") return io::memory_file(path, shard(kFirst, 12));
    if (path == "m/s-2") return io::memory_file(path, shard(kSecond, 2));
    return make_error(ErrorCode::kNotFound, "{}: is not there", path);
  };
  disk.list = [](const std::string& path) -> Result<std::vector<io::FolderEntry>> {
    if (path != "m") return make_error(ErrorCode::kUnsupported, "{}: is no folder", path);
    return std::vector<io::FolderEntry>{{"s-1", false, 0}, {"s-2", false, 0}, {"x.json", false, 0}};
  };
  auto opened = checkpoint::open_safetensors(std::string(kIndex), disk);
  if (!opened) {
    require(opened.error().message.find("m") != std::string::npos);
    return 0;
  }
  std::size_t tensors = 0;
  for (const checkpoint::SafetensorsFile& file : opened->files()) {
    require(file.path == "m/s-1" || file.path == "m/s-2");
    tensors += file.path == "m/s-1" ? 2 : 1;
  }
  require(!opened->files().empty() && opened->tensors().size() == tensors);
  return 0;
}
