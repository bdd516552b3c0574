#include "checkpoint/json_events.h"

#include <rapidjson/error/en.h>
#include <rapidjson/reader.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/name_table.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::size_t kWindowBytes = 65'536;
constexpr std::size_t kPathNameBytes = 96;  // kept of a name, for messages

/// The document's bytes, one window at a time, as the library wants its input: behind the last one lies a zero.
class JsonBytes {
 public:
  using Ch = char;

  JsonBytes(const io::File& file, std::uint64_t offset, std::uint64_t bytes, std::uint64_t unbroken_max)
      : file_(file), window_start_(offset), end_(offset + bytes), unbroken_max_(unbroken_max), last_break_(offset) {
    fill();
  }

  Ch Peek() const { return *next_; }
  Ch Take() {
    const Ch taken = *next_;
    if (next_ != window_end_ && ++next_ == window_end_) fill();
    return taken;
  }
  std::size_t Tell() const { return offset(); }
  // Of output, which there is none of.
  Ch* PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  std::size_t PutEnd(Ch*) { return 0; }

  bool at_end() const { return next_ == window_end_; }
  /// In the file, of the byte after the last one that was taken.
  std::uint64_t offset() const { return window_start_ + static_cast<std::uint64_t>(next_ - window_.data()); }
  /// The parser has come to the end of a text or number, and holds none of the bytes before any more.
  void break_here() { last_break_ = offset(); }

  const std::optional<Error>& error() const { return error_; }
  /// So many bytes came without the end of a text or number that the parser, which holds all of them, was stopped.
  bool is_unbroken() const { return is_unbroken_; }

 private:
  void fill() {
    if (window_end_ != nullptr) window_start_ += static_cast<std::uint64_t>(window_end_ - window_.data());
    is_unbroken_ = window_start_ > last_break_ && window_start_ - last_break_ > unbroken_max_;
    std::uint64_t bytes = is_unbroken_ ? 0 : std::min<std::uint64_t>(kWindowBytes, end_ - window_start_);
    window_.resize(bytes + 1);
    if (bytes > 0) {
      if (auto read = file_.read(window_start_, std::as_writable_bytes(std::span(window_).first(bytes))); !read) {
        error_ = read.error();
        bytes = 0;
      }
    }
    window_[bytes] = '\0';
    next_ = window_.data();
    window_end_ = next_ + bytes;
  }

  const io::File& file_;
  std::uint64_t window_start_;
  const std::uint64_t end_;
  const std::uint64_t unbroken_max_;
  std::uint64_t last_break_;
  std::vector<char> window_;
  const char* next_ = nullptr;
  const char* window_end_ = nullptr;
  std::optional<Error> error_;
  bool is_unbroken_ = false;
};

/// What a number is, from its text in the file; nothing if it is beyond a double.
std::optional<JsonScalar> number_of(std::string_view text) {
  using Kind = JsonScalar::Kind;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  if (text.find_first_of(".eE") == std::string_view::npos) {
    std::uint64_t value = 0;
    if (std::from_chars(begin, end, value).ec == std::errc() && text.front() != '-') {
      return JsonScalar{.kind = Kind::kUnsigned, .unsigned_value = value};
    }
    std::int64_t negative = 0;
    if (std::from_chars(begin, end, negative).ec == std::errc()) {
      if (negative == 0) return JsonScalar{.kind = Kind::kUnsigned};
      return JsonScalar{.kind = Kind::kNegative, .negative_value = negative};
    }
  }
  JsonScalar real{.kind = Kind::kReal, .text = text};
  const auto [stop, error] = std::from_chars(begin, end, real.real_value);
  // Too small counts as out of range as well; such a number is read as zero.
  const bool is_small = error == std::errc::result_out_of_range && text.find("e-") != std::string_view::npos;
  return error == std::errc() || is_small ? std::optional(real) : std::nullopt;
}

/// Numbers that the library takes, and JSON has not.
bool is_non_finite(std::string_view text) {
  const char first = text[text.starts_with('-') ? 1 : 0];
  return first < '0' || first > '9';
}
/// Of these, those that Python writes: not "Inf", not "-NaN".
bool is_pythons(std::string_view text) { return text == "NaN" || text == "Infinity" || text == "-Infinity"; }

/// Of a pair's second half, escaped by itself, the library makes what is no UTF-8.
bool holds_surrogate(std::string_view text) {
  for (auto at = text.find('\xed'); at != std::string_view::npos; at = text.find('\xed', at + 1)) {
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) >= 0xa0) return true;
  }
  return false;
}

/// "missing a name for object member".
std::string sentence_of(rapidjson::ParseErrorCode code, char next) {
  if (code == rapidjson::kParseErrorStringInvalidEncoding || code == rapidjson::kParseErrorStringMissQuotationMark) {
    if (static_cast<unsigned char>(next) < 0x20) return "a control character in a text";
  }
  if (code == rapidjson::kParseErrorStringInvalidEncoding) return "a text that is not UTF-8";
  std::string text = rapidjson::GetParseError_En(code);
  if (text.ends_with('.')) text.pop_back();
  text.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
  return text;
}

}  // namespace

/// Between the library's events and the visitor's: limits, names, the path of keys.
class JsonReader {
 public:
  JsonReader(const io::File& file, std::uint64_t offset, std::uint64_t bytes, JsonVisitor& visitor,
             const JsonLimits& limits)
      : file_(file),
        limits_(limits),
        bytes_(file, offset, bytes, std::uint64_t{limits.text_bytes_max} + kWindowBytes),
        visitor_(visitor) {
    visitor_.refusal_.reset();
    visitor_.reader_ = this;
  }
  ~JsonReader() { visitor_.reader_ = nullptr; }
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  Result<void> read() {
    constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                                rapidjson::kParseNumbersAsStringsFlag | rapidjson::kParseNanAndInfFlag;
    rapidjson::Reader reader;
    const rapidjson::ParseResult parsed = reader.Parse<kFlags>(bytes_, *this);
    if (bytes_.error()) return *bytes_.error();
    if (error_) return *error_;
    if (!parsed || !bytes_.at_end()) parse_error(parsed.Code());  // a zero byte looks like the end
    return error_ ? Result<void>(*error_) : Result<void>();
  }

  std::size_t depth() const { return open_.size(); }

  // The library's events, by its names.
  bool Null() { return scalar({}); }
  bool Bool(bool value) { return scalar({.kind = JsonScalar::Kind::kBool, .bool_value = value}); }
  bool RawNumber(const char* begin, rapidjson::SizeType bytes, bool) {
    bytes_.break_here();
    const std::string_view text(begin, bytes);
    if (!fits(text)) return false;
    if (is_non_finite(text) && !(limits_.has_non_finite && is_pythons(text))) {
      return fail(ErrorCode::kMalformed, "is not JSON: " + printable(text));
    }
    const auto number = number_of(text);
    return number ? scalar(*number) : fail(ErrorCode::kMalformed, "number overflow: " + printable(text));
  }
  bool String(const char* begin, rapidjson::SizeType bytes, bool) {
    bytes_.break_here();
    const std::string_view text(begin, bytes);
    return fits(text) && scalar({.kind = JsonScalar::Kind::kText, .text = text});
  }
  bool Key(const char* begin, rapidjson::SizeType bytes, bool) {
    bytes_.break_here();
    const std::string_view name(begin, bytes);
    return fits(name) && member(name);
  }
  bool StartObject() { return opens({.is_list = false}, &JsonVisitor::object_begins); }
  bool StartArray() { return opens({.is_list = true}, &JsonVisitor::array_begins); }
  bool EndObject(rapidjson::SizeType) { return closes(&JsonVisitor::object_ends); }
  bool EndArray(rapidjson::SizeType) { return closes(&JsonVisitor::array_ends); }
  // Numbers come as texts.
  bool Int(int) { return false; }
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }

 private:
  /// An object or list that has begun and not ended.
  struct Open {
    bool is_list = false;
    bool has_name = false;
    std::uint64_t index = 0;  // of the list's element being read
    std::string name = {};    // of the object's member being read
    NameTable names = {};     // of the object's members so far
  };

  bool member(std::string_view name) {
    Open& object = open_.back();
    object.name = name.substr(0, kPathNameBytes);
    object.has_name = true;
    if (object.names.add(name)) return fail(ErrorCode::kMalformed, "occurs twice");
    if (++names_ > limits_.names_max) {
      return fail(ErrorCode::kUnsupported, fmt::format("more than {} names, the limit", limits_.names_max));
    }
    if (is_skipping()) return true;
    const bool is_wanted = visitor_.name(name);
    if (!is_wanted) skipped_below_ = open_.size();
    return heed_refusal();
  }

  void parse_error(rapidjson::ParseErrorCode code) {
    if (bytes_.is_unbroken()) {
      fail(ErrorCode::kUnsupported,
           fmt::format("no text or number ends within {} bytes, the limit", limits_.text_bytes_max));
      return;
    }
    const char next = bytes_.at_end() ? ' ' : bytes_.Peek();
    if (code == rapidjson::kParseErrorNone) code = rapidjson::kParseErrorDocumentRootNotSingular;
    fail(ErrorCode::kMalformed, "is not JSON: " + sentence_of(code, next));
  }

  bool fail(ErrorCode code, std::string_view message) {
    if (error_) return false;
    const std::string path = key_path();
    error_ = make_error(code, "{}: offset {}: {}{}{}", file_.path(), bytes_.offset(), path, path.empty() ? "" : ": ",
                        message);
    return false;
  }

  bool heed_refusal() {
    if (!visitor_.refusal_) return true;
    return fail(visitor_.refusal_->code, visitor_.refusal_->message);
  }

  bool fits(std::string_view text) {
    if (holds_surrogate(text)) return fail(ErrorCode::kMalformed, "is not JSON: an escape of half a surrogate pair");
    if (text.size() <= limits_.text_bytes_max) return true;
    return fail(ErrorCode::kUnsupported,
                fmt::format("a text of {} bytes, more than the limit of {}", text.size(), limits_.text_bytes_max));
  }

  /// Whether the visitor passes over what lies around.
  bool is_skipping() const { return skipped_below_ != 0; }

  bool scalar(const JsonScalar& value) {
    if (!is_skipping()) visitor_.scalar(value);
    return heed_refusal() && value_ends();
  }

  bool opens(Open open, void (JsonVisitor::*event)()) {
    if (!is_skipping()) (visitor_.*event)();
    if (!heed_refusal()) return false;
    if (open_.size() == limits_.depth_max) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("more than {} objects and lists inside each other, the limit", limits_.depth_max));
    }
    open_.push_back(std::move(open));
    return true;
  }

  bool closes(void (JsonVisitor::*event)()) {
    names_ -= open_.back().names.size();
    open_.pop_back();
    if (!is_skipping()) (visitor_.*event)();
    return heed_refusal() && value_ends();
  }

  bool value_ends() {
    if (open_.empty()) return true;
    if (open_.size() == skipped_below_) skipped_below_ = 0;
    ++open_.back().index;
    open_.back().has_name = false;
    return true;
  }

  /// "weight_map.lm_head.weight", "quantization_config.ignore[3]".
  std::string key_path() const {
    std::string path;
    for (const Open& open : open_) {
      if (open.is_list) {
        path += fmt::format("[{}]", open.index);
      } else if (open.has_name) {
        path += (path.empty() ? "" : ".") + printable(open.name);
      }
    }
    return path;
  }

  const io::File& file_;
  const JsonLimits limits_;
  JsonBytes bytes_;
  JsonVisitor& visitor_;
  std::vector<Open> open_;
  std::size_t names_ = 0;          // of all objects that are open
  std::size_t skipped_below_ = 0;  // how much was open at the name whose value is passed over
  std::optional<Error> error_;
};

std::string JsonScalar::described() const {
  switch (kind) {
    case Kind::kText: return "'" + printable(text) + "'";
    case Kind::kUnsigned: return std::to_string(unsigned_value);
    case Kind::kNegative: return std::to_string(negative_value);
    case Kind::kReal: return printable(text);
    case Kind::kBool: return bool_value ? "true" : "false";
    case Kind::kNull: return "null";
  }
  return "";
}

void JsonVisitor::refuse(std::string message, ErrorCode code) {
  if (!refusal_) refusal_ = Error{code, std::move(message)};
}

std::size_t JsonVisitor::depth() const { return reader_ == nullptr ? 0 : reader_->depth(); }

Result<void> read_json(const io::File& file, std::uint64_t offset, std::uint64_t bytes, JsonVisitor& visitor,
                       const JsonLimits& limits) {
  if (offset > file.bytes() || bytes > file.bytes() - offset) {
    return make_error(ErrorCode::kMalformed, "{}: {} bytes of JSON at offset {} pass the end of the file's {}",
                      file.path(), bytes, offset, file.bytes());
  }
  if (bytes > limits.bytes_max) {
    return make_error(ErrorCode::kUnsupported, "{}: {} bytes of JSON, more than the limit of {}", file.path(), bytes,
                      limits.bytes_max);
  }
  return JsonReader(file, offset, bytes, visitor, limits).read();
}

}  // namespace rowtide::checkpoint
