#include "store/resident_rows.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "base/error.h"
#include "base/log.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kDepth = 8;
constexpr std::uint64_t kChunkBytes = ResidentRows::kBufferBytes / kDepth;

}  // namespace

ResidentRows::ResidentRows(const Table& table, const RowMap& map, io::BlockSource& source, MemoryBudget& budget)
    : table_(table),
      map_(map),
      source_(source),
      budget_(budget),
      row_bytes_(table.row_bytes),
      run_reader_(source, map, table, kDepth, kBufferBytes),
      part_bytes_(map.parts().size()) {}

Result<std::unique_ptr<ResidentRows>> ResidentRows::start(const Table& table, const RowMap& map,
                                                          io::BlockSource& source, MemoryBudget& budget) {
  std::unique_ptr<ResidentRows> resident(new ResidentRows(table, map, source, budget));
  if (auto taken = resident->take_memory(); !taken) return taken.error();
  if (auto opened = resident->run_reader_.open(); !opened) return opened.error();
  resident->plan();
  try {
    resident->filler_ = std::thread([&filled = *resident] { filled.fill(); });
  } catch (const std::system_error& failure) {
    return make_error(ErrorCode::kResource, "table {}: no thread can be started to fill it: {}", table.name,
                      failure.what());
  }
  return resident;
}

ResidentRows::~ResidentRows() {
  stopping_ = true;
  if (filler_.joinable()) filler_.join();
  budget_.add_resident(-static_cast<std::int64_t>(filled() * row_bytes_));
  if (rows_ != nullptr) ::munmap(rows_, table_.bytes());
}

Result<void> ResidentRows::take_memory() {
  auto part = budget_.take(MemoryBudget::Use::kResident, table_.bytes());
  if (!part) return part.error();
  auto buffer_part = budget_.take(MemoryBudget::Use::kBuffers, kBufferBytes);
  if (!buffer_part) return buffer_part.error();
  memory_ = *std::move(part);
  buffer_memory_ = *std::move(buffer_part);
  void* memory =
      ::mmap(nullptr, table_.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    return make_error(ErrorCode::kResource, "table {}: the kernel has no room for its {} bytes", table_.name,
                      table_.bytes());
  }
  ::madvise(memory, table_.bytes(), MADV_HUGEPAGE);
  rows_ = static_cast<std::byte*>(memory);
  return {};
}

/// Next comes always the component that lies behind.
void ResidentRows::plan() {
  struct Progress {
    std::size_t piece = 0;
    std::uint64_t bytes = 0;
  };
  const auto& parts = map_.parts();
  std::vector<Progress> progress(parts.size());
  const auto rows_planned = [&](std::size_t component) { return progress[component].bytes / parts[component].bytes; };
  while (true) {
    std::uint32_t behind = 0;
    for (std::uint32_t component = 1; component < parts.size(); ++component) {
      if (rows_planned(component) < rows_planned(behind)) behind = component;
    }
    auto& [piece, bytes] = progress[behind];
    if (piece == parts[behind].pieces.size()) return;
    plan_one(behind, parts[behind].pieces[piece], bytes);
    bytes += chunks_.back().bytes;
    if (bytes == parts[behind].pieces[piece].end_row * parts[behind].bytes) ++piece;
  }
}

/// Up to the end of a block, so that none is read twice.
void ResidentRows::plan_one(std::uint32_t component, const RowMap::Piece& piece, std::uint64_t from) {
  const RowMap::Part& part = map_.parts()[component];
  const std::uint64_t block = source_.block_bytes();
  const std::uint64_t at = piece.offset + from - piece.first_row * part.bytes;
  const std::uint64_t begin = at / block * block;
  const std::uint64_t end = piece.offset + (piece.end_row - piece.first_row) * part.bytes;
  const std::uint64_t until = std::min(end, begin + kChunkBytes);
  const std::uint64_t bytes = (until - begin + block - 1) / block * block;
  runs_.push_back({piece.file, static_cast<std::uint32_t>(bytes), begin, 0, 0, component});
  chunks_.push_back({from, until - at, at - begin});
}

void ResidentRows::fill() {
  const auto filled = without_throwing([&]() -> Result<RunTotals> {
    if (auto started = run_reader_.start(runs_, *this, io::Urgency::kPrefetch, &stopping_); !started) {
      return started.error();
    }
    return run_reader_.finish();
  });
  if (filled || stopping_) return;
  log(LogLevel::kWarn,
      "table {}: filling it stopped at row {} of {}: {}; the rest is served from the "
      "cache and the files",
      table_.name, this->filled(), table_.rows, filled.error().message);
}

RowId ResidentRows::row_of(const Run& run) const {
  return chunks_[index_of(run)].from / map_.parts()[run.component].bytes;
}

void ResidentRows::deliver(const Run& run, const std::byte* bytes) {
  Chunk& chunk = chunks_[index_of(run)];
  place(map_.parts()[run.component], chunk.from, {bytes + chunk.skip, chunk.bytes});
  chunk.landed = true;
  publish();
}

/// Bytes of a component, from its byte `from` on, to where they belong in the rows.
void ResidentRows::place(const RowMap::Part& part, std::uint64_t from, std::span<const std::byte> bytes) {
  if (part.bytes == row_bytes_) {
    std::memcpy(rows_ + from, bytes.data(), bytes.size());
    return;
  }
  while (!bytes.empty()) {
    const std::uint64_t within = from % part.bytes;
    const std::size_t count = std::min<std::size_t>(part.bytes - within, bytes.size());
    std::memcpy(rows_ + from / part.bytes * row_bytes_ + part.at + within, bytes.data(), count);
    from += count;
    bytes = bytes.subspan(count);
  }
}

/// Rows count once they and all before them are there, with the parts of all components.
void ResidentRows::publish() {
  for (; published_ < runs_.size() && chunks_[published_].landed; ++published_) {
    part_bytes_[runs_[published_].component] += chunks_[published_].bytes;
  }
  RowId rows = table_.rows;
  for (std::size_t i = 0; i < part_bytes_.size(); ++i) rows = std::min(rows, part_bytes_[i] / map_.parts()[i].bytes);
  const RowId before = filled();
  filled_.store(rows, std::memory_order_release);
  budget_.add_resident(static_cast<std::int64_t>((rows - before) * row_bytes_));
}

}  // namespace rowtide
