// A JSON document that lies in a range of a file, read front to back by events.
//
// The document is never in memory as a whole: beside what the visitor keeps, reading takes less than 64 MiB whatever
// the file says (a window of the file, one text, 37 bytes for each name of the objects that are open). Texts are
// checked UTF-8; a name that occurs twice in one object is an error, also in parts that the visitor passes over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "io/file.h"
#include "rowtide/result.h"

namespace rowtide::checkpoint {

struct JsonLimits {
  std::uint64_t bytes_max = 100'000'000;                  // of the document
  std::uint32_t depth_max = 32;                           // objects and arrays inside each other
  std::uint32_t text_bytes_max = std::uint32_t{1} << 20;  // of one text, name or number, as the file writes it
  std::uint32_t names_max = 900'000;                      // in all objects that are open at one moment
  bool has_non_finite = false;  // NaN, Infinity and -Infinity, which are no JSON, are numbers, as Python writes them
};

/// A value that is neither object nor array.
struct JsonScalar {
  enum class Kind { kText, kUnsigned, kNegative, kReal, kBool, kNull };

  Kind kind = Kind::kNull;
  std::string_view text = {};        // kText; of kReal what the file says. Valid during the event
  std::uint64_t unsigned_value = 0;  // kUnsigned
  std::int64_t negative_value = 0;   // kNegative: below zero
  double real_value = 0;             // kReal: has a fraction or an exponent, fits neither integer, or is not finite
  bool bool_value = false;           // kBool

  /// As JSON, for messages: "'bf16'", "17", "null". Printable, and cut if long.
  std::string described() const;
};

class JsonReader;

/// Told of a document's parts in their order. An event that a visitor does not override refuses the document.
class JsonVisitor {
 public:
  virtual ~JsonVisitor() = default;

  virtual void object_begins() { refuse("an object is not expected here"); }
  /// The innermost object's next member. False: nobody needs it; its value is checked as JSON and not told of.
  virtual bool name(std::string_view /*name*/) { return false; }
  virtual void object_ends() {}
  virtual void array_begins() { refuse("a list is not expected here"); }
  virtual void array_ends() {}
  virtual void scalar(const JsonScalar& value) { refuse(value.described() + " is not expected here"); }

 protected:
  /// Ends the reading, after this event, with the error "FILE: offset N: PATH OF KEYS: MESSAGE". The first call counts.
  void refuse(std::string message, ErrorCode code = ErrorCode::kMalformed);
  /// How many objects and arrays lie around the part being told of: 0 for the document's own value. Objects and arrays
  /// count themselves neither when they begin nor when they end.
  std::size_t depth() const;

 private:
  friend class JsonReader;
  std::optional<Error> refusal_;
  const JsonReader* reader_ = nullptr;
};

/// Reads the one document in the `bytes` bytes at `offset`. Errors name file, byte offset and path of keys
/// ("text_config. layer_types[3]"): kMalformed for what is no JSON, kUnsupported for what passes a limit, what the
/// visitor refuses with, and those of the file's reads. Whatever the visitor was told before an error is void.
Result<void> read_json(const io::File& file, std::uint64_t offset, std::uint64_t bytes, JsonVisitor& visitor,
                       const JsonLimits& limits = {});

}  // namespace rowtide::checkpoint
