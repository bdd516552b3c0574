#include "checkpoint/gguf_value.h"

#include "base/printable.h"
#include "checkpoint/gguf_header.h"

namespace rowtide::checkpoint {
namespace {

constexpr std::uint64_t kTextLengthBytes = 8;
constexpr std::uint64_t kArrayHeadBytes = 4 + 8;

/// Bytes of a value or element; 0 for those that have none of their own.
std::uint64_t fixed_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool: return 1;
    case ValueType::kU16:
    case ValueType::kI16: return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32: return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64: return 8;
    case ValueType::kText:
    case ValueType::kArray: return 0;
  }
  return 0;
}

ValueType read_type(HeaderReader& in) {
  const auto number = in.number<std::uint32_t>();
  if (number > static_cast<std::uint32_t>(ValueType::kF64)) {
    in.fail(ErrorCode::kMalformed, fmt::format("value type {} is unknown", number));
    return ValueType::kU8;
  }
  return static_cast<ValueType>(number);
}

std::uint64_t read_integer(HeaderReader& in, ValueType type) {
  switch (type) {
    case ValueType::kU8: return in.number<std::uint8_t>();
    case ValueType::kI8: return static_cast<std::uint64_t>(std::int64_t{in.number<std::int8_t>()});
    case ValueType::kU16: return in.number<std::uint16_t>();
    case ValueType::kI16: return static_cast<std::uint64_t>(std::int64_t{in.number<std::int16_t>()});
    case ValueType::kU32: return in.number<std::uint32_t>();
    case ValueType::kI32: return static_cast<std::uint64_t>(std::int64_t{in.number<std::int32_t>()});
    default: return in.number<std::uint64_t>();
  }
}

void read_fixed(HeaderReader& in, MetadataPair& pair) {
  if (!is_integer(pair.type) || pair.count > kMaxKeptArraySize) return in.skip(pair.count * fixed_bytes(pair.type));
  pair.is_kept = true;
  pair.integers.reserve(pair.count);
  for (std::uint64_t i = 0; i < pair.count; ++i) pair.integers.push_back(read_integer(in, pair.type));
}

std::uint64_t read_text_length(HeaderReader& in) {
  const auto bytes = in.number<std::uint64_t>();
  in.expect(bytes, 1, "bytes of text");
  return bytes;
}

void read_text(HeaderReader& in, MetadataPair& pair) {
  const std::uint64_t bytes = read_text_length(in);
  if (in.failed() || bytes > kMaxKeptTextBytes) return in.skip(bytes);
  pair.is_kept = true;
  pair.text = in.text(bytes);
}

void read_array(HeaderReader& in, MetadataPair& pair) {
  pair.is_array = true;
  pair.type = read_type(in);
  pair.count = in.number<std::uint64_t>();
  if (pair.type == ValueType::kArray) in.fail(ErrorCode::kUnsupported, "an array of arrays");
  const bool is_text = pair.type == ValueType::kText;
  in.expect(pair.count, is_text ? kTextLengthBytes : fixed_bytes(pair.type), "array elements");
  if (in.failed()) return;
  if (!is_text) return read_fixed(in, pair);
  for (std::uint64_t i = 0; i < pair.count && !in.failed(); ++i) in.skip(read_text_length(in));
}

std::string read_key(HeaderReader& in) {
  const auto bytes = in.number<std::uint64_t>();
  if (bytes == 0 || bytes > kMaxKeyBytes) {
    in.fail(ErrorCode::kMalformed, fmt::format("a key of {} bytes is not 1 to {}", bytes, kMaxKeyBytes));
  }
  in.expect(bytes, 1, "bytes of a key");
  std::string key = in.text(bytes);
  in.set_subject(fmt::format("key '{}'", printable(key)));
  return key;
}

}  // namespace

MetadataPair read_pair(HeaderReader& in) {
  MetadataPair pair;
  pair.key = read_key(in);
  pair.type = read_type(in);
  // One byte of the value was announced with the pair.
  switch (pair.type) {
    case ValueType::kArray:
      in.expect(kArrayHeadBytes - 1, 1, "bytes of an array's type and count");
      read_array(in, pair);
      break;
    case ValueType::kText:
      in.expect(kTextLengthBytes - 1, 1, "bytes of a text's length");
      read_text(in, pair);
      break;
    default:
      in.expect(fixed_bytes(pair.type) - 1, 1, "bytes of a value");
      if (!in.failed()) read_fixed(in, pair);
  }
  return pair;
}

}  // namespace rowtide::checkpoint
