#include "checkpoint/json_events.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "support/memory_disk.h"
#include "support/process_memory.h"
#include "support/sanitized.h"

namespace rowtide::checkpoint {
namespace {

constexpr char kJsonPath[] = "a.json";

/// Writes down what it is told. Passes over members named "skip", refuses the text "refuse me".
class Recorder : public JsonVisitor {
 public:
  void object_begins() override { add("{"); }
  bool name(std::string_view name) override {
    add(std::string(name) + ":");
    return name != "skip";
  }
  void object_ends() override { add("}"); }
  void array_begins() override { add("["); }
  void array_ends() override { add("]"); }
  void scalar(const JsonScalar& value) override {
    add(value.described());
    values.push_back(value);
    if (value.kind == JsonScalar::Kind::kText && value.text == "refuse me")
      refuse("does not suit", ErrorCode::kMismatch);
  }

  std::string told;
  std::vector<JsonScalar> values;  // without their texts

 private:
  void add(const std::string& what) { told += std::to_string(depth()) + what + " "; }
};

Result<void> read(const std::string& text, JsonVisitor& visitor, const JsonLimits& limits = {}) {
  MemoryDisk disk(kJsonPath, text);
  auto file = disk.opener()(kJsonPath);
  return read_json(**file, 0, text.size(), visitor, limits);
}

std::string told(const std::string& text) {
  Recorder recorder;
  auto done = read(text, recorder);
  return done ? recorder.told : done.error().message;
}

void expect_refused_text(const std::string& text, ErrorCode code, std::initializer_list<std::string_view> named,
                         const JsonLimits& limits = {}) {
  SCOPED_TRACE(text.substr(0, 100));
  Recorder recorder;
  expect_refused(read(text, recorder, limits), code, named);
}

TEST(JsonEvents, TellOfEveryPartWithItsDepth) {
  EXPECT_EQ(told(R"({"a": [1, -2, "x"], "b": {"c": null, "d": true}, "e": 0.5})"),
            "0{ 1a: 1[ 21 2-2 2'x' 1] 1b: 1{ 2c: 2null 2d: 2true 1} 1e: 10.5 0} ");
  EXPECT_EQ(told(" [ ] "), "0[ 0] ");
  EXPECT_EQ(told("17"), "017 ");
}

TEST(JsonEvents, PassOverWhatNobodyNeeds) {
  EXPECT_EQ(told(R"({"skip": {"a": [1, {"b": 2}]}, "c": 3, "skip2": 4})"), "0{ 1skip: 1c: 13 1skip2: 14 0} ");
  EXPECT_EQ(told(R"([{"skip": 1}, {"skip": []}, 5])"), "0[ 1{ 2skip: 1} 1{ 2skip: 1} 15 0] ");
}

TEST(JsonEvents, KeepEveryBitOfNumbers) {
  Recorder recorder;
  ASSERT_TRUE(
      read("[18446744073709551615, -9223372036854775808, 9007199254740993, 0.1, 18446744073709551616, 1e3]", recorder)
          .ok());
  ASSERT_EQ(recorder.values.size(), 6u);
  EXPECT_EQ(recorder.values[0].unsigned_value, 18446744073709551615u);
  EXPECT_EQ(recorder.values[1].negative_value, INT64_MIN);
  EXPECT_EQ(recorder.values[2].unsigned_value, 9007199254740993u);
  EXPECT_EQ(recorder.values[3].real_value, 0.1);
  EXPECT_EQ(recorder.values[4].kind, JsonScalar::Kind::kReal);
  EXPECT_EQ(recorder.values[5].kind, JsonScalar::Kind::kReal);
}

TEST(JsonEvents, ReadOnlyTheirRange) {
  MemoryDisk disk(kJsonPath, "}}}{\"a\": 1}]]]");
  auto file = disk.opener()(kJsonPath);
  Recorder recorder;
  ASSERT_TRUE(read_json(**file, 3, 8, recorder).ok());
  EXPECT_EQ(recorder.told, "0{ 1a: 11 0} ");
  ASSERT_EQ(disk.reads().size(), 1u);
  EXPECT_EQ(disk.reads()[0].offset, 3u);
  EXPECT_EQ(disk.reads()[0].bytes, 8u);
  expect_refused(read_json(**file, 3, 9, recorder), ErrorCode::kMalformed, {kJsonPath, "not JSON"});
  expect_refused(read_json(**file, 3, 12, recorder), ErrorCode::kMalformed, {kJsonPath, "12 bytes", "offset 3", "14"});
}

TEST(JsonEvents, TextsCrossWindowsWhole) {
  const std::string longer(200'000, 'x');
  EXPECT_EQ(told("[\"" + longer + "\", \"" + std::string(65'530, 'y') + "\", \"z\u00e9\"]"),
            "0[ 1'" + longer.substr(0, 160) + "...' 1'" + std::string(160, 'y') + "...' 1'z\\xc3\\xa9' 0] ");
}

TEST(JsonEvents, NameFileOffsetAndPathOfKeys) {
  expect_refused_text(R"({"a": {"b": [0, {"c": "refuse me"}]}})", ErrorCode::kMismatch,
                      {"a.json: offset 33: a.b[1].c: does not suit"});
  expect_refused_text(R"({"a": {"b": [0, 1 2]}})", ErrorCode::kMalformed, {"a.json: offset 18: a.b[2]: is not JSON"});
}

TEST(JsonEvents, RefuseWhatIsNoJson) {
  for (const char* text :
       {"",     "{",     "[1",         "{\"a\"}", "{\"a\":}", "{a: 1}", "[1,]",  "[01]",        "[+1]",  "[.5]",
        "[1.]", "[nan]", "[Infinity]", "tru",     "[\"a]",    "{} {}",  "[1] x", "{\"a\": 1,}", "['a']", "// c\n[]"}) {
    expect_refused_text(text, ErrorCode::kMalformed, {"a.json: offset ", "is not JSON"});
  }
  expect_refused_text(std::string("[\"a\0b\"]", 7), ErrorCode::kMalformed, {"control character"});
  expect_refused_text("[1e999]", ErrorCode::kMalformed, {"number too big"});
}

TEST(JsonEvents, TakeNonFiniteNumbersOnlyWhereTheyAreAllowed) {
  const JsonLimits allowed{.has_non_finite = true};
  Recorder recorder;
  ASSERT_TRUE(read(R"({"a": NaN, "b": [-1, Infinity,-Infinity]})", recorder, allowed).ok());
  EXPECT_EQ(recorder.told, "0{ 1a: 1NaN 1b: 1[ 2-1 2Infinity 2-Infinity 1] 0} ");
  ASSERT_EQ(recorder.values.size(), 4u);
  for (const std::size_t at : {0, 2, 3}) EXPECT_EQ(recorder.values[at].kind, JsonScalar::Kind::kReal);
  EXPECT_TRUE(std::isnan(recorder.values[0].real_value));
  EXPECT_EQ(recorder.values[2].real_value, std::numeric_limits<double>::infinity());
  EXPECT_EQ(recorder.values[3].real_value, -std::numeric_limits<double>::infinity());
  for (const char* text : {"NaN", "Infinity", "-Infinity", R"({"skip": NaN})"}) {
    expect_refused_text(text, ErrorCode::kMalformed, {"is not JSON"});
    Recorder another;
    EXPECT_TRUE(read(text, another, allowed).ok()) << text;
  }
  for (const char* text : {"Inf", "-Inf", "-NaN", "nan", "infinity", "+Infinity", "Infinit", "Na", "NaNs", "N", "I",
                           "Infinity1", "NaN.5", "Infinitye1"}) {
    expect_refused_text(text, ErrorCode::kMalformed, {"is not JSON"});
    expect_refused_text(text, ErrorCode::kMalformed, {"is not JSON"}, allowed);
  }
}

TEST(JsonEvents, RefuseTextThatIsNoUtf8) {
  for (const char* text :
       {"[\"\xff\"]", "[\"\xc0\xaf\"]", "[\"\xe2\x82\"]", "[\"\xed\xa0\x80\"]", "[\"\xf4\x90\x80\x80\"]"}) {
    expect_refused_text(text, ErrorCode::kMalformed, {"offset ", "UTF-8"});
  }
  expect_refused_text("{\"skip\": \"\xff\"}", ErrorCode::kMalformed, {"skip: ", "UTF-8"});
  expect_refused_text("{\"a\xff\": 1}", ErrorCode::kMalformed, {"UTF-8"});
  for (const char* text : {R"(["\ud800"])", R"(["\udc00"])", R"(["\ud800\u0041"])", R"({"\udfff": 1})"}) {
    expect_refused_text(text, ErrorCode::kMalformed, {"surrogate"});
  }
  EXPECT_EQ(told(R"(["\ud83d\ude00"])"), "0[ 1'\\xf0\\x9f\\x98\\x80' 0] ");
}

TEST(JsonEvents, RefuseANameThatOccursTwice) {
  expect_refused_text(R"({"a": {"b": 1, "c": {}, "b": 2}})", ErrorCode::kMalformed,
                      {"a.json: offset 27: a.b: occurs twice"});
  expect_refused_text(R"({"a": 1, "\u0061": 2})", ErrorCode::kMalformed, {": a: occurs twice"});
  expect_refused_text(R"({"skip": {"b": 1, "b": 2}})", ErrorCode::kMalformed, {"skip.b: occurs twice"});
  EXPECT_EQ(told(R"([{"a": {"a": 1}}, {"a": 2}])"), "0[ 1{ 2a: 2{ 3a: 31 2} 1} 1{ 2a: 22 1} 0] ");
  for (const int members : {5, 9, 17, 1000}) {
    for (const int again : {0, members / 2, members - 1}) {
      std::string text = "{";
      for (int i = 0; i < members; ++i) text += "\"name" + std::to_string(i) + "\": {\"name0\": 1}, ";
      const std::string twice = "name" + std::to_string(again);
      Recorder recorder;
      EXPECT_TRUE(read(text + "\"other\": 1}", recorder).ok()) << members;
      expect_refused_text(text + "\"" + twice + "\": 1}", ErrorCode::kMalformed, {": " + twice + ": occurs twice"});
    }
  }
}

TEST(JsonEvents, RefuseWhatPassesALimit) {
  const JsonLimits limits{.bytes_max = 100, .depth_max = 3, .text_bytes_max = 10, .names_max = 4};
  Recorder recorder;
  EXPECT_TRUE(read(R"([[[0123456789]]])", recorder, limits).ok() == false);
  EXPECT_TRUE(read(R"([[["0123456789"]]])", recorder, limits).ok());
  EXPECT_TRUE(read(R"([{"a": 1, "b": 1, "c": 1, "d": 1}, {"e": 1}])", recorder, limits).ok());
  expect_refused_text("[[[[]]]]", ErrorCode::kUnsupported, {"[0][0][0]: more than 3 objects and lists"}, limits);
  expect_refused_text("[\"0123456789a\"]", ErrorCode::kUnsupported, {"11 bytes", "10"}, limits);
  expect_refused_text("{\"0123456789a\": 1}", ErrorCode::kUnsupported, {"11 bytes", "10"}, limits);
  expect_refused_text(R"({"a": {"b": 1, "c": 1, "d": 1, "e": 1}})", ErrorCode::kUnsupported, {"a.e: more than 4 names"},
                      limits);
  expect_refused_text(std::string(101, ' '), ErrorCode::kUnsupported, {"101 bytes", "100"}, limits);
}

/// A file of any size whose bytes are computed.
class ComputedFile : public io::File {
 public:
  ComputedFile(std::uint64_t bytes, std::function<char(std::uint64_t)> at) : bytes_(bytes), at_(std::move(at)) {}
  const std::string& path() const override { return path_; }
  std::uint64_t bytes() const override { return bytes_; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::byte& byte : out) byte = std::byte(at_(offset++));
    return {};
  }

 private:
  std::string path_ = kJsonPath;
  std::uint64_t bytes_;
  std::function<char(std::uint64_t)> at_;
};

/// Its bytes beyond a place cannot be read.
class BrokenFile : public ComputedFile {
 public:
  using ComputedFile::ComputedFile;
  Result<void> read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > 0) return Error{ErrorCode::kIo, "a.json: the disk is broken"};
    return ComputedFile::read(offset, out);
  }
};

TEST(JsonEvents, TellOfAReadThatFailsAsSuch) {
  const BrokenFile file(100'000, [](std::uint64_t at) { return at == 0 ? '[' : ' '; });
  Recorder recorder;
  expect_refused(read_json(file, 0, file.bytes(), recorder), ErrorCode::kIo, {"the disk is broken"});
}

/// Needs nothing of what it is told.
class Deaf : public JsonVisitor {
  void object_begins() override {}
  void array_begins() override {}
  void scalar(const JsonScalar&) override {}
};

std::function<char(std::uint64_t)> repeated(std::string start, std::string again) {
  return [=](std::uint64_t at) { return at < start.size() ? start[at] : again[(at - start.size()) % again.size()]; };
}

/// {"00000000":0,"00000001":0, ...
char many_names(std::uint64_t at) {
  constexpr std::uint64_t kMember = 13;
  if (at == 0) return '{';
  const std::uint64_t place = (at - 1) % kMember;
  if (place == 0 || place == 9) return '"';
  if (place >= 10) return ":0,"[place - 10];
  return static_cast<char>('0' + (((at - 1) / kMember) >> (3 * (8 - place)) & 7));
}

TEST(JsonEvents, StayWithinMemoryWhateverTheFileSays) {
  struct Case {
    std::function<char(std::uint64_t)> at;
    std::string_view refused;
  };
  const std::vector<Case> cases = {
      {repeated("[\"", "x"), "no text or number ends"}, {repeated("{\"", "x"), "no text or number ends"},
      {repeated("[", "1"), "number too big"},           {repeated("[", " "), "no text or number ends"},
      {repeated("[", "[],"), "no text or number ends"}, {repeated("[", "true,"), "no text or number ends"},
      {repeated("", "["), "inside each other"},         {repeated("", "{\"a\":"), "inside each other"},
      {repeated("[0", ",{\"a\":[0]}"), "is not JSON"},  // its end is cut off
      {many_names, "more than 900000 names"},
  };
  for (const Case& file : cases) {
    const ComputedFile computed(14'000'000, file.at);
    Deaf deaf;
    restart_peak();
    const std::uint64_t before = peak_bytes();
    auto done = read_json(computed, 0, computed.bytes(), deaf);
    ASSERT_FALSE(done.ok()) << file.refused;
    EXPECT_NE(done.error().message.find(file.refused), std::string::npos) << done.error().message;
    EXPECT_LT(done.error().message.size(), 500u);
    if (!kSanitized) {
      EXPECT_LT(peak_bytes() - before, 64u << 20) << file.refused;
    }
  }
}

}  // namespace
}  // namespace rowtide::checkpoint
