// The key-value pairs of a GGUF header, looked up by type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rowtide/result.h"

namespace rowtide::checkpoint {

/// Types of GGUF values, numbered as in the format.
enum class ValueType : std::uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kText,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// ggml's name of a type: "u32", "str".
std::string_view value_type_name(ValueType type);
bool is_integer(ValueType type);
bool is_signed(ValueType type);

/// One pair. Values that nobody looks up are not kept, only described: floats, bools, long texts and arrays.
struct MetadataPair {
  std::string key;
  ValueType type = ValueType::kU8;  // of the elements, if an array
  bool is_array = false;
  bool is_kept = false;
  std::uint64_t count = 1;              // elements of an array
  std::vector<std::uint64_t> integers;  // sign-extended
  std::string text;
};

/// The pairs of one file. Every error names file, key and what was found.
class Metadata {
 public:
  Metadata() = default;

  /// Refuses a key that occurs twice.
  static Result<Metadata> from_pairs(std::string path, std::vector<MetadataPair> pairs);

  bool has(std::string_view key) const { return find(key) != nullptr; }

  // Each wants a pair that is there, of a fitting type and kept: kMalformed otherwise. Integers of any
  // width fit as long as they are not negative.
  Result<std::uint64_t> integer(std::string_view key) const;
  Result<std::vector<std::uint64_t>> integers(std::string_view key) const;
  Result<std::string> text(std::string_view key) const;
  /// How many elements an array has, kept or not.
  Result<std::uint64_t> array_size(std::string_view key) const;

  /// The error "FILE: key 'KEY': ..." for a value that makes no sense to the one who looked it up.
  Error error(ErrorCode code, std::string_view key, std::string_view message) const;

 private:
  const MetadataPair* find(std::string_view key) const;
  Result<const MetadataPair*> require(std::string_view key, bool fits(const MetadataPair&),
                                      std::string_view wanted) const;

  std::string path_;
  std::vector<MetadataPair> pairs_;  // ascending by key
};

}  // namespace rowtide::checkpoint
