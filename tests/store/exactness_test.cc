// Whatever happens at once (evictions, hints, several readers, reads that fail, modes): a batch is exact or an error,
// and what was meant for a batch that failed is never served.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <random>
#include <thread>

#include "fault/faulty_source.h"
#include "support/random_table.h"
#include "support/sanitized.h"
#include "support/virtual_drive.h"

namespace rowtide {
namespace {

/// About one read in `one_in` fails, by a rule; 0: none.
io::Spoil failing(std::uint64_t one_in) {
  return [one_in](std::uint64_t number, const io::ReadRequest&, std::int32_t result) {
    return one_in != 0 && splitmix64(number) % one_in == 0 ? -EIO : result;
  };
}

std::vector<RowId> bundle_ids(std::mt19937_64& random, const Table& table, std::size_t rows) {
  std::vector<RowId> ids(rows);
  const std::uint64_t hot = random() % 4 == 0 ? table.rows : table.rows / 16;
  for (std::size_t i = 0; i < rows; ++i) {
    const RowId first = random() % hot;
    // The rows of a bundle follow from its first; now and then one differs, which makes it another bundle.
    for (std::size_t head = 0; head < table.bundle_rows && i < rows; ++head, ++i) {
      ids[i] = (first * 31 + head * 977 + (random() % 64 == 0 ? 1 : 0)) % table.rows;
    }
    --i;
  }
  return ids;
}

std::vector<std::byte> as_asked(const Table& table, std::vector<std::byte> rows, Output::Form form) {
  if (form == Output::Form::kRaw) return rows;
  const std::uint64_t count = rows.size() / table.row_bytes;
  const std::uint64_t values = count * table.row_values;
  std::vector<std::byte> out(values * (form == Output::Form::kF32 ? sizeof(float) : sizeof(std::uint16_t)));
  if (form == Output::Form::kF32) {
    decode_f32(table.coding(), rows.data(), count, reinterpret_cast<float*>(out.data()));
  } else {
    decode_bf16(table.coding(), rows.data(), count, reinterpret_cast<std::uint16_t*>(out.data()));
  }
  return out;
}

struct Tally {
  std::atomic<int> exact = 0, failed = 0;
};

void read_at_random(Store& store, unsigned seed, int batches, Tally& tally) {
  const Table& table = store.table();
  std::mt19937_64 random(seed);
  auto reader = *store.reader();
  std::vector<std::byte> out;
  for (int batch = 0; batch < batches; ++batch) {
    const std::size_t sizes[] = {1, 16, 48, 600, 3000};
    const auto ids = bundle_ids(random, table, sizes[random() % 5] + random() % 3);
    if (random() % 8 == 0) store.prefetch(bundle_ids(random, table, 512));
    const bool by_rule = table.components[0].extents[0].path.starts_with("no-such-folder");
    const auto form = by_rule ? Output::Form::kRaw : static_cast<Output::Form>(random() % 3);
    out.assign(as_asked(table, std::vector<std::byte>(ids.size() * table.row_bytes), form).size(), std::byte{0xAA});
    auto read = reader->begin(ids, {form, out.data(), out.size()});
    if (read && random() % 16 == 0) {  // a reader that goes with its batch in flight
      reader = *store.reader();
      continue;
    }
    if (read) read = reader->finish();
    ++(read ? tally.exact : tally.failed);
    if (!read) {
      ASSERT_EQ(read.error().code, ErrorCode::kIo) << read.error().message;
      continue;
    }
    if (by_rule) {
      ASSERT_TRUE(are_rule_rows(table, ids, out));
    } else {
      ASSERT_TRUE(out == as_asked(table, reference_rows(table, ids), form));
    }
  }
}

void read_by_several(Store& store, std::uint64_t one_in, int batches) {
  Tally tally;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] { read_at_random(store, t + 1, batches, tally); });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_GT(tally.exact, 0);
  if (one_in != 0 && store.mode() != Mode::kResident) {
    EXPECT_GT(tally.failed, 0);
  }
  if (one_in == 0) {
    EXPECT_EQ(tally.failed, 0);
  }
  const Counters done = store.counters();
  EXPECT_LE(done.memory_bytes, done.budget_bytes);
  if (store.mode() == Mode::kDisk) {
    EXPECT_EQ(done.hits, 0u);
  } else if (one_in != 32) {  // of which large batches, that is most rows, fail
    EXPECT_GT(done.hits, 0u);
  }
}

struct Setting {
  std::uint64_t one_in;
  Mode mode;
};
class Exactness : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(, Exactness,
                         testing::Values(Setting{0, Mode::kCache}, Setting{1000, Mode::kCache},
                                         Setting{32, Mode::kCache}, Setting{1000, Mode::kDisk},
                                         Setting{32, Mode::kDisk}, Setting{0, Mode::kResident},
                                         Setting{1000, Mode::kResident}),
                         [](const auto& setting) {
                           return std::string(mode_name(setting.param.mode)) + "_" +
                                  std::to_string(setting.param.one_in);
                         });

TEST_P(Exactness, OfTablesByRule) {
  for (const auto& [bundle_rows, split] : {std::pair(8u, 0u), {3u, 0u}, {1u, 0u}, {8u, 30u}, {3u, 513u}}) {
    auto drive = std::make_shared<VirtualDrive>(rule_table(1024, {30'000, 1, 20'001}, bundle_rows, split));  // 49 MiB
    const std::uint64_t memory = GetParam().mode == Mode::kResident ? 256 * kMiB : 48 * kMiB;
    auto store = open_store(
        drive->table(),
        std::make_unique<io::FaultySource>(std::make_unique<VirtualSource>(drive, 64), failing(GetParam().one_in)),
        {.memory_bytes = memory, .mode = GetParam().mode, .queue_depth = 64});
    ASSERT_TRUE(store.ok()) << store.error().message;
    read_by_several(**store, GetParam().one_in, is_slow() ? 12 : 40);
  }
}

TEST_P(Exactness, OfTablesInFiles) {
  const RandomTableShape shapes[] = {
      {.extent_rows = {9'000, 12'000}},
      {.format = RowFormat::kFp8Ue8m0,
       .row_values = 256,
       .extent_rows = {9'000, 12'000},
       .parts = {{8, {20'000, 1'000}}}},
      {.format = RowFormat::kNvfp4, .extent_rows = {21'000}, .parts = {{10, {1, 20'999}}}, .scale = 0.001F}};
  for (const RandomTableShape& shape : shapes) {
    TempDir dir;
    Table table = make_random_table(dir, shape, 1);
    table.bundle_rows = 8;
    auto store = open_store(table,
                            std::make_unique<io::FaultySource>(*io::open_block_source(RowMap::make(table)->paths(), {}),
                                                               failing(GetParam().one_in)),
                            {.memory_bytes = 96 * kMiB, .mode = GetParam().mode, .queue_depth = 64});
    ASSERT_TRUE(store.ok()) << store.error().message;
    read_by_several(**store, GetParam().one_in, is_slow() ? 10 : 25);
  }
}

/// A cached store over reads that fail while `broken`.
class CacheAfterFailures : public testing::Test {
 protected:
  CacheAfterFailures() {
    for (RowId id = 0; id < 800; ++id) ids_.push_back(id * 97);
    out_.resize(ids_.size() * drive_->table().row_bytes);
  }

  std::shared_ptr<VirtualDrive> drive_ = std::make_shared<VirtualDrive>(rule_table(90, {1'000'000}, 8));
  std::atomic<bool> broken_ = true;
  std::shared_ptr<Store> store_ = *open_store(
      drive_->table(),
      std::make_unique<io::FaultySource>(std::make_unique<VirtualSource>(drive_, 64),
                                         [this](std::uint64_t number, const io::ReadRequest&, std::int32_t result) {
                                           return broken_ && number % 100 == 99 ? -EIO : result;
                                         }),
      {.memory_bytes = 32 * kMiB, .queue_depth = 64});
  std::unique_ptr<Reader> reader_ = *store_->reader();
  std::vector<RowId> ids_;
  std::vector<std::byte> out_;
};

// Most of its rows had come when the batch failed; none of them may be found.
TEST_F(CacheAfterFailures, NothingOfABatchThatFailedIsVisible) {
  ASSERT_FALSE(reader_->read(ids_, raw(out_)).ok());
  EXPECT_EQ(store_->counters().batches, 0u);
  broken_ = false;
  ASSERT_TRUE(reads_rule_rows(*reader_, drive_->table(), ids_));
  EXPECT_EQ(store_->counters().hits, 0u);
  ASSERT_TRUE(reads_rule_rows(*reader_, drive_->table(), ids_));
  EXPECT_EQ(store_->counters().hits, ids_.size());
}

// The places that failed batches had are used again: the cache takes and keeps bundles as before.
TEST_F(CacheAfterFailures, TheCacheLosesNoRoom) {
  for (int batch = 0; batch < 1000; ++batch) ASSERT_FALSE(reader_->read(ids_, raw(out_)).ok());  // 70 MiB of places
  broken_ = false;
  ASSERT_TRUE(reads_rule_rows(*reader_, drive_->table(), ids_));
  ASSERT_TRUE(reads_rule_rows(*reader_, drive_->table(), ids_));
  EXPECT_EQ(store_->counters().hits, ids_.size());
  EXPECT_LE(store_->counters().memory_bytes, store_->counters().budget_bytes);
}

// A batch that nobody finishes gives its places back with its reader.
TEST_F(CacheAfterFailures, BatchesGivenUpLeaveNothingBehind) {
  broken_ = false;
  for (int round = 0; round < 200; ++round) {
    auto other = *store_->reader();
    ASSERT_TRUE(other->begin(ids_, raw(out_)).ok());
  }
  ASSERT_TRUE(reads_rule_rows(*reader_, drive_->table(), ids_));
  EXPECT_EQ(store_->counters().hits, 0u);
  ASSERT_TRUE(reads_rule_rows(*reader_, drive_->table(), ids_));
  EXPECT_EQ(store_->counters().hits, ids_.size());
}

}  // namespace
}  // namespace rowtide
