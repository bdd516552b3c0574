// The element types of safetensors files.
#pragma once

#include <cstdint>
#include <string_view>

namespace rowtide::checkpoint {

/// Those of the format's reference reader.
enum class Dtype : std::uint8_t {
  kUnknown,  // a name this version does not know: nothing is said of the elements' size
  kBool,
  kF4,
  kF6E2M3,
  kF6E3M2,
  kU8,
  kI8,
  kF8E5M2,
  kF8E4M3,
  kF8E8M0,
  kF8E4M3Fnuz,
  kF8E5M2Fnuz,
  kI16,
  kU16,
  kF16,
  kBF16,
  kI32,
  kU32,
  kF32,
  kC64,
  kF64,
  kI64,
  kU64,
};

/// Of the name in a file ("F8_E4M3"); kUnknown for another.
Dtype dtype_of(std::string_view name);
/// "F8_E4M3"; "unknown" for kUnknown.
std::string_view dtype_name(Dtype dtype);
/// Of one element. 0 for kUnknown.
std::uint32_t dtype_bits(Dtype dtype);

}  // namespace rowtide::checkpoint
