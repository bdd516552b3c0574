#include "checkpoint/dtype.h"

#include <array>

namespace rowtide::checkpoint {
namespace {

struct Known {
  Dtype dtype;
  std::string_view name;
  std::uint32_t bits;
};

constexpr std::array<Known, 23> kKnown = {{
    {Dtype::kUnknown, "unknown", 0},
    {Dtype::kBool, "BOOL", 8},
    {Dtype::kF4, "F4", 4},
    {Dtype::kF6E2M3, "F6_E2M3", 6},
    {Dtype::kF6E3M2, "F6_E3M2", 6},
    {Dtype::kU8, "U8", 8},
    {Dtype::kI8, "I8", 8},
    {Dtype::kF8E5M2, "F8_E5M2", 8},
    {Dtype::kF8E4M3, "F8_E4M3", 8},
    {Dtype::kF8E8M0, "F8_E8M0", 8},
    {Dtype::kF8E4M3Fnuz, "F8_E4M3FNUZ", 8},
    {Dtype::kF8E5M2Fnuz, "F8_E5M2FNUZ", 8},
    {Dtype::kI16, "I16", 16},
    {Dtype::kU16, "U16", 16},
    {Dtype::kF16, "F16", 16},
    {Dtype::kBF16, "BF16", 16},
    {Dtype::kI32, "I32", 32},
    {Dtype::kU32, "U32", 32},
    {Dtype::kF32, "F32", 32},
    {Dtype::kC64, "C64", 64},
    {Dtype::kF64, "F64", 64},
    {Dtype::kI64, "I64", 64},
    {Dtype::kU64, "U64", 64},
}};

constexpr bool is_in_order() {
  for (std::size_t i = 0; i < kKnown.size(); ++i) {
    if (kKnown[i].dtype != static_cast<Dtype>(i)) return false;
  }
  return true;
}
static_assert(is_in_order());

}  // namespace

Dtype dtype_of(std::string_view name) {
  for (const Known& known : kKnown) {
    if (known.name == name) return known.dtype;
  }
  return Dtype::kUnknown;
}

std::string_view dtype_name(Dtype dtype) { return kKnown[static_cast<std::size_t>(dtype)].name; }

std::uint32_t dtype_bits(Dtype dtype) { return kKnown[static_cast<std::size_t>(dtype)].bits; }

}  // namespace rowtide::checkpoint
