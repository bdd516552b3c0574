#include "rowtide/checkpoint.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/gguf.h"
#include "table/checkpoint_opener.h"
#include "table/qwen_gguf.h"

namespace rowtide {
namespace {

constexpr std::string_view kArchitecture = "general.architecture";

/// A safetensors file begins with the u64 length of a JSON object, which follows.
bool looks_like_safetensors(const io::File& file) {
  std::array<std::byte, 9> start;
  if (file.bytes() < start.size() || !file.read(0, start)) return false;
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, start.data(), sizeof(header_bytes));
  return start[8] == std::byte{'{'} && header_bytes < file.bytes();
}

/// Refuses what is recognised as another kind of checkpoint, rather than as a damaged GGUF file.
Result<void> check_kind(const std::string& path, const io::FileOpener& open) {
  auto file = open(path);
  if (!file && file.error().code == ErrorCode::kUnsupported) {
    return make_error(ErrorCode::kUnsupported, "{}; name a GGUF file", file.error().message);
  }
  if (!file) return file.error();
  if (looks_like_safetensors(**file)) {
    return make_error(ErrorCode::kUnsupported, "{}: is a safetensors file; only GGUF files are served", path);
  }
  return {};
}

/// Empty for a file that does not say, such as one of statistics for quantisation.
Result<std::string> read_architecture(const checkpoint::Gguf& gguf) {
  if (!gguf.metadata.has(kArchitecture)) return std::string();
  auto architecture = gguf.metadata.text(kArchitecture);
  if (!architecture || is_printable(*architecture)) return architecture;
  return gguf.metadata.error(ErrorCode::kMalformed, kArchitecture,
                             fmt::format("'{}' is no name", printable(*architecture)));
}

}  // namespace

Result<Checkpoint> CheckpointOpener::open(const std::string& path) const {
  if (auto kind = check_kind(path, open_); !kind) return kind.error();
  auto gguf = checkpoint::open_gguf(path, open_);
  if (!gguf) return gguf.error();
  auto architecture = read_architecture(*gguf);
  if (!architecture) return architecture.error();

  Checkpoint checkpoint;
  checkpoint.path_ = path;
  checkpoint.format_ = "gguf";
  checkpoint.model_type_ = *std::move(architecture);
  for (const checkpoint::GgufFile& file : gguf->files) checkpoint.files_.push_back({file.path, file.bytes});
  if (checkpoint.model_type_ != kQwenArchitecture) return checkpoint;
  auto tables = find_qwen_tables(*gguf);
  if (!tables) return tables.error();
  checkpoint.tables_ = *std::move(tables);
  if (!checkpoint.tables_.empty()) checkpoint.family_ = checkpoint.tables_.front().addressing->family();
  return checkpoint;
}

Result<Checkpoint> Checkpoint::open(const std::string& path) {
  return without_throwing([&] { return CheckpointOpener(io::open_file).open(path); });
}

std::uint64_t Checkpoint::bytes_total() const {
  std::uint64_t bytes = 0;
  for (const CheckpointFile& file : files_) bytes += file.bytes;
  return bytes;
}

std::uint64_t Checkpoint::bytes_table() const {
  std::uint64_t bytes = 0;
  for (const Table& table : tables_) bytes += table.bytes();
  return bytes;
}

}  // namespace rowtide
