#include <fmt/format.h>

#include <algorithm>

#include "cli/doctor/checks.h"
#include "cli/text_table.h"
#include "rowtide/byte_size.h"
#include "rowtide/store.h"

namespace rowtide::cli::doctor {
namespace {

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;
constexpr std::uint64_t kStandardBytes = std::uint64_t{1} << 30;  // as default_memory_bytes(), for what is left
constexpr std::uint64_t kStandardShare = 8;
constexpr std::uint64_t kWholeTableShare =
    2;  // of what is left, a whole table may take no more than one part in so many

std::uint64_t left_beside_weights(const Checkpoint* checkpoint, const io::AvailableMemory& available) {
  const std::uint64_t weights = checkpoint == nullptr ? 0 : checkpoint->bytes_rest();
  return available.bytes() > weights ? available.bytes() - weights : 0;
}

std::uint64_t standard_bytes(std::uint64_t left) {
  return std::max(kMemoryBytesMin, std::min(kStandardBytes, left / kStandardShare / kMib * kMib));
}

/// What holds all tables, and what is needed beside them: readers, and the buffers of the fill. Whole MiB.
std::uint64_t whole_table_bytes(const Checkpoint& checkpoint) {
  return (checkpoint.bytes_table() + kMib - 1) / kMib * kMib + 2 * kMemoryBytesMin;
}

bool whole_table_fits(const Checkpoint& checkpoint, std::uint64_t left) {
  return checkpoint.bytes_table() > 0 && whole_table_bytes(checkpoint) <= left / kWholeTableShare;
}

Finding check_table_memory(const Checkpoint& checkpoint, const io::AvailableMemory& available) {
  Finding found{"table_memory", Group::kCheckpoint, Level::kOk, "", "", ""};
  const std::string weights = byte_size_text(checkpoint.bytes_rest()),
                    tables = byte_size_text(checkpoint.bytes_table());
  const std::uint64_t left = left_beside_weights(&checkpoint, available);
  const std::string budget = byte_size_text(suggested_memory_bytes(&checkpoint, available));
  if (left == 0) {
    found.level = Level::kWarning;
    found.finding = fmt::format("the other weights, {}, are more than the memory available", weights);
    found.meaning = "unless a GPU holds them, the engine reads weights from the drive again and again";
    found.fix = "a smaller quantization of the model, layers on a GPU (llama.cpp's -ngl), or more memory";
  } else if (whole_table_fits(checkpoint, left)) {
    found.finding = fmt::format("the whole table fits: {} beside {} of other weights", tables, weights);
    found.meaning = fmt::format("resident, its rows come at the speed of memory: --mode resident --memory {}MiB",
                                whole_table_bytes(checkpoint) / kMib);
  } else {
    found.finding = fmt::format("the table, {}, stays on the drive; {} of other weights fit, and {} are left beside",
                                tables, weights, byte_size_text(left));
    found.meaning = fmt::format("a cache of {} holds the n-grams asked for again; more holds more", budget);
  }
  return found;
}

std::string refusal_fix(ErrorCode code) {
  switch (code) {
    case ErrorCode::kMalformed:
    case ErrorCode::kMismatch: return "compare its size and checksum with the publisher's, and download it again";
    case ErrorCode::kNotFound: return "put what is missing beside it";
    case ErrorCode::kUnsupported: return "docs/formats.md says which files and row formats are read";
    default: return "see that this user may read it: ls -l";
  }
}

}  // namespace

std::uint64_t suggested_memory_bytes(const Checkpoint* checkpoint, const Result<io::AvailableMemory>& available) {
  if (!available) return kMemoryBytesMin;
  const std::uint64_t left = left_beside_weights(checkpoint, *available);
  if (checkpoint != nullptr && whole_table_fits(*checkpoint, left)) return whole_table_bytes(*checkpoint);
  return standard_bytes(left);
}

Findings check_checkpoint(const Result<Checkpoint>& checkpoint, const Result<io::AvailableMemory>& available) {
  Finding found{"checkpoint", Group::kCheckpoint, Level::kOk, "", "", ""};
  if (!checkpoint) {
    found.level = Level::kProblem;
    found.finding = checkpoint.error().message;
    found.meaning = "Rowtide serves nothing from it";
    found.fix = refusal_fix(checkpoint.error().code);
    return {found};
  }
  const auto& tables = checkpoint->tables();
  if (tables.empty()) {
    found.level = Level::kProblem;
    found.finding = fmt::format("{}: opens ({}, {}), but holds no n-gram table", checkpoint->path(),
                                checkpoint->format(), checkpoint->model_type());
    found.meaning = "Rowtide has nothing to serve; engines run this model by themselves";
    found.fix = "name a model with such a table; docs/formats.md says which are known";
    return {found};
  }
  std::uint64_t rows = 0;
  for (const Table& table : tables) rows += table.rows;
  found.finding = fmt::format("{}: {}, {} with {} table{}, {} rows, {}", checkpoint->path(), checkpoint->format(),
                              checkpoint->model_type(), tables.size(), tables.size() == 1 ? "" : "s", grouped(rows),
                              byte_size_text(checkpoint->bytes_table()));
  Findings all{found};
  if (available) all.push_back(check_table_memory(*checkpoint, *available));
  return all;
}

}  // namespace rowtide::cli::doctor
