#include "checkpoint/json_events.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/printable.h"
#include "checkpoint/name_table.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::size_t kWindowBytes = 65'536;
constexpr std::size_t kPathNameBytes = 96;  // kept of a name, for messages

/// The document's bytes, one window at a time.
class JsonBytes {
 public:
  JsonBytes(const io::File& file, std::uint64_t offset, std::uint64_t bytes, std::uint64_t unbroken_max)
      : file_(file), window_start_(offset), end_(offset + bytes), unbroken_max_(unbroken_max) {
    fill();
  }

  bool at_end() const { return next_ == window_end_; }
  char next() const { return *next_; }
  void advance() {
    if (++next_ == window_end_) fill();
  }

  /// In the file, of the byte after the last one that was taken.
  std::uint64_t offset() const { return window_start_ + static_cast<std::uint64_t>(next_ - window_.data()); }
  /// The parser has come to the end of a text or number, and holds none of the bytes before any more.
  void break_here() { last_break_ = offset(); }

  const std::optional<Error>& error() const { return error_; }
  /// So many bytes came without the end of a text or number that the parser, which holds all of them, was stopped.
  bool is_unbroken() const { return is_unbroken_; }

 private:
  void fill() {
    window_start_ += window_.size();
    is_unbroken_ = window_start_ > last_break_ && window_start_ - last_break_ > unbroken_max_;
    const std::uint64_t left = is_unbroken_ ? 0 : end_ - window_start_;
    window_.resize(std::min<std::uint64_t>(kWindowBytes, left));
    if (!window_.empty()) {
      if (auto read = file_.read(window_start_, std::as_writable_bytes(std::span(window_))); !read) {
        error_ = read.error();
        window_.clear();
      }
    }
    next_ = window_.data();
    window_end_ = next_ + window_.size();
  }

  const io::File& file_;
  std::uint64_t window_start_;
  const std::uint64_t end_;
  const std::uint64_t unbroken_max_;
  std::uint64_t last_break_ = window_start_;
  std::vector<char> window_;
  const char* next_ = nullptr;
  const char* window_end_ = nullptr;
  std::optional<Error> error_;
  bool is_unbroken_ = false;
};

/// As the library wants its input.
struct JsonByteIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  JsonBytes* bytes = nullptr;  // null: the end

  char operator*() const { return bytes->next(); }
  JsonByteIterator& operator++() {
    bytes->advance();
    return *this;
  }
  bool operator!=(const JsonByteIterator&) const { return !bytes->at_end(); }
  bool operator==(const JsonByteIterator&) const { return bytes->at_end(); }
};

/// "syntax error while parsing value - invalid literal", without the library's preface and the bytes read last.
std::string sentence_of(std::string text) {
  if (const auto preface = text.find("syntax error"); preface != std::string::npos) {
    text.erase(0, preface);
  } else if (const auto id = text.find("] "); id != std::string::npos) {
    text.erase(0, id + 2);
  }
  const auto last_read = text.find("; last read: '");
  const auto expected = text.rfind("; expected ");
  if (last_read != std::string::npos) {
    const bool is_behind = expected != std::string::npos && expected > last_read;
    text.erase(last_read, is_behind ? expected - last_read : std::string::npos);
  }
  return printable(text);
}

}  // namespace

/// Between the library's events and the visitor's: limits, names, the path of keys.
class JsonReader final : public nlohmann::json_sax<nlohmann::json> {
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
  ~JsonReader() override { visitor_.reader_ = nullptr; }
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  Result<void> read() {
    [[maybe_unused]] const bool done = nlohmann::json::sax_parse(JsonByteIterator{&bytes_}, JsonByteIterator{}, this);
    if (bytes_.error()) return *bytes_.error();
    if (error_) return *error_;
    assert(done);
    return {};
  }

  std::size_t depth() const { return open_.size(); }

  // The library's events.
  bool null() override { return scalar({}); }
  bool boolean(bool value) override { return scalar({.kind = JsonScalar::Kind::kBool, .bool_value = value}); }
  bool number_integer(std::int64_t value) override {
    bytes_.break_here();
    return scalar({.kind = JsonScalar::Kind::kNegative, .negative_value = value});
  }
  bool number_unsigned(std::uint64_t value) override {
    bytes_.break_here();
    return scalar({.kind = JsonScalar::Kind::kUnsigned, .unsigned_value = value});
  }
  bool number_float(double value, const std::string& text) override {
    bytes_.break_here();
    if (!fits(text)) return false;
    return scalar({.kind = JsonScalar::Kind::kReal, .text = text, .real_value = value});
  }
  bool string(std::string& text) override {
    bytes_.break_here();
    if (!fits(text)) return false;
    return scalar({.kind = JsonScalar::Kind::kText, .text = text});
  }
  bool binary(nlohmann::json::binary_t&) override { return false; }  // JSON holds none

  bool start_object(std::size_t) override { return opens({.is_list = false}, &JsonVisitor::object_begins); }
  bool start_array(std::size_t) override { return opens({.is_list = true}, &JsonVisitor::array_begins); }
  bool end_object() override { return closes(&JsonVisitor::object_ends); }
  bool end_array() override { return closes(&JsonVisitor::array_ends); }

  bool key(std::string& name) override {
    bytes_.break_here();
    if (!fits(name)) return false;
    Open& object = open_.back();
    object.name.assign(name, 0, kPathNameBytes);
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

  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& exception) override {
    if (bytes_.error()) return false;
    if (bytes_.is_unbroken()) {
      return fail(ErrorCode::kUnsupported,
                  fmt::format("no text or number ends within {} bytes, the limit", limits_.text_bytes_max));
    }
    return fail(ErrorCode::kMalformed, "is not JSON: " + sentence_of(exception.what()));
  }

 private:
  /// An object or list that has begun and not ended.
  struct Open {
    bool is_list = false;
    bool has_name = false;
    std::uint64_t index = 0;  // of the list's element being read
    std::string name = {};    // of the object's member being read
    NameTable names = {};     // of the object's members so far
  };

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
