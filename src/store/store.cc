#include "rowtide/store.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <system_error>

#include "base/error.h"
#include "base/log.h"
#include "io/drive.h"
#include "rowtide/byte_size.h"
#include "store/open_store.h"
#include "store/prefetcher.h"
#include "store/residency.h"
#include "store/store_reader.h"
#include "store/store_shared.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kDepthDefault = 256;
constexpr std::uint32_t kDepthMax = 1024;

/// As asked, else as calibrated for the device that the table lies on.
std::uint32_t depth_of(const StoreOptions& options, const Table& table) {
  if (options.queue_depth != 0) return options.queue_depth;
  return io::calibrated_depth(table.components.front().extents.front().path).value_or(kDepthDefault);
}

class OpenStore final : public Store {
 public:
  explicit OpenStore(std::shared_ptr<StoreShared> shared, Mode mode)
      : shared_(std::move(shared)),
        mode_(mode),
        method_(fmt::format("{}, depth {}", shared_->source->method(), shared_->depth)) {}

  const Table& table() const override { return shared_->table; }
  const std::string& method() const override { return method_; }
  Mode mode() const override { return mode_; }

  Result<std::unique_ptr<Reader>> reader() override {
    return without_throwing([&]() -> Result<std::unique_ptr<Reader>> {
      auto reader = StoreReader::make(shared_);
      if (!reader) return reader.error();
      return std::unique_ptr<Reader>(*std::move(reader));
    });
  }

  void prefetch(std::span<const RowId> ids) override {
    const bool valid = std::all_of(ids.begin(), ids.end(), [this](RowId id) { return id < shared_->table.rows; });
    if (shared_->cache == nullptr || !valid) return;
    const auto hinted = without_throwing([&]() -> Result<void> {
      Prefetcher* const prefetcher = started_prefetcher();
      if (prefetcher != nullptr) prefetcher->add(ids);
      return {};
    });
    (void)hinted;  // a hint may be lost
  }

  Counters counters() const override {
    Counters now = shared_->totals.snapshot();
    const MemoryBudget& budget = *shared_->budget;
    now.budget_bytes = budget.bytes();
    now.cache_bytes = budget.cache_bytes();
    now.index_bytes = budget.used(MemoryBudget::Use::kIndex);
    now.resident_bytes = budget.resident_bytes();
    now.buffer_bytes = budget.used(MemoryBudget::Use::kBuffers);
    now.memory_bytes = now.cache_bytes + now.index_bytes + now.resident_bytes + now.buffer_bytes;
    now.resident_rows = shared_->resident ? shared_->resident->filled() : 0;
    return now;
  }

 private:
  /// Null where none can be started, which is tried once.
  Prefetcher* started_prefetcher() {
    std::lock_guard lock(prefetcher_mutex_);
    if (!prefetcher_ && !prefetcher_refused_) {
      auto started = Prefetcher::start(shared_);
      if (started) {
        prefetcher_ = *std::move(started);
      } else {
        prefetcher_refused_ = true;
        log(LogLevel::kWarn, "table {}: hints are not followed: {}", shared_->table.name, started.error().message);
      }
    }
    return prefetcher_.get();
  }

  const std::shared_ptr<StoreShared> shared_;
  const Mode mode_;
  const std::string method_;
  std::mutex prefetcher_mutex_;
  std::unique_ptr<Prefetcher> prefetcher_;
  bool prefetcher_refused_ = false;
};

/// The files are those that the table was found in, and hold it.
Result<void> check_files(const Table& table, const RowMap& map, const io::BlockSource& source) {
  const auto& paths = map.paths();
  for (const Component& component : table.components) {
    for (const Extent& extent : component.extents) {
      const auto file = static_cast<std::uint32_t>(std::find(paths.begin(), paths.end(), extent.path) - paths.begin());
      const std::uint64_t end = extent.offset + extent.rows * component.row_bytes;  // RowMap::make checked the sum
      if (end > source.file_bytes(file)) {
        return make_error(ErrorCode::kMalformed, "{}: table {} needs {} bytes, the file has {}; it was cut short",
                          extent.path, table.name, end, source.file_bytes(file));
      }
      const std::uint64_t now = source.stamp(file);
      if (extent.file_stamp == 0 || now == 0 || now == extent.file_stamp) continue;
      return make_error(ErrorCode::kMismatch,
                        "{}: was replaced or written to after the checkpoint was opened, so table {} may not lie there "
                        "any more; open the checkpoint again",
                        extent.path, table.name);
    }
  }
  return {};
}

Result<void> use_cache(StoreShared& shared) {
  auto cache = shared.budget->cache();
  if (!cache) return cache.error();
  const Table& table = shared.table;
  auto index = shared.budget->take(MemoryBudget::Use::kIndex,
                                   (*cache)->index_bytes(table.bundle_rows, table.row_bytes, table.rows));
  if (!index) return index.error();
  shared.index_memory = *std::move(index);
  shared.cached = (*cache)->add_table(table.bundle_rows, table.row_bytes, table.rows);
  shared.cache = *cache;
  try {
    shared.index_commit = std::jthread([table = shared.cached] { table->commit(); });
  } catch (const std::system_error&) {
    // Then it is provided as it is touched.
    return {};
  }
  return {};
}

/// Opens a store over files that `map` names and `source` has open.
Result<std::shared_ptr<Store>> serve(Table table, RowMap map, std::unique_ptr<io::BlockSource> source,
                                     std::uint32_t depth, const StoreOptions& options) {
  if (table.bundle_rows == 0 || table.bundle_rows > kBundleRowsMax) {
    return make_error(ErrorCode::kUsage, "table {}: bundles of {} rows; 1 to {} can be served", table.name,
                      table.bundle_rows, kBundleRowsMax);
  }
  if (auto fits = check_files(table, map, *source); !fits) return fits.error();
  auto residency = decide_residency(table, options);
  if (!residency) return residency.error();
  if (!residency->reason.empty()) log(LogLevel::kInfo, "table {}: mode {}", table.name, residency->reason);

  auto shared = std::make_shared<StoreShared>();
  shared->table = std::move(table);
  shared->map = std::move(map);
  shared->source = std::move(source);
  shared->depth = depth;
  shared->budget = std::move(residency->budget);
  if (residency->mode == Mode::kResident) {
    auto resident = ResidentRows::start(shared->table, shared->map, *shared->source, *shared->budget);
    if (!resident) return resident.error();
    shared->resident = *std::move(resident);
  }
  if (residency->mode != Mode::kDisk) {
    if (auto cached = use_cache(*shared); !cached) return cached.error();
  }
  return std::shared_ptr<Store>(std::make_shared<OpenStore>(std::move(shared), residency->mode));
}

}  // namespace

Result<void> check_options(const StoreOptions& options) {
  if (options.queue_depth > kDepthMax) {
    return make_error(ErrorCode::kUsage, "queue depth {} is more than {}", options.queue_depth, kDepthMax);
  }
  if (options.memory_bytes != 0 && options.memory_bytes < kMemoryBytesMin) {
    return make_error(ErrorCode::kUsage, "a memory budget of {} bytes is too small; give {} or more",
                      options.memory_bytes, byte_size_text(kMemoryBytesMin));
  }
  return {};
}

Result<std::shared_ptr<Store>> open_store(Table table, std::unique_ptr<io::BlockSource> source,
                                          const StoreOptions& options) {
  if (auto valid = check_options(options); !valid) return valid.error();
  auto map = RowMap::make(table);
  if (!map) return map.error();
  const std::uint32_t depth = depth_of(options, table);
  return serve(std::move(table), *std::move(map), std::move(source), depth, options);
}

Result<std::shared_ptr<Store>> Store::open(Table table, StoreOptions options) {
  return without_throwing([&]() -> Result<std::shared_ptr<Store>> {
    if (auto valid = check_options(options); !valid) return valid.error();
    auto map = RowMap::make(table);
    if (!map) return map.error();
    const std::uint32_t depth = depth_of(options, table);
    auto source = io::open_block_source(map->paths(), {.depth = depth});
    if (!source) return source.error();
    return serve(std::move(table), *std::move(map), *std::move(source), depth, options);
  });
}

}  // namespace rowtide
