// The header of one safetensors file, untrusted. The input is the file.
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "checkpoint/safetensors.h"

namespace {

using namespace rowtide;

constexpr std::string_view kPath = "fuzz.safetensors";

void require(bool condition) {
  if (!condition) std::abort();
}

/// What every consumer relies on: bytes inside the file, which the tensors share out without rest, and sizes that fit.
void check(const checkpoint::Safetensors& opened, std::uint64_t file_bytes) {
  require(opened.files().size() == 1 && opened.files()[0].bytes == file_bytes);
  const std::uint64_t header_bytes = opened.files()[0].header_bytes;
  std::uint64_t data_bytes = 0;
  for (std::size_t i = 0; i < opened.tensors().size(); ++i) {
    const checkpoint::SafetensorsTensor tensor = opened.tensors()[i];
    require(tensor.offset >= header_bytes && tensor.offset <= file_bytes && tensor.bytes <= file_bytes - tensor.offset);
    data_bytes += tensor.bytes;
    const auto found = opened.tensors().find(tensor.name);
    require(found && found->offset == tensor.offset && found->name == tensor.name);
    if (tensor.dtype == checkpoint::Dtype::kUnknown) continue;
    unsigned __int128 bits = checkpoint::dtype_bits(tensor.dtype);
    for (const std::uint64_t dimension : tensor.shape) bits *= dimension;
    require(bits == static_cast<unsigned __int128>(tensor.bytes) * 8);
  }
  require(header_bytes + data_bytes == file_bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto* begin = reinterpret_cast<const std::byte*>(data);
  io::Disk disk;
  disk.open = [&](const std::string& path) -> Result<std::unique_ptr<io::File>> {
    if (path == kPath) return io::memory_file(path, {begin, begin + size});
    return make_error(ErrorCode::kNotFound, "{}: is not there", path);
  };
  disk.list = [](const std::string& path) -> Result<std::vector<io::FolderEntry>> {
    return make_error(ErrorCode::kUnsupported, "{}: is no folder", path);
  };
  auto opened = checkpoint::open_safetensors(std::string(kPath), disk);
  if (opened) {
    check(*opened, size);
  } else {
    require(opened.error().message.find(kPath) != std::string::npos);
  }
  return 0;
}
