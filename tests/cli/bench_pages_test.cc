// `bench rows` on kernels whose pages are larger than this one's: every multiple of a page may stand in for one.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "cli/bench/rows_method.h"
#include "cli/bench/rows_state.h"
#include "support/random_table.h"

namespace rowtide::cli {
namespace {

constexpr std::uint64_t kPageBytes = 65536;

class BenchPages : public testing::Test {
 protected:
  BenchPages() {
    source_.table = make_random_table(dir_, {.extent_rows = {60'000, 20'000}}, 1);
    source_.map = *RowMap::make(source_.table);
    source_.page_bytes = kPageBytes;
    std::mt19937_64 random(2);
    for (RowId& id : ids_) id = random() % source_.table.rows;
    ids_.back() = source_.table.rows - 1;  // its page reaches beyond the file
  }

  TempDir dir_;
  BenchSource source_;
  std::vector<RowId> ids_ = std::vector<RowId>(50);
};

TEST_F(BenchPages, AreThoseThatRowsLieIn) {
  std::vector<Page> pages;
  pages_of(source_, ids_, pages, kPageBytes);
  EXPECT_TRUE(std::is_sorted(pages.begin(), pages.end()));
  EXPECT_EQ(std::adjacent_find(pages.begin(), pages.end()), pages.end());
  for (const RowId id : ids_) {
    const auto place = source_.map.parts()[0].place(id);
    for (const std::uint64_t at : {place.offset, place.offset + source_.table.row_bytes - 1}) {
      EXPECT_TRUE(std::binary_search(pages.begin(), pages.end(), Page{place.file, at / kPageBytes})) << id;
    }
  }
}

TEST_F(BenchPages, AreCachedAndFoundThere) {
  cache_rows(source_, ids_);
  EXPECT_EQ(cached_share(source_, ids_), 1);
}

TEST_F(BenchPages, AreMappedAndCopied) {
  const std::vector<std::byte> expected = reference_rows(source_.table, ids_);
  for (const char* name : {"memcpy", "mmap", "mmap_random", "mmap_willneed"}) {
    std::vector<std::byte> out(expected.size());
    open_method(name, source_, {}, ids_)->gather(ids_, out.data());
    EXPECT_EQ(out, expected) << name;
  }
}

}  // namespace
}  // namespace rowtide::cli
