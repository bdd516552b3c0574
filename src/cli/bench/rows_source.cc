#include "cli/bench/rows_source.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "address/splitmix64.h"
#include "base/error.h"
#include "cli/failure.h"
#include "cli/progress.h"
#include "io/block_source.h"
#include "io/drive.h"
#include "io/file.h"
#include "io/scratch_file.h"
#include "rowtide/checkpoint.h"
#include "table/file_ranges.h"
#include "table/token_map_file.h"

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kWriteBytes = std::uint64_t{4} << 20;
constexpr std::size_t kPathMax = 4096;

void fill_synthetic_row(RowId id, std::uint64_t row_bytes, std::byte* out) {
  const std::uint64_t words = (row_bytes + 7) / 8;
  for (std::uint64_t k = 0; k < words; ++k) {
    const std::uint64_t word = splitmix64(words * id + k);
    std::memcpy(out + 8 * k, &word, std::min<std::uint64_t>(8, row_bytes - 8 * k));
  }
}

}  // namespace

class SyntheticRows {
 public:
  SyntheticRows(const std::string& folder, std::uint64_t bytes, std::uint64_t row_bytes)
      : row_bytes_(row_bytes), file_(make(folder, bytes / row_bytes * row_bytes, row_bytes)) {}

  std::string path() const { return file_.path(); }
  bool is_row(RowId id, const std::byte* row) const {
    std::vector<std::byte> expected(row_bytes_);
    fill_synthetic_row(id, row_bytes_, expected.data());
    return std::memcmp(expected.data(), row, row_bytes_) == 0;
  }

 private:
  static io::ScratchFile make(const std::string& folder, std::uint64_t bytes, std::uint64_t row_bytes) {
    Progress progress("making the file");
    RowId next = 0;
    std::vector<std::byte> row(row_bytes);
    std::size_t at = row_bytes;  // of the row, what is written already
    auto fill = [&](std::span<std::byte> piece) {
      while (!piece.empty()) {
        if (at == row_bytes) {
          fill_synthetic_row(next++, row_bytes, row.data());
          at = 0;
        }
        const std::size_t part = std::min(piece.size(), row_bytes - at);
        std::memcpy(piece.data(), row.data() + at, part);
        piece = piece.subspan(part);
        at += part;
      }
    };
    return value_of(io::ScratchFile::make_of(folder, bytes, fill, [&](double share) { progress.update(share); }));
  }

  std::uint64_t row_bytes_;
  io::ScratchFile file_;
};

namespace {

/// Rows of which only the bytes are looked at: any format of that size will do.
Table bare_table(const std::string& path, std::uint64_t offset, std::uint64_t row_bytes) {
  std::uint64_t bytes = opened(io::open_file(path))->bytes();
  if (offset >= bytes) {
    throw Failure(kExitRefused, "malformed",
                  fmt::format("{}: --offset {} lies past its end, at {} bytes", path, offset, bytes));
  }
  const std::uint64_t rows = (bytes - offset) / row_bytes;
  if (rows == 0) {
    throw Failure(
        kExitRefused, "malformed",
        fmt::format("{}: {} bytes from byte {} hold no row of {} bytes", path, bytes - offset, offset, row_bytes));
  }
  return opened(table_at("rows", path, offset, rows, row_bytes / 2, RowFormat::kF16));
}

Table checkpoint_table(const std::string& path) {
  // Traces are of made ids, for which no vocabulary is to be compressed.
  Checkpoint checkpoint = opened(Checkpoint::open(path, {.token_map = std::string(kIdentityMap)}));
  if (!checkpoint.tables().empty()) return checkpoint.tables().front();
  throw Failure(kExitRefused, "not_found", fmt::format("{}: holds no conditional-memory table", path));
}

/// Where the kernel describes the block device that a file lies on; nothing for a file system without one.
std::filesystem::path device_folder(const std::string& path) {
  struct stat status;
  if (::stat(path.c_str(), &status) != 0) return {};
  std::error_code error;
  auto folder = std::filesystem::canonical(
      fmt::format("/sys/dev/block/{}:{}", major(status.st_dev), minor(status.st_dev)), error);
  return error ? std::filesystem::path() : folder;
}

std::optional<std::uint64_t> read_ahead_of(const std::filesystem::path& device) {
  for (const auto& folder : {device, device.parent_path()}) {  // a partition's is that of its disk
    std::ifstream file(folder / "queue" / "read_ahead_kb");
    if (std::uint64_t kib = 0; file >> kib) return kib * 1024;
  }
  return std::nullopt;
}

}  // namespace

BenchSource::Range BenchSource::range(std::uint32_t file) const {
  Range range{UINT64_MAX, 0};
  for (const io::FileRange& rows : file_ranges(table)) {
    if (rows.path != paths()[file]) continue;
    range.begin = std::min(range.begin, rows.offset);
    range.end = std::max(range.end, rows.offset + rows.bytes);
  }
  return range;
}

BenchSource open_bench_source(const BenchRowsOptions& options) {
  std::shared_ptr<const SyntheticRows> synthetic;
  Table table;
  if (options.path) {
    table = checkpoint_table(*options.path);
  } else if (options.raw) {
    table = bare_table(*options.raw, options.offset, options.row_bytes);
  } else {
    if (*options.synthetic_bytes < options.row_bytes) {
      throw usage_failure("--synthetic: {} bytes hold no row of {}", *options.synthetic_bytes, options.row_bytes);
    }
    synthetic = std::make_shared<SyntheticRows>(options.folder, *options.synthetic_bytes, options.row_bytes);
    table = bare_table(synthetic->path(), 0, options.row_bytes);
  }
  RowMap map = value_of(RowMap::make(table));
  const auto blocks = opened(io::open_block_source(map.paths(), {}));
  const std::string first = map.paths().front();
  return {std::move(table),
          std::move(map),
          blocks->block_bytes(),
          static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)),
          value_of(io::drive_of(first)).name,
          read_ahead_of(device_folder(first)),
          std::move(synthetic)};
}

void check_bench_rows(const BenchSource& source, std::string_view method, std::span<const RowId> ids,
                      std::span<const std::byte> rows) {
  constexpr std::size_t kSample = 64;
  const std::uint64_t row_bytes = source.table.row_bytes;
  const std::size_t step = source.synthetic || ids.size() <= kSample ? 1 : ids.size() / kSample;
  std::vector<std::byte> expected(row_bytes);
  for (std::size_t i = 0; i < ids.size(); i += step) {
    const std::byte* row = &rows[i * row_bytes];
    bool right = true;
    if (source.synthetic) {
      right = source.synthetic->is_row(ids[i], row);
    } else {
      for (const RowMap::Part& part : source.map.parts()) {
        const auto place = part.place(ids[i]);
        const auto file = opened(io::open_file(source.paths()[place.file]));
        check(file->read(place.offset, std::span(expected).subspan(part.at, part.bytes)));
      }
      right = std::memcmp(expected.data(), row, row_bytes) == 0;
    }
    if (!right) {
      throw Failure(kExitNotSo, "mismatch",
                    fmt::format("{}: {} delivered wrong bytes for row {}", source.table.name, method, ids[i]));
    }
  }
}

}  // namespace rowtide::cli
