#include "rowtide/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/printable.h"
#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"
#include "table/checkpoint_opener.h"
#include "table/gemma_gguf.h"
#include "table/model_family.h"
#include "table/qwen_gguf.h"
#include "table/token_map_file.h"

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

/// Everything but what begins as another kind of checkpoint is taken for a GGUF file.
Result<bool> is_gguf(const std::string& path, const io::Disk& disk) {
  if (path.ends_with(".json") || path.ends_with(".safetensors") || disk.list(path)) return false;
  auto file = disk.open(path);
  if (!file) return file.error();
  return !looks_like_safetensors(**file);
}

/// Empty for a file that does not say, such as one of statistics for quantisation.
Result<std::string> read_architecture(const checkpoint::Gguf& gguf) {
  if (!gguf.metadata.has(kArchitecture)) return std::string();
  auto architecture = gguf.metadata.text(kArchitecture);
  if (!architecture || is_printable(*architecture)) return architecture;
  return gguf.metadata.error(ErrorCode::kMalformed, kArchitecture,
                             fmt::format("'{}' is no name", printable(*architecture)));
}

Result<std::vector<Table>> find_tables(const checkpoint::Gguf& gguf, std::string_view architecture) {
  if (architecture == kQwenArchitecture) return find_qwen_tables(gguf);
  if (is_gemma_architecture(architecture)) return find_gemma_tables(gguf);
  return std::vector<Table>();
}

/// Whether only a model with a table has a tensor of that name.
bool is_of_table(std::string_view name) {
  for (const std::string_view mark : {".ple_embedding.ngram_embedding.", ".engram.embed.",
                                      "ngram_embeddings.embedders.", "embed_tokens_per_layer."}) {
    if (name.find(mark) != std::string_view::npos) return true;
  }
  return false;
}

/// Refuses tensors of tables that are not among `tables`: what a config.json leaves out must not go unseen.
Result<void> check_all_found(const checkpoint::Safetensors& files, const checkpoint::ModelConfig* config,
                             const std::vector<Table>& tables) {
  const checkpoint::TensorList& tensors = files.tensors();
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string_view name = tensors[i].name;
    const auto holds = [&](const Table& table) { return name.starts_with(table.name); };
    if (!is_of_table(name) || std::any_of(tables.begin(), tables.end(), holds)) continue;
    if (config != nullptr) {
      return make_error(ErrorCode::kMismatch, "{}: tells of {}, but tensor '{}' belongs to {}", config->path(),
                        tables.empty() ? "no table" : fmt::format("{} tables", tables.size()), printable(name),
                        tables.empty() ? "one" : "another");
    }
    return make_error(ErrorCode::kNotFound,
                      "{}: tensor '{}' belongs to a table, but there is no config.json beside the file, without "
                      "which its rows cannot be addressed",
                      files.path_of(tensors[i]), printable(name));
  }
  return {};
}

}  // namespace

Result<Checkpoint> CheckpointOpener::open(const std::string& path) const {
  auto gguf = is_gguf(path, disk_);
  if (!gguf) return gguf.error();
  auto checkpoint = *gguf ? open_gguf(path) : open_safetensors(path);
  if (!checkpoint) return checkpoint;
  checkpoint->path_ = path;
  return checkpoint;
}

Result<Checkpoint> CheckpointOpener::open_gguf(const std::string& path) const {
  auto gguf = checkpoint::open_gguf(path, disk_.open);
  if (!gguf) return gguf.error();
  auto architecture = read_architecture(*gguf);
  if (!architecture) return architecture.error();
  auto tables = find_tables(*gguf, *architecture);
  if (!tables) return tables.error();
  Checkpoint checkpoint;
  checkpoint.format_ = "gguf";
  checkpoint.model_type_ = *std::move(architecture);
  for (const checkpoint::GgufFile& file : gguf->files) checkpoint.files_.push_back({file.path, file.bytes});
  checkpoint.tables_ = *std::move(tables);
  if (!checkpoint.tables_.empty()) checkpoint.family_ = checkpoint.tables_.front().addressing->family();
  return checkpoint;
}

Result<Checkpoint> CheckpointOpener::open_safetensors(const std::string& path) const {
  auto files = checkpoint::open_safetensors(path, disk_);
  if (!files) return files.error();
  if (!files->choice().empty()) log(LogLevel::kWarn, "{}", files->choice());
  Checkpoint checkpoint;
  checkpoint.format_ = "safetensors";
  for (const checkpoint::SafetensorsFile& file : files->files()) checkpoint.files_.push_back({file.path, file.bytes});

  std::optional<checkpoint::ModelConfig> config;
  if (!files->config_path().empty()) {
    auto read = read_model_config(files->config_path());
    if (!read) return read.error();
    config = *std::move(read);
    auto type = config->model_type();
    if (!type) return type.error();
    checkpoint.model_type_ = *std::move(type);
  }
  const ModelFamily* family = nullptr;
  if (config) {
    auto told = family_of(*config);
    if (!told) return told.error();
    family = *told;
  }
  if (family != nullptr) {
    const auto token_map = token_map_source(options_.token_map, files->config_path(), disk_.open);
    auto tables = family->find_tables({*files, disk_.open}, *config, token_map);
    if (!tables) return tables.error();
    checkpoint.tables_ = *std::move(tables);
  }
  if (!checkpoint.tables_.empty()) checkpoint.family_ = family->name;
  if (auto all = check_all_found(*files, config ? &*config : nullptr, checkpoint.tables_); !all) return all.error();
  return checkpoint;
}

Result<checkpoint::ModelConfig> CheckpointOpener::read_model_config(const std::string& path) const {
  auto file = disk_.open(path);
  if (!file) return file.error();
  return checkpoint::ModelConfig::read(**file);
}

Result<Checkpoint> Checkpoint::open(const std::string& path, const CheckpointOptions& options) {
  return without_throwing([&] { return CheckpointOpener(io::Disk(), options).open(path); });
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
