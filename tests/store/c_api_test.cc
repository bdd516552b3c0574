#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "rowtide/checkpoint.h"
#include "rowtide/rowtide.h"
#include "rowtide/store.h"
#include "store/c_api_compiles.h"

namespace rowtide {
namespace {

const std::string kModel = ROWTIDE_SOURCE_DIR "/models/tidepool.gguf";

// Handles that close themselves, so that a failed expectation leaks nothing.
template <class Handle, void (*close)(Handle*)>
struct Closer {
  void operator()(Handle* handle) const { close(handle); }
};
template <class Handle, void (*close)(Handle*)>
using Owned = std::unique_ptr<Handle, Closer<Handle, close>>;
using OwnedCheckpoint = Owned<rowtide_checkpoint, rowtide_checkpoint_close>;
using OwnedTable = Owned<rowtide_table, rowtide_table_close>;
using OwnedStore = Owned<rowtide_store, rowtide_store_close>;
using OwnedReader = Owned<rowtide_reader, rowtide_reader_close>;
using OwnedError = Owned<rowtide_error, rowtide_error_free>;

void expect_ok(rowtide_error* raw_error) {
  const OwnedError error(raw_error);
  EXPECT_EQ(error.get(), nullptr) << rowtide_error_message(error.get());
}

void expect_error(rowtide_error* raw_error, std::int32_t code, const std::string& named) {
  const OwnedError error(raw_error);
  ASSERT_NE(error, nullptr) << named;
  EXPECT_EQ(rowtide_error_code(error.get()), code) << rowtide_error_message(error.get());
  EXPECT_NE(std::string(rowtide_error_message(error.get())).find(named), std::string::npos)
      << rowtide_error_message(error.get());
}

OwnedCheckpoint open_model() {
  rowtide_checkpoint* checkpoint = nullptr;
  expect_ok(rowtide_checkpoint_open(kModel.c_str(), &checkpoint));
  return OwnedCheckpoint(checkpoint);
}

OwnedStore open_store_of(const rowtide_table* table) {
  rowtide_store* store = nullptr;
  expect_ok(rowtide_store_open(table, nullptr, &store));
  return OwnedStore(store);
}

OwnedReader open_reader_of(const OwnedStore& store) {
  rowtide_reader* reader = nullptr;
  expect_ok(rowtide_reader_open(store.get(), &reader));
  return OwnedReader(reader);
}

// The C++ view of the same table.
Table model_table() {
  auto checkpoint = Checkpoint::open(kModel);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->tables().size(), 1U);
  return checkpoint->tables().front();
}

// The rows' bytes by one plain read each.
std::vector<std::byte> rows_by_pread(const Table& table, const std::vector<RowId>& ids) {
  std::vector<std::byte> bytes(ids.size() * table.row_bytes);
  const Extent& extent = table.components.front().extents.front();
  EXPECT_EQ(table.components.front().extents.size(), 1U);
  const int file = ::open(extent.path.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_GE(file, 0);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto offset = static_cast<off_t>(extent.offset + ids[i] * table.row_bytes);
    const ssize_t got = ::pread(file, bytes.data() + i * table.row_bytes, table.row_bytes, offset);
    EXPECT_EQ(got, static_cast<ssize_t>(table.row_bytes));
  }
  ::close(file);
  return bytes;
}

// Spread over the table, with its first and last row and duplicates.
std::vector<RowId> some_rows(const Table& table) {
  std::vector<RowId> ids = {table.rows - 1, 0, 0};
  for (RowId i = 0; i < 500; ++i) ids.push_back(i * 7919 % table.rows);
  ids.push_back(table.rows - 1);
  return ids;
}

TEST(CApi, KnowsItsVersion) {
  EXPECT_EQ(rowtide_version(), static_cast<std::uint32_t>(ROWTIDE_VERSION));
  std::ifstream file(ROWTIDE_SOURCE_DIR "/CMakeLists.txt");
  std::stringstream text;
  text << file.rdbuf();
  const std::string cmake = text.str();
  std::smatch version;
  ASSERT_TRUE(std::regex_search(cmake, version, std::regex("project\\(rowtide VERSION (\\d+)\\.(\\d+)\\.(\\d+)")));
  EXPECT_EQ(version[1], std::to_string(ROWTIDE_VERSION_MAJOR));
  EXPECT_EQ(version[2], std::to_string(ROWTIDE_VERSION_MINOR));
  EXPECT_EQ(version[3], std::to_string(ROWTIDE_VERSION_PATCH));
}

TEST(CApi, DescribesTheTable) {
  const OwnedCheckpoint checkpoint = open_model();
  const Table expected = model_table();
  ASSERT_EQ(rowtide_checkpoint_table_count(checkpoint.get()), 1U);
  EXPECT_EQ(rowtide_checkpoint_table(checkpoint.get(), 1), nullptr);
  const rowtide_table* table = rowtide_checkpoint_table(checkpoint.get(), 0);
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(rowtide_table_name(table), expected.name);
  EXPECT_EQ(rowtide_table_layer(table), expected.layer);
  EXPECT_EQ(rowtide_table_rows(table), expected.rows);
  EXPECT_EQ(rowtide_table_row_bytes(table), expected.row_bytes);
  EXPECT_EQ(rowtide_table_row_values(table), expected.row_values);
  EXPECT_EQ(rowtide_table_row_format(table), row_format_name(expected.row_format));
  EXPECT_EQ(rowtide_table_rows_per_token(table), expected.addressing->rows_per_token());
  EXPECT_EQ(rowtide_table_history_tokens(table), expected.addressing->history_tokens());
}

TEST(CApi, ReadsTheBytesOfTheFile) {
  const OwnedCheckpoint checkpoint = open_model();
  const OwnedStore store = open_store_of(rowtide_checkpoint_table(checkpoint.get(), 0));
  const OwnedReader reader = open_reader_of(store);
  const Table table = model_table();
  const std::vector<RowId> ids = some_rows(table);
  const std::vector<std::byte> expected = rows_by_pread(table, ids);

  std::vector<std::byte> raw(expected.size());
  expect_ok(rowtide_reader_read(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_RAW, raw.data(), raw.size()));
  EXPECT_EQ(raw, expected);
  EXPECT_NE(std::string(rowtide_store_method(store.get())), "");
}

TEST(CApi, DecodesRows) {
  const OwnedCheckpoint checkpoint = open_model();
  const OwnedStore store = open_store_of(rowtide_checkpoint_table(checkpoint.get(), 0));
  const OwnedReader reader = open_reader_of(store);
  const Table table = model_table();
  const std::vector<RowId> ids = some_rows(table);
  const std::vector<std::byte> raw = rows_by_pread(table, ids);
  const std::size_t values = ids.size() * table.row_values;
  std::vector<float> expected_f32(values);
  std::vector<std::uint16_t> expected_bf16(values);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::byte* row = raw.data() + i * table.row_bytes;
    decode_f32(table.coding(), row, 1, expected_f32.data() + i * table.row_values);
    decode_bf16(table.coding(), row, 1, expected_bf16.data() + i * table.row_values);
  }

  std::vector<float> f32(values);
  expect_ok(rowtide_reader_read(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_F32, f32.data(), values * 4));
  EXPECT_EQ(std::memcmp(f32.data(), expected_f32.data(), values * 4), 0);
  std::vector<std::uint16_t> bf16(values);
  expect_ok(rowtide_reader_read(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_BF16, bf16.data(), values * 2));
  EXPECT_EQ(bf16, expected_bf16);
}

TEST(CApi, AddressesTokensInChunks) {
  const OwnedCheckpoint checkpoint = open_model();
  const rowtide_table* table = rowtide_checkpoint_table(checkpoint.get(), 0);
  const auto addressing = model_table().addressing;
  const std::size_t width = addressing->rows_per_token();
  const std::vector<TokenId> tokens = {5, 9, 2, 7, 7, 1};
  History expected_history = addressing->start();
  std::vector<RowId> expected(tokens.size() * width);
  addressing->rows(tokens, expected_history, expected);

  std::vector<TokenId> history(rowtide_table_history_tokens(table));
  std::vector<RowId> ids(expected.size());
  expect_ok(rowtide_table_start(table, history.data()));
  EXPECT_EQ(history, addressing->start());
  expect_ok(rowtide_table_address(table, tokens.data(), 4, history.data(), ids.data(), 4 * width));
  expect_ok(rowtide_table_address(table, nullptr, 0, history.data(), nullptr, 0));
  expect_ok(rowtide_table_address(table, tokens.data() + 4, 2, history.data(), ids.data() + 4 * width, 2 * width));
  EXPECT_EQ(ids, expected);
  EXPECT_EQ(history, expected_history);

  expect_error(rowtide_table_address(table, tokens.data(), 4, history.data(), ids.data(), 4 * width - 1),
               ROWTIDE_ERROR_USAGE, "4 tokens");
  expect_error(rowtide_table_address(table, tokens.data(), 4, history.data(), ids.data(), 4 * width + 1),
               ROWTIDE_ERROR_USAGE, "4 tokens");
  EXPECT_EQ(history, expected_history);
}

TEST(CApi, ServesATableAtAKnownPlace) {
  const Table expected = model_table();
  const std::string format(row_format_name(expected.row_format));
  rowtide_table* made = nullptr;
  expect_ok(rowtide_table_at("placed", kModel.c_str(), expected.components.front().extents.front().offset,
                             expected.rows, expected.row_values, format.c_str(), 1, &made));
  OwnedTable table(made);
  ASSERT_NE(table, nullptr);
  EXPECT_STREQ(rowtide_table_name(made), "placed");
  EXPECT_EQ(rowtide_table_row_bytes(made), expected.row_bytes);
  EXPECT_EQ(rowtide_table_rows_per_token(made), 0U);
  EXPECT_EQ(rowtide_table_history_tokens(made), 0U);
  std::int64_t history = 0;
  expect_error(rowtide_table_start(made, &history), ROWTIDE_ERROR_USAGE, "placed");
  expect_error(rowtide_table_address(made, nullptr, 0, &history, nullptr, 0), ROWTIDE_ERROR_USAGE, "placed");

  const OwnedStore store = open_store_of(made);
  table.reset();
  const OwnedReader reader = open_reader_of(store);
  const std::vector<RowId> ids = {expected.rows / 2};
  std::vector<std::byte> raw(expected.row_bytes);
  expect_ok(rowtide_reader_read(reader.get(), ids.data(), 1, ROWTIDE_FORM_RAW, raw.data(), raw.size()));
  EXPECT_EQ(raw, rows_by_pread(expected, ids));
}

TEST(CApi, AReaderOutlivesEverythingItCameFrom) {
  OwnedCheckpoint checkpoint = open_model();
  OwnedStore store = open_store_of(rowtide_checkpoint_table(checkpoint.get(), 0));
  const OwnedReader reader = open_reader_of(store);
  checkpoint.reset();
  store.reset();
  const Table table = model_table();
  const std::vector<RowId> ids = some_rows(table);
  std::vector<std::byte> raw(ids.size() * table.row_bytes);
  expect_ok(rowtide_reader_read(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_RAW, raw.data(), raw.size()));
  EXPECT_EQ(raw, rows_by_pread(table, ids));
}

TEST(CApi, SplitsABatchIntoBeginAndFinish) {
  const OwnedCheckpoint checkpoint = open_model();
  const OwnedStore store = open_store_of(rowtide_checkpoint_table(checkpoint.get(), 0));
  const OwnedReader reader = open_reader_of(store);
  const Table table = model_table();
  const std::vector<RowId> ids = some_rows(table);
  std::vector<std::byte> raw(ids.size() * table.row_bytes);
  expect_ok(rowtide_reader_finish(reader.get()));
  expect_ok(rowtide_reader_begin(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_RAW, raw.data(), raw.size()));
  expect_error(rowtide_reader_begin(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_RAW, raw.data(), raw.size()),
               ROWTIDE_ERROR_USAGE, "batch");
  expect_ok(rowtide_reader_finish(reader.get()));
  EXPECT_EQ(raw, rows_by_pread(table, ids));
}

TEST(CApi, GivesUpABatchInFlightOnClose) {
  const OwnedCheckpoint checkpoint = open_model();
  const OwnedStore store = open_store_of(rowtide_checkpoint_table(checkpoint.get(), 0));
  OwnedReader reader = open_reader_of(store);
  const Table table = model_table();
  const std::vector<RowId> ids = some_rows(table);
  std::vector<std::byte> raw(ids.size() * table.row_bytes);
  expect_ok(rowtide_reader_begin(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_RAW, raw.data(), raw.size()));
  reader.reset();
  const OwnedReader next = open_reader_of(store);
  expect_ok(rowtide_reader_read(next.get(), ids.data(), ids.size(), ROWTIDE_FORM_RAW, raw.data(), raw.size()));
  EXPECT_EQ(raw, rows_by_pread(table, ids));
}

TEST(CApi, RefusesBatchesThatMakeNoSense) {
  const OwnedCheckpoint checkpoint = open_model();
  const OwnedStore store = open_store_of(rowtide_checkpoint_table(checkpoint.get(), 0));
  const OwnedReader reader = open_reader_of(store);
  const Table table = model_table();
  const RowId behind = table.rows;
  const RowId row = 0;
  std::vector<float> out(table.row_values + 1);
  expect_error(rowtide_reader_read(reader.get(), &behind, 1, ROWTIDE_FORM_RAW, out.data(), table.row_bytes),
               ROWTIDE_ERROR_OUT_OF_RANGE, std::to_string(behind));
  expect_error(rowtide_reader_read(reader.get(), &row, 1, ROWTIDE_FORM_RAW, out.data(), table.row_bytes - 1),
               ROWTIDE_ERROR_USAGE, std::to_string(table.row_bytes - 1));
  expect_error(rowtide_reader_read(reader.get(), &row, 1, 3, out.data(), table.row_bytes), ROWTIDE_ERROR_USAGE,
               "form 3");
  expect_error(rowtide_reader_read(reader.get(), &row, 1, -1, out.data(), table.row_bytes), ROWTIDE_ERROR_USAGE,
               "form -1");
  auto* odd = reinterpret_cast<std::byte*>(out.data()) + 1;
  expect_error(rowtide_reader_read(reader.get(), &row, 1, ROWTIDE_FORM_F32, odd, table.row_values * 4),
               ROWTIDE_ERROR_USAGE, "aligned to the 4");
  expect_error(rowtide_reader_read(reader.get(), &row, 1, ROWTIDE_FORM_BF16, odd, table.row_values * 2),
               ROWTIDE_ERROR_USAGE, "aligned to the 2");
  expect_ok(rowtide_reader_read(reader.get(), &row, 1, ROWTIDE_FORM_RAW, odd, table.row_bytes));
  expect_ok(rowtide_reader_read(reader.get(), nullptr, 0, ROWTIDE_FORM_RAW, nullptr, 0));
}

TEST(CApi, NamesWhatCannotBeOpened) {
  rowtide_checkpoint* checkpoint = nullptr;
  expect_error(rowtide_checkpoint_open("/nowhere/model.gguf", &checkpoint), ROWTIDE_ERROR_NOT_FOUND,
               "/nowhere/model.gguf");
  EXPECT_EQ(checkpoint, nullptr);

  rowtide_table* table = nullptr;
  expect_error(rowtide_table_at("t", kModel.c_str(), 0, 1, 256, "q4_k", 1, &table), ROWTIDE_ERROR_UNSUPPORTED, "q4_k");
  expect_error(rowtide_table_at("t", kModel.c_str(), 0, 1, 33, "q4_0", 1, &table), ROWTIDE_ERROR_USAGE, "33");
  expect_error(rowtide_table_at("t", kModel.c_str(), 1ULL << 40, 1, 32, "q4_0", 1, &table), ROWTIDE_ERROR_MALFORMED,
               "tidepool.gguf");
  EXPECT_EQ(table, nullptr);
}

TEST(CApi, RefusesOptionsItDoesNotKnow) {
  const OwnedCheckpoint checkpoint = open_model();
  const rowtide_table* table = rowtide_checkpoint_table(checkpoint.get(), 0);
  rowtide_store* store = nullptr;
  for (const std::uint64_t depth : {1025ULL, 1ULL << 32, (1ULL << 32) + 64}) {
    const rowtide_store_options options{sizeof(options), depth, 0, 0};
    expect_error(rowtide_store_open(table, &options, &store), ROWTIDE_ERROR_USAGE, std::to_string(depth));
  }
  for (const std::uint64_t size : {0ULL, 8ULL, 24ULL, 33ULL, 4104ULL, 0xAAAAAAAAAAAAAAAAULL}) {
    const rowtide_store_options options{size, 8, 0, 0};
    expect_error(rowtide_store_open(table, &options, &store), ROWTIDE_ERROR_USAGE, std::to_string(size) + " bytes");
  }
  const rowtide_store_options little{sizeof(little), 0, 1 << 20, 0};
  expect_error(rowtide_store_open(table, &little, &store), ROWTIDE_ERROR_USAGE, "1048576");
  const rowtide_store_options odd{sizeof(odd), 0, 0, 9};
  expect_error(rowtide_store_open(table, &odd, &store), ROWTIDE_ERROR_USAGE, "mode 9");
  EXPECT_EQ(store, nullptr);
  const rowtide_store_options standard{sizeof(standard), 0, 0, 0};
  expect_ok(rowtide_store_open(table, &standard, &store));
  const OwnedStore owned(store);
  EXPECT_NE(std::string(rowtide_store_method(store)).find("depth 256"), std::string::npos);
}

TEST(CApi, TakesOptionsOfANewerHeaderThatAreLeftToTheLibrary) {
  const OwnedCheckpoint checkpoint = open_model();
  const rowtide_table* table = rowtide_checkpoint_table(checkpoint.get(), 0);
  struct {
    rowtide_store_options known;
    std::uint64_t unknown[2];
  } newer{{sizeof(newer), 16, 0, ROWTIDE_MODE_DISK}, {0, 0}};
  rowtide_store* store = nullptr;
  expect_ok(rowtide_store_open(table, &newer.known, &store));
  const OwnedStore owned(store);
  EXPECT_NE(std::string(rowtide_store_method(store)).find("depth 16"), std::string::npos);
  EXPECT_EQ(std::string(rowtide_store_mode(store)), "disk");

  newer.unknown[1] = 5;
  rowtide_store* none = nullptr;
  expect_error(rowtide_store_open(table, &newer.known, &none), ROWTIDE_ERROR_USAGE, "5 at byte 40");
  EXPECT_EQ(none, nullptr);
}

TEST(CApi, CountersGrowWithoutBreakingOldCallers) {
  const OwnedCheckpoint checkpoint = open_model();
  const OwnedStore store = open_store_of(rowtide_checkpoint_table(checkpoint.get(), 0));
  const OwnedReader reader = open_reader_of(store);
  const Table table = model_table();
  const std::vector<RowId> ids = {3, 3, 3};
  std::vector<std::byte> raw(ids.size() * table.row_bytes);
  expect_ok(rowtide_reader_read(reader.get(), ids.data(), ids.size(), ROWTIDE_FORM_RAW, raw.data(), raw.size()));

  rowtide_counters counters{};
  counters.size = sizeof(counters);
  expect_ok(rowtide_store_counters(store.get(), &counters));
  EXPECT_EQ(counters.size, sizeof(counters));
  EXPECT_EQ(counters.batches, 1U);
  EXPECT_EQ(counters.rows, 3U);
  EXPECT_EQ(counters.unique_rows, 1U);
  EXPECT_GE(counters.reads, 1U);
  EXPECT_GE(counters.bytes_read, table.row_bytes);

  rowtide_counters old{};  // a caller that knows the first three fields only
  old.size = offsetof(rowtide_counters, unique_rows);
  old.unique_rows = 77;
  expect_ok(rowtide_store_counters(store.get(), &old));
  EXPECT_EQ(old.size, offsetof(rowtide_counters, unique_rows));
  EXPECT_EQ(old.rows, 3U);
  EXPECT_EQ(old.unique_rows, 77U);

  struct {
    rowtide_counters known;
    std::uint64_t added;
  } newer{};
  newer.known.size = sizeof(newer);
  newer.added = 77;
  expect_ok(rowtide_store_counters(store.get(), &newer.known));
  EXPECT_EQ(newer.known.size, sizeof(rowtide_counters));
  EXPECT_EQ(newer.added, 77U);

  rowtide_counters unset{};
  expect_error(rowtide_store_counters(store.get(), &unset), ROWTIDE_ERROR_USAGE, "0 bytes");
}

TEST(CApi, MissingArgumentsAreNamed) {
  const OwnedCheckpoint checkpoint = open_model();
  const rowtide_table* table = rowtide_checkpoint_table(checkpoint.get(), 0);
  const OwnedStore store = open_store_of(table);
  const OwnedReader reader = open_reader_of(store);
  const RowId row = 0;
  rowtide_checkpoint* opened = nullptr;
  rowtide_table* placed = nullptr;
  std::int64_t history = 0;
  expect_error(rowtide_checkpoint_open(nullptr, &opened), ROWTIDE_ERROR_USAGE, "path");
  expect_error(rowtide_checkpoint_open("x", nullptr), ROWTIDE_ERROR_USAGE, "checkpoint");
  expect_error(rowtide_table_at(nullptr, "x", 0, 1, 1, "f32", 1, &placed), ROWTIDE_ERROR_USAGE, "name");
  expect_error(rowtide_table_at("x", "x", 0, 1, 1, nullptr, 1, &placed), ROWTIDE_ERROR_USAGE, "row_format");
  expect_error(rowtide_table_start(table, nullptr), ROWTIDE_ERROR_USAGE, "history");
  expect_error(rowtide_table_address(table, nullptr, 1, &history, nullptr, 0), ROWTIDE_ERROR_USAGE, "tokens");
  expect_error(rowtide_store_open(nullptr, nullptr, nullptr), ROWTIDE_ERROR_USAGE, "table");
  expect_error(rowtide_store_counters(store.get(), nullptr), ROWTIDE_ERROR_USAGE, "counters");
  expect_error(rowtide_reader_open(store.get(), nullptr), ROWTIDE_ERROR_USAGE, "reader");
  expect_error(rowtide_reader_finish(nullptr), ROWTIDE_ERROR_USAGE, "reader");
  expect_error(rowtide_reader_read(reader.get(), nullptr, 1, ROWTIDE_FORM_RAW, nullptr, 0), ROWTIDE_ERROR_USAGE,
               "row_ids");
  expect_error(rowtide_reader_read(reader.get(), &row, 1, ROWTIDE_FORM_RAW, nullptr, 90), ROWTIDE_ERROR_USAGE,
               "output");
}

TEST(CApi, ClosingNothingDoesNothing) {
  rowtide_error_free(nullptr);
  rowtide_checkpoint_close(nullptr);
  rowtide_table_close(nullptr);
  rowtide_store_close(nullptr);
  rowtide_reader_close(nullptr);
}

TEST(CApi, WorksFromC) {
  const Table table = model_table();
  const std::vector<TokenId> tokens = {4, 8, 15, 16, 23, 42};
  History history = table.addressing->start();
  std::vector<RowId> ids(tokens.size() * table.addressing->rows_per_token());
  table.addressing->rows(tokens, history, ids);
  const std::vector<std::byte> expected = rows_by_pread(table, ids);

  std::vector<unsigned char> raw(expected.size());
  std::string message(500, '\0');
  const int failure = c_reads_the_rows_of(kModel.c_str(), tokens.data(), tokens.size(), raw.data(), raw.size(),
                                          message.data(), message.size());
  ASSERT_EQ(failure, 0) << message;
  EXPECT_EQ(std::memcmp(raw.data(), expected.data(), expected.size()), 0);

  EXPECT_EQ(c_reads_the_rows_of("/nowhere", tokens.data(), 1, raw.data(), raw.size(), message.data(), message.size()),
            1);
  EXPECT_NE(message.find("/nowhere"), std::string::npos);
}

}  // namespace
}  // namespace rowtide
