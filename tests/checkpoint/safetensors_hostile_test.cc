// Files and indices that lie: each is refused by a sentence that names what is wrong, and where.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "checkpoint/safetensors.h"
#include "checkpoint/safetensors_header.h"
#include "support/memory_disk.h"
#include "support/process_memory.h"
#include "support/safetensors_writer.h"
#include "support/sanitized.h"
#include "support/temp_dir.h"

namespace rowtide::checkpoint {
namespace {

constexpr char kHostilePath[] = "m/model.safetensors";
constexpr char kIndex[] = "m/model.safetensors.index.json";

void expect_file_refused(const std::string& bytes, ErrorCode code, std::initializer_list<std::string_view> named) {
  SCOPED_TRACE(bytes.substr(0, 200));
  MemoryDisk disk(kHostilePath, bytes);
  auto opened = open_safetensors(kHostilePath, disk.disk());
  expect_refused(opened, code, named);
  expect_refused(opened, code, {kHostilePath});
}

void expect_header_refused(const std::string& header, std::initializer_list<std::string_view> named,
                           const std::string& data = "", ErrorCode code = ErrorCode::kMalformed) {
  expect_file_refused(SafetensorsWriter::with_length(header) + data, code, named);
}

/// A tensor 'a' of these parts.
std::string tensor(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

TEST(SafetensorsHostile, LengthOfTheHeader) {
  const std::string empty = SafetensorsWriter::with_length("{}");
  expect_file_refused("", ErrorCode::kMalformed, {"has 0 bytes"});
  expect_file_refused("1234567", ErrorCode::kMalformed, {"has 7 bytes"});
  expect_file_refused(empty.substr(0, 9), ErrorCode::kMalformed, {"a header of 2 bytes", "the file has 9", "cut off"});
  expect_file_refused(std::string(8, '\xff') + "{}", ErrorCode::kMalformed, {"a header of 18446744073709551615 bytes"});
  expect_file_refused("GGUF\3\1\1\1", ErrorCode::kMalformed, {"no safetensors file"});
  expect_file_refused(std::string(8, '\0') + "{}", ErrorCode::kMalformed, {"does not begin with '{'"});
  expect_file_refused(SafetensorsWriter::with_length(" {}"), ErrorCode::kMalformed, {"does not begin with '{'"});
  expect_file_refused(SafetensorsWriter::with_length("[]"), ErrorCode::kMalformed, {"does not begin with '{'"});
  expect_file_refused(SafetensorsWriter::with_length("{"), ErrorCode::kMalformed, {"offset 9", "is not JSON"});
  expect_file_refused(SafetensorsWriter::with_length("{}x"), ErrorCode::kMalformed, {"is not JSON"});
}

TEST(SafetensorsHostile, HeaderBeyondTheLimit) {
  const TempDir folder;
  const std::string path = folder.file("model.safetensors");
  std::string start(9, '{');
  const std::uint64_t length = kSafetensorsHeaderBytesMax + 1;
  std::memcpy(start.data(), &length, 8);
  std::ofstream(path, std::ios::binary) << start;
  std::filesystem::resize_file(path, 8 + length);
  expect_refused(open_safetensors(path, io::Disk{}), ErrorCode::kUnsupported,
                 {path, "a header of 100000001 bytes", "limit of 100000000"});
}

TEST(SafetensorsHostile, FileCutOffOrLonger) {
  SafetensorsWriter writer;
  writer.add("a", "U8", {4}, "abcd");
  writer.add("b", "U8", {2}, "ef");
  const std::string whole = writer.bytes();
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    expect_file_refused(whole.substr(0, bytes), ErrorCode::kMalformed, {});
  }
  expect_file_refused(whole.substr(0, whole.size() - 1), ErrorCode::kMalformed,
                      {": b: data_offsets [4, 6] pass the end of the file, whose data has 5 bytes", "cut off"});
  expect_file_refused(whole + "x", ErrorCode::kMalformed, {"last 1 bytes belong to no tensor"});
}

TEST(SafetensorsHostile, PlacesOfTensors) {
  const auto two = [](const std::string& first, const std::string& second) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + first +
           R"(},"b":{"dtype":"U8","shape":[4],"data_offsets":)" + second + "}}";
  };
  expect_header_refused(two("[0,4]", "[3,7]"),
                        {"tensor 'b' (data_offsets [3, 7]) overlaps tensor 'a' (data_offsets [0, 4])"}, "1234567");
  expect_header_refused(two("[0,4]", "[0,4]"), {"overlaps"}, "1234");
  expect_header_refused(two("[5,9]", "[0,4]"), {"a hole of 1 bytes", "before tensor 'a' (data_offsets [5, 9])"},
                        "123456789");
  expect_header_refused(two("[1,5]", "[5,9]"), {"a hole of 1 bytes", "before tensor 'a'"}, "123456789");
  expect_header_refused(tensor("\"U8\"", "[4]", "[4,0]"), {": a: data_offsets [4, 0] go backwards"}, "1234");
  expect_header_refused(tensor("\"U8\"", "[4]", "[0,5]"), {": a: data_offsets [0, 5]", "pass the end", "4 bytes"},
                        "1234");
  expect_header_refused(tensor("\"U8\"", "[0]", "[18446744073709551615,18446744073709551615]"), {"pass the end"});
  expect_header_refused(tensor("\"NEW\"", "[4]", "[0,5]"), {"pass the end"}, "1234");
}

TEST(SafetensorsHostile, ShapesThatDoNotFit) {
  expect_header_refused(tensor("\"BF16\"", "[2,3]", "[0,13]"),
                        {": a: data_offsets [0, 13] are 13 bytes, but shape [2, 3] of BF16 takes 12"},
                        std::string(13, 'x'));
  expect_header_refused(tensor("\"F32\"", "[]", "[0,0]"), {"are 0 bytes", "shape [] of F32 takes 4"});
  expect_header_refused(tensor("\"F4\"", "[3]", "[0,2]"), {"shape [3] of F4 fills no whole number of bytes"}, "12");
  expect_header_refused(tensor("\"U8\"", "[4294967296,4294967296]", "[0,0]"),
                        {"shape [4294967296, 4294967296] of U8 has more bytes than 64 bits can count"});
  expect_header_refused(tensor("\"F64\"", "[2305843009213693952]", "[0,0]"), {"more bytes than 64 bits"});
  std::string shape = "[1";
  for (int i = 0; i < 255; ++i) shape += ",1";
  expect_header_refused(tensor("\"U8\"", shape + "]", "[0,1]"), {": a.shape[255]: more than 255 dimensions"}, "1",
                        ErrorCode::kUnsupported);
}

TEST(SafetensorsHostile, ValuesOfOtherTypes) {
  for (const char* number : {"-1", "1.0", "1e0", "18446744073709551616", "\"1\"", "null", "true"}) {
    expect_header_refused(tensor("\"U8\"", std::string("[") + number + "]", "[0,1]"),
                          {"a.shape[0]: ", "is no whole number from 0 on"}, "1");
    expect_header_refused(tensor("\"U8\"", "[1]", std::string("[0,") + number + "]"),
                          {"a.data_offsets[1]: ", "is no whole number from 0 on"}, "1");
  }
  expect_header_refused(tensor("\"U8\"", "[1]", "[0]"), {": a: data_offsets are not two numbers"}, "1");
  expect_header_refused(tensor("\"U8\"", "[1]", "[0,1,2]"), {"a.data_offsets[2]: more than two numbers"}, "1");
  expect_header_refused(tensor("\"U8\"", "1", "[0,1]"), {"a.shape: 1 stands where a list belongs"}, "1");
  expect_header_refused(tensor("\"U8\"", "[[1]]", "[0,1]"), {"a.shape[0]: a list is not expected here"}, "1");
  expect_header_refused(tensor("\"U8\"", "[{}]", "[0,1]"), {"a.shape[0]: an object is not expected here"}, "1");
  expect_header_refused(tensor("\"U8\"", "{}", "[0,1]"), {"a.shape: an object is not expected here"}, "1");
  expect_header_refused(tensor("7", "[1]", "[0,1]"), {"a.dtype: 7 is no name of a dtype"}, "1");
  expect_header_refused(tensor("[]", "[1]", "[0,1]"), {"a.dtype: a list is not expected here"}, "1");
  expect_header_refused(R"({"a":7})", {": a: 7 stands where a tensor's object belongs"});
  expect_header_refused(R"({"a":[]})", {": a: a list is not expected here"});
  expect_header_refused(R"({"a":{"shape":[1],"data_offsets":[0,1]}})", {": a: has no dtype"}, "1");
  expect_header_refused(R"({"a":{"dtype":"U8","data_offsets":[0,1]}})", {": a: has no shape"}, "1");
  expect_header_refused(R"({"a":{"dtype":"U8","shape":[1]}})", {": a: data_offsets are not two numbers"}, "1");
  expect_header_refused(R"({"__metadata__":7})", {"__metadata__: 7 stands where an object belongs"});
  expect_header_refused(R"({"__metadata__":[]})", {"__metadata__: a list is not expected here"});
  expect_header_refused(R"({"__metadata__":{"k":7}})", {"__metadata__.k: 7 stands where a text belongs"});
  expect_header_refused(R"({"__metadata__":{"k":{}}})", {"__metadata__.k: an object is not expected here"});
}

TEST(SafetensorsHostile, Names) {
  const std::string member = R"("a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]})";
  expect_header_refused("{" + member + "," + member + "}", {": a: occurs twice"}, "1");
  expect_header_refused(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
                        {"a.dtype: occurs twice"}, "1");
  expect_header_refused("{\"a\xff\":{}}", {"UTF-8"});
  expect_header_refused("{\"" + std::string(5000, 'n') + "\":{}}", {"a name of 5000 bytes", "4096"}, "",
                        ErrorCode::kUnsupported);
}

/// Two shards of one tensor each, with an index.
MemoryDisk two_shards(const std::string& index, const std::string& second_name = "b") {
  SafetensorsWriter first, second;
  first.add("a", "U8", {1}, "1");
  second.add(second_name, "U8", {2}, "12");
  MemoryDisk disk("m/s-1", first.bytes());
  disk.add("m/s-2", second.bytes());
  disk.add(kIndex, index);
  return disk;
}

void expect_index_refused(const std::string& index, ErrorCode code, std::initializer_list<std::string_view> named,
                          const std::string& second_name = "b") {
  SCOPED_TRACE(index);
  MemoryDisk disk = two_shards(index, second_name);
  expect_refused(open_safetensors("m", disk.disk()), code, named);
}

TEST(SafetensorsHostile, IndexThatDisagreesWithItsShards) {
  MemoryDisk good = two_shards(safetensors_index({{"a", "s-1"}, {"b", "s-2"}}, 3));
  ASSERT_TRUE(open_safetensors("m", good.disk()).ok());

  expect_index_refused(safetensors_index({{"a", "s-1"}, {"b", "s-2"}, {"c", "s-2"}, {"d", "s-2"}}),
                       ErrorCode::kMismatch,
                       {kIndex, "tensor 'c' (and 1 more) is said to lie in s-2, but is in no file"});
  expect_index_refused(safetensors_index({{"a", "s-2"}, {"b", "s-1"}}), ErrorCode::kMismatch,
                       {kIndex, "tensor 'a' is said to lie in m/s-2, but lies in m/s-1"});
  expect_index_refused(safetensors_index({{"a", "s-1"}, {"b", "s-2"}}), ErrorCode::kMismatch,
                       {"m/s-2: holds none of the tensors that", kIndex, "another checkpoint"}, "of another");
  expect_index_refused(safetensors_index({{"a", "s-1"}, {"b", "s-2"}}), ErrorCode::kMalformed,
                       {"m/s-2", ": a: occurs twice, also in m/s-1"}, "a");
  expect_index_refused(safetensors_index({{"a", "s-1"}, {"b", "s-2"}, {"c", "s-3"}, {"d", "s-4"}}),
                       ErrorCode::kNotFound,
                       {"m: lacks s-3, s-4, yet to be fetched (of 4 files that model.safetensors.index.json names)"});
}

TEST(SafetensorsHostile, NumbersThatAreNoJson) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"more":NaN}})";
  MemoryDisk disk("m.safetensors", SafetensorsWriter::with_length(header) + "x");
  expect_refused(open_safetensors("m.safetensors", disk.disk()), ErrorCode::kMalformed, {"a.more", "is not JSON"});
  disk.add("m/i.json", R"({"metadata": {"total_size": Infinity}, "weight_map": {"a": "m.safetensors"}})");
  expect_refused(open_safetensors("m/i.json", disk.disk()), ErrorCode::kMalformed, {"total_size", "is not JSON"});
}

TEST(SafetensorsHostile, IndexThatIsNone) {
  expect_index_refused("", ErrorCode::kMalformed, {kIndex, "is not JSON"});
  expect_index_refused("[]", ErrorCode::kMalformed, {kIndex, "a list is not expected here"});
  expect_index_refused("{}", ErrorCode::kMalformed, {kIndex, "names no tensor"});
  expect_index_refused(R"({"weight_map": {}})", ErrorCode::kMalformed, {"names no tensor"});
  expect_index_refused(R"({"weight_map": []})", ErrorCode::kMalformed, {"weight_map: a list is not expected here"});
  expect_index_refused(R"({"weight_map": null})", ErrorCode::kMalformed, {"weight_map: null stands where an object"});
  expect_index_refused(R"({"weight_map": {"a": {}}})", ErrorCode::kMalformed,
                       {"weight_map.a: an object is not expected"});
  expect_index_refused(R"({"weight_map": {"a": 1}})", ErrorCode::kMalformed, {"weight_map.a: 1 is no name of a file"});
  for (const char* name : {"", ".", "..", "../s-1", "/etc/passwd", "d/s-1", "s\\u0000"}) {
    expect_index_refused(std::string(R"({"weight_map": {"a": ")") + name + "\"}}", ErrorCode::kMalformed,
                         {"weight_map.a: ", "is no name of a file beside the index"});
  }
  expect_index_refused(R"({"weight_map": {"a": "s-1", "a": "s-2"}})", ErrorCode::kMalformed,
                       {"weight_map.a: occurs twice"});
  std::vector<std::pair<std::string, std::string>> map;
  for (int i = 0; i <= 10'000; ++i) map.emplace_back(std::to_string(i), "s-" + std::to_string(i));
  MemoryDisk disk = two_shards(safetensors_index(map));
  expect_refused(open_safetensors("m", disk.disk()), ErrorCode::kUnsupported,
                 {"weight_map.10000: more than 10000 files"});
}

TEST(SafetensorsHostile, MoreTensorsThanTheLimitStayWithinMemory) {
  if (kSanitized) GTEST_SKIP() << "takes long, and the sanitizer holds memory of its own";
  std::string header = "{";
  for (int i = 0; header.size() < 30'000'000; ++i) {
    header += fmt::format("\"{:060}-%\":{{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}},", i);
  }
  header.back() = '}';
  std::vector<std::pair<std::string, std::string>> map;
  MemoryDisk disk;
  for (char file = 'A'; file <= 'D'; ++file) {
    std::string own = header;
    for (std::size_t at = own.find('%'); at != std::string::npos; at = own.find('%', at)) own[at] = file;
    disk.add(std::string("m/") + file, SafetensorsWriter::with_length(own));
    map.emplace_back(fmt::format("{:060}-{}", 0, file), std::string(1, file));
  }
  disk.add(kIndex, safetensors_index(map));
  restart_peak();
  const std::uint64_t before = peak_bytes();
  expect_refused(open_safetensors("m", disk.disk()), ErrorCode::kUnsupported, {"m/", "more than", "the limit"});
  EXPECT_LT(peak_bytes() - before, 256u << 20);
}

}  // namespace
}  // namespace rowtide::checkpoint
