#include "store/disk_store.h"

#include <algorithm>
#include <atomic>
#include <new>

#include "base/checked.h"
#include "base/error.h"
#include "store/disk_reader.h"

namespace rowtide {
namespace {

constexpr std::uint32_t kDepthDefault = 64;
constexpr std::uint32_t kDepthMax = 1024;

class DiskStore final : public Store, public std::enable_shared_from_this<DiskStore> {
 public:
  DiskStore(Table table, RowMap map, std::unique_ptr<io::BlockSource> source, std::uint32_t depth)
      : shared_{std::move(table), std::move(map), std::move(source), depth, {}},
        method_(fmt::format("{}, depth {}", shared_.source->method(), depth)) {}

  const Table& table() const override { return shared_.table; }
  const std::string& method() const override { return method_; }

  Result<std::unique_ptr<Reader>> reader() override {
    // The reader refers to the store's members, so it keeps the store alive.
    return without_throwing(
        [&] { return make_disk_reader(std::shared_ptr<StoreShared>(shared_from_this(), &shared_)); });
  }

  Counters counters() const override { return shared_.totals.snapshot(); }

 private:
  StoreShared shared_;
  std::string method_;
};

Result<void> check_files(const Table& table, const RowMap& map, const io::BlockSource& source) {
  for (const Extent& extent : table.extents) {
    const auto& paths = map.paths();
    const auto file = static_cast<std::uint32_t>(std::find(paths.begin(), paths.end(), extent.path) - paths.begin());
    const std::uint64_t end = extent.offset + extent.rows * table.row_bytes;  // RowMap::make checked the sum
    if (end > source.file_bytes(file)) {
      return make_error(ErrorCode::kMalformed, "{}: table {} needs {} bytes, the file has {}; it was cut short",
                        extent.path, table.name, end, source.file_bytes(file));
    }
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<Store>> open_store(Table table, std::unique_ptr<io::BlockSource> source,
                                          const StoreOptions& options) {
  if (options.queue_depth > kDepthMax) {
    return make_error(ErrorCode::kUsage, "queue depth {} is more than {}", options.queue_depth, kDepthMax);
  }
  const std::uint32_t depth = options.queue_depth != 0 ? options.queue_depth : kDepthDefault;
  auto map = RowMap::make(table);
  if (!map) return map.error();
  if (auto fits = check_files(table, *map, *source); !fits) return fits.error();
  return std::shared_ptr<Store>(
      std::make_shared<DiskStore>(std::move(table), *std::move(map), std::move(source), depth));
}

Result<std::shared_ptr<Store>> Store::open(Table table, StoreOptions options) {
  return without_throwing([&]() -> Result<std::shared_ptr<Store>> {
    auto map = RowMap::make(table);
    if (!map) return map.error();
    const std::uint32_t depth = options.queue_depth != 0 ? options.queue_depth : kDepthDefault;
    auto source = io::open_block_source(map->paths(), {.depth = std::min(depth, kDepthMax)});
    if (!source) return source.error();
    return open_store(std::move(table), *std::move(source), options);
  });
}

}  // namespace rowtide
