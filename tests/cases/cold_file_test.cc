// A file that nobody has read: what the kernel counts while batches of it come, and afterwards.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <random>
#include <vector>

#include "io/page_cache.h"
#include "store/batch_plan.h"
#include "store/open_store.h"
#include "support/emulated.h"
#include "support/process_memory.h"
#include "support/random_table.h"
#include "support/real_cgroup.h"
#include "support/soon.h"

namespace rowtide {
namespace {

std::uint64_t major_faults() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_majflt);
}
std::uint64_t bytes_from_disk() { return process_number("/proc/self/io", "read_bytes:"); }

class ColdFile : public testing::Test {
 protected:
  void SetUp() override {
    if (lies_in_memory(dir_.file(""))) GTEST_SKIP() << "the folder for temporary files lies in memory";
    table_ = make_random_table(dir_, {.format = RowFormat::kBf16, .row_values = 80, .extent_rows = {200'000}}, 1);
    table_.bundle_rows = 8;
    std::mt19937_64 random(2);
    for (RowId& id : ids_) id = random() % table_.rows;
  }
  const std::string& path() const { return table_.components[0].extents[0].path; }
  void make_cold() const {
    const auto cold = io::make_cold(path());
    ASSERT_TRUE(cold.ok()) << cold.error().message;
  }
  /// Blocks, or pages, that hold a byte of one of the rows.
  std::uint64_t blocks(std::uint32_t bytes = 4096) const {
    BatchPlan plan;
    for (const RowId id : ids_) plan.add(id, 0);
    plan.make(*RowMap::make(table_), table_.rows, bytes, bytes);
    return plan.blocks();
  }
  static std::uint32_t page_bytes() { return static_cast<std::uint32_t>(::sysconf(_SC_PAGESIZE)); }
  /// Beyond the block by which the ways of reading are tried.
  std::uint64_t bytes_in_page_cache() const { return *io::resident_bytes(path(), 2 * page_bytes()); }
  bool reads_past_the_page_cache(const Store& store) const {
    return store.method().find("direct I/O") != std::string::npos;
  }

  TempDir dir_;
  Table table_;  // 30 MiB
  std::vector<RowId> ids_ = std::vector<RowId>(2048);
};

// A mapping that was advised to expect random reads stops at every block; a batch stops at none, brings no more than
// its blocks, and leaves the page cache to others.
TEST_F(ColdFile, ABatchFaultsNowhereAndBringsItsBlocksAlone) {
  make_cold();
  const int descriptor = ::open(path().c_str(), O_RDONLY | O_CLOEXEC);
  const std::uint64_t length = table_.components[0].extents[0].offset + table_.bytes();
  void* const mapping = ::mmap(nullptr, length, PROT_READ, MAP_PRIVATE, descriptor, 0);
  ASSERT_NE(mapping, MAP_FAILED);
  ::madvise(mapping, length, MADV_RANDOM);
  std::uint64_t before = major_faults();
  std::vector<std::byte> out(ids_.size() * table_.row_bytes);
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    std::memcpy(
        out.data() + i * table_.row_bytes,
        static_cast<const std::byte*>(mapping) + table_.components[0].extents[0].offset + ids_[i] * table_.row_bytes,
        table_.row_bytes);
  }
  const std::uint64_t of_the_mapping = major_faults() - before;
  ::munmap(mapping, length);
  ::close(descriptor);
  if (!is_emulated()) {  // an emulator drops the advice
    EXPECT_GE(of_the_mapping, blocks(page_bytes()) * 9 / 10);
  }

  make_cold();
  auto store = *Store::open(table_, {.memory_bytes = std::uint64_t{64} << 20});
  auto reader = *store->reader();
  const std::vector<std::byte> expected = std::move(out);
  out.assign(expected.size(), std::byte{0});
  before = major_faults();
  const std::uint64_t disk_before = bytes_from_disk();
  ASSERT_TRUE(reader->read(ids_, raw(out)).ok());
  EXPECT_LE(major_faults() - before, 2u);  // of the program's own pages
  EXPECT_EQ(out, expected);
  const Counters done = store->counters();
  EXPECT_EQ(done.blocks, blocks());
  EXPECT_LE(done.bytes_read, blocks() * 4096);
  if (!reads_past_the_page_cache(*store)) return;
  EXPECT_LE(bytes_from_disk() - disk_before, done.bytes_read);
  EXPECT_EQ(bytes_in_page_cache(), 0u);
}

// Asked to be resident: once it is, nothing is read from the file, and the page cache holds no second copy.
TEST_F(ColdFile, AResidentTableNeedsItNoMore) {
  make_cold();
  auto store = *Store::open(table_, {.mode = Mode::kResident});
  ASSERT_TRUE(soon([&] { return store->counters().resident_rows == table_.rows; }));
  auto reader = *store->reader();
  const std::uint64_t before = bytes_from_disk();
  std::vector<std::byte> out(ids_.size() * table_.row_bytes);
  ASSERT_TRUE(reader->read(ids_, raw(out)).ok());
  EXPECT_EQ(bytes_from_disk(), before);
  EXPECT_EQ(store->counters().reads, 0u);
  if (reads_past_the_page_cache(*store)) {
    EXPECT_EQ(bytes_in_page_cache(), 0u);
  }
  EXPECT_EQ(out, reference_rows(table_, ids_));
}

}  // namespace
}  // namespace rowtide
