#include <gtest/gtest.h>

#include <fstream>

#include "rowtide/table.h"
#include "support/memory_disk.h"
#include "support/temp_dir.h"

namespace rowtide {
namespace {

class TableAt : public testing::Test {
 protected:
  TableAt() : path_(dir_.file("rows")) { std::ofstream(path_) << std::string(1000 + 50 * 90, 'x'); }

  Result<Table> at(std::uint64_t offset, std::uint64_t rows, std::uint64_t row_values) {
    return table_at("embd.weight", path_, offset, rows, row_values, RowFormat::kIq4Nl);
  }

  TempDir dir_;
  std::string path_;
};

TEST_F(TableAt, DescribesRowsInsideTheFile) {
  auto table = at(1000, 50, 160);
  ASSERT_TRUE(table.ok()) << table.error().message;
  EXPECT_EQ(table->name, "embd.weight");
  EXPECT_EQ(table->rows, 50u);
  EXPECT_EQ(table->row_values, 160u);
  EXPECT_EQ(table->row_bytes, 90u);
  EXPECT_EQ(table->row_format, RowFormat::kIq4Nl);
  EXPECT_EQ(table->addressing, nullptr);
  ASSERT_EQ(table->components.size(), 1u);
  EXPECT_EQ(table->components[0].name, "values");
  EXPECT_EQ(table->components[0].row_bytes, table->row_bytes);
  ASSERT_EQ(table->components[0].extents.size(), 1u);
  EXPECT_EQ(table->components[0].extents[0].path, path_);
  EXPECT_EQ(table->components[0].extents[0].offset, 1000u);
  EXPECT_EQ(table->components[0].extents[0].rows, 50u);
  auto identity = table_identity(*table);
  ASSERT_TRUE(identity.ok()) << identity.error().message;
  EXPECT_EQ(identity->size(), 32u);
}

TEST_F(TableAt, RefusesRowsOutsideTheFile) {
  const ErrorCode malformed = ErrorCode::kMalformed;
  expect_refused(at(1001, 50, 160), malformed, {path_, "'embd.weight'", "50 rows", "offset 1001", "5500 bytes"});
  expect_refused(at(1000, 51, 160), malformed, {"51 rows"});
  expect_refused(at(~std::uint64_t{0}, 50, 160), malformed, {"offset 18446744073709551615"});
  expect_refused(at(0, ~std::uint64_t{0}, 160), malformed, {"18446744073709551615 rows"});
}

TEST_F(TableAt, RefusesWhatIsNoTable) {
  expect_refused(at(1000, 0, 160), ErrorCode::kUsage, {path_, "'embd.weight'", "0 rows"});
  expect_refused(at(1000, 50, 0), ErrorCode::kUsage, {"0 iq4_nl values"});
  expect_refused(at(1000, 50, 161), ErrorCode::kUsage, {"161 iq4_nl values"});
  expect_refused(table_at("t", dir_.file("none"), 0, 1, 32, RowFormat::kF32), ErrorCode::kNotFound,
                 {dir_.file("none")});
}

}  // namespace
}  // namespace rowtide
