// Once a reader has done a batch of a size, more of that size allocate nothing.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/emulated.h"
#include "support/random_table.h"
#include "support/soon.h"

namespace {
std::atomic<std::uint64_t> allocations = 0;  // of all threads
}

[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes != 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ++allocations;
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace rowtide {
namespace {

struct Way {
  const char* name;
  bool uring;
  Mode mode;
};
constexpr Way kWays[] = {{"uring_disk", true, Mode::kDisk},
                         {"pread_disk", false, Mode::kDisk},
                         {"uring_cache", true, Mode::kCache},
                         {"pread_cache", false, Mode::kCache},
                         {"resident", true, Mode::kResident}};

class Allocations : public testing::TestWithParam<Way> {};
INSTANTIATE_TEST_SUITE_P(, Allocations, testing::ValuesIn(kWays), [](const auto& way) { return way.param.name; });

TEST_P(Allocations, AreNoneFromTheSecondBatchOn) {
  if (is_emulated()) GTEST_SKIP() << "batches take so long that the looks for memory pressure fall into them";
  constexpr std::size_t kBatches = 5, kRowsMost = 20'000;
  TempDir dir;
  Table table = make_random_table(dir, {.extent_rows = {kBatches * kRowsMost}}, 1);
  table.bundle_rows = 8;
  for (const std::size_t rows : {16u, 48u, 2048u, 20'000u}) {
    auto store =
        *open_store(table, *io::open_block_source(RowMap::make(table)->paths(), {.allow_uring = GetParam().uring}),
                    {.memory_bytes = std::uint64_t{96} << 20, .mode = GetParam().mode, .queue_depth = 64});
    if (GetParam().mode == Mode::kResident) {
      ASSERT_TRUE(soon([&] { return store->counters().resident_rows == table.rows; }));
    }
    auto reader = *store->reader();
    std::vector<std::byte> out(rows * table.row_bytes);
    std::vector<float> decoded(rows * table.row_values);
    std::vector<RowId> ids(rows);
    std::vector<std::uint64_t> allocated;
    allocated.reserve(kBatches);
    for (std::size_t batch = 0; batch < kBatches; ++batch) {
      // All new to the cache, with the same neighbours: as many reads in each batch.
      for (std::size_t i = 0; i < rows; ++i) ids[i] = batch * kRowsMost + i * 7919 % kRowsMost;
      const std::uint64_t before = allocations;
      ASSERT_TRUE(reader->read(ids, raw(out)).ok());
      ASSERT_TRUE(reader->read(ids, f32(decoded)).ok());  // in the cache now, where there is one
      allocated.push_back(allocations - before);
      ASSERT_EQ(out, reference_rows(table, ids));
    }
    // A batch that fills a segment of the cache may make its lists of segments longer.
    const std::uint64_t most = GetParam().mode == Mode::kCache && rows > 10'000 ? 2 : 0;
    for (std::size_t batch = 1; batch < kBatches; ++batch) {
      EXPECT_LE(allocated[batch], most) << "batch " << batch << " of " << rows << " rows; the first allocated "
                                        << allocated[0];
    }
  }
}

}  // namespace
}  // namespace rowtide
