#include "table/row_decoders.h"

#if defined(__aarch64__)

#include <arm_neon.h>

namespace rowtide {
namespace {

constexpr std::uint64_t kStep = 8;  // numbers a store() takes: those of one vector of bfloat16

// As the reference rounds.
uint16x4_t to_bf16(float32x4_t value) {
  const uint32x4_t bits = vreinterpretq_u32_f32(value);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t nearest = vaddq_u32(vaddq_u32(bits, vdupq_n_u32(0x7fff)), odd);
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
  return vshrn_n_u32(vbslq_u32(vceqq_f32(value, value), nearest, quiet), 16);
}

void store(float32x4_t low, float32x4_t high, float* out) {
  vst1q_f32(out, low);
  vst1q_f32(out + 4, high);
}

void store(float32x4_t low, float32x4_t high, std::uint16_t* out) {
  vst1q_u16(out, vcombine_u16(to_bf16(low), to_bf16(high)));
}

uint8x16_t load_128(const std::byte* raw) { return vld1q_u8(reinterpret_cast<const std::uint8_t*>(raw)); }

float32x4_t load_f32(const std::byte* raw) { return vreinterpretq_f32_u8(load_128(raw)); }

uint16x8_t load_words(const std::byte* raw) { return vreinterpretq_u16_u8(load_128(raw)); }

float32x4_t load_scale(const std::byte* raw) {
  std::uint16_t scale;
  std::memcpy(&scale, raw, sizeof(scale));
  return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(scale)));
}

template <class Out>
void store_scaled(float32x4_t scale, int8x16_t levels, Out* out) {
  const int16x8_t first = vmovl_s8(vget_low_s8(levels));
  const int16x8_t second = vmovl_high_s8(levels);
  for (const int16x8_t eight : {first, second}) {
    const float32x4_t low = vcvtq_f32_s32(vmovl_s16(vget_low_s16(eight)));
    const float32x4_t high = vcvtq_f32_s32(vmovl_high_s16(eight));
    store(vmulq_f32(scale, low), vmulq_f32(scale, high), out);
    out += kStep;
  }
}

void from_f32(const std::byte* raw, std::uint64_t values, std::uint16_t* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    store(load_f32(raw + 4 * i), load_f32(raw + 4 * i + 16), out + i);
  }
  decode_rest<RowFormat::kF32>(raw, 4, values, kStep, out);
}

template <class Out>
void from_f16(const std::byte* raw, std::uint64_t values, Out* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    const float16x8_t halves = vreinterpretq_f16_u16(load_words(raw + 2 * i));
    store(vcvt_f32_f16(vget_low_f16(halves)), vcvt_high_f32_f16(halves), out + i);
  }
  decode_rest<RowFormat::kF16>(raw, 2, values, kStep, out);
}

void from_bf16(const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    const uint16x8_t words = load_words(raw + 2 * i);
    store(vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(words), 16)),
          vreinterpretq_f32_u32(vshll_high_n_u16(words, 16)), out + i);
  }
  decode_rest<RowFormat::kBf16>(raw, 2, values, kStep, out);
}

template <class Out>
void from_q8_0(const std::byte* raw, std::uint64_t values, Out* out) {
  for (; values > 0; values -= kBlockValues, out += kBlockValues, raw += kScaleBytes + kBlockValues) {
    const float32x4_t scale = load_scale(raw);
    store_scaled(scale, vreinterpretq_s8_u8(load_128(raw + kScaleBytes)), out);
    store_scaled(scale, vreinterpretq_s8_u8(load_128(raw + kScaleBytes + 16)), out + 16);
  }
}

template <const Levels& levels, class Out>
void from_4_bit(const std::byte* raw, std::uint64_t values, Out* out) {
  const int8x16_t table = vld1q_s8(levels.data());
  for (; values > 0; values -= kBlockValues, out += kBlockValues, raw += kScaleBytes + kBlockValues / 2) {
    const float32x4_t scale = load_scale(raw);
    const uint8x16_t codes = load_128(raw + kScaleBytes);
    store_scaled(scale, vqtbl1q_s8(table, vandq_u8(codes, vdupq_n_u8(15))), out);
    store_scaled(scale, vqtbl1q_s8(table, vshrq_n_u8(codes, 4)), out + 16);
  }
}

// Eight codes as binary16, whose exponents are 8 too small and whose greatest magnitude is not yet a NaN.
template <class Out>
void store_e4m3(int8x8_t codes, float32x4_t scale, Out* out) {
  const uint16x8_t words = vreinterpretq_u16_s16(vshll_n_s8(codes, 7));
  const uint16x8_t greatest = vdupq_n_u16(0x3f80);
  const uint16x8_t is_nan = vceqq_u16(vandq_u16(words, greatest), greatest);
  const uint16x8_t all = vaddq_u16(vandq_u16(words, vdupq_n_u16(0xbf80)), vandq_u16(is_nan, vdupq_n_u16(0x3e80)));
  const float16x8_t halves = vreinterpretq_f16_u16(all);
  const float32x4_t low = vmulq_n_f32(vcvt_f32_f16(vget_low_f16(halves)), 256);
  const float32x4_t high = vmulq_n_f32(vcvt_high_f32_f16(halves), 256);
  store(vmulq_f32(low, scale), vmulq_f32(high, scale), out);
}

template <class Out>
void from_fp8(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const std::uint64_t values = rows * coding.values;
  const float32x4_t scale = vdupq_n_f32(coding.scale);
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    store_e4m3(vld1_s8(reinterpret_cast<const std::int8_t*>(raw + i)), scale, out + i);
  }
  decode_rest<RowFormat::kFp8>(raw, 1, values, kStep, out, coding.scale);
}

template <class Out>
void from_fp8_ue8m0(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  for (; rows > 0; --rows, out += coding.values) {
    const std::byte* const scales = raw + coding.values;
    for (std::uint64_t i = 0; i < coding.values; i += kStep) {
      const float32x4_t scale = vdupq_n_f32(e8m0_to_f32(scales[i / kUe8m0BlockValues]));
      store_e4m3(vld1_s8(reinterpret_cast<const std::int8_t*>(raw + i)), scale, out + i);
    }
    raw = scales + coding.values / kUe8m0BlockValues;
  }
}

// The products of a block's scale with all sixteen codes, as bytes.
uint8x16x4_t nvfp4_products(float block_scale, float scale) {
  uint8x16x4_t products;
  for (int i = 0; i < 4; ++i) {
    const float32x4_t four = vmulq_n_f32(vmulq_n_f32(vld1q_f32(kE2m1Values.data() + 4 * i), block_scale), scale);
    products.val[i] = vreinterpretq_u8_f32(four);
  }
  return products;
}

// Of the products those of codes `first` to `first` + 3; `bytes` holds each code times four.
float32x4_t chosen(const uint8x16x4_t& products, uint8x16_t bytes, std::uint8_t first) {
  static constexpr std::uint8_t kSpread[16] = {0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3};
  static constexpr std::uint8_t kByte[16] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3};
  const uint8x16_t spread = vqtbl1q_u8(bytes, vaddq_u8(vld1q_u8(kSpread), vdupq_n_u8(first)));
  return vreinterpretq_f32_u8(vqtbl4q_u8(products, vaddq_u8(spread, vld1q_u8(kByte))));
}

template <class Out>
void from_nvfp4(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const std::uint64_t blocks = coding.values / kNvfp4BlockValues;
  for (; rows > 0; --rows) {
    const std::byte* const scales = raw + coding.values / 2;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const float block_scale = kE4m3Values[std::to_integer<std::size_t>(scales[block])];
      const uint8x16x4_t products = nvfp4_products(block_scale, coding.scale);
      const uint8x8_t pairs = vld1_u8(reinterpret_cast<const std::uint8_t*>(raw));
      const uint8x8_t low = vand_u8(pairs, vdup_n_u8(15));
      const uint8x8_t high = vshr_n_u8(pairs, 4);
      const uint8x16_t bytes = vshlq_n_u8(vcombine_u8(vzip1_u8(low, high), vzip2_u8(low, high)), 2);
      store(chosen(products, bytes, 0), chosen(products, bytes, 4), out);
      store(chosen(products, bytes, 8), chosen(products, bytes, 12), out + kStep);
      raw += kNvfp4BlockValues / 2;
      out += kNvfp4BlockValues;
    }
    raw = scales + blocks;
  }
}

}  // namespace

const RowDecoders kNeonDecoders = {
    "neon",
    {as_one_row<float, copy_row>, as_one_row<float, from_f16>, as_one_row<float, from_bf16>,
     as_one_row<float, from_q8_0>, as_one_row<float, from_4_bit<kLinearLevels>>,
     as_one_row<float, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
    {as_one_row<std::uint16_t, from_f32>, as_one_row<std::uint16_t, from_f16>, as_one_row<std::uint16_t, copy_row>,
     as_one_row<std::uint16_t, from_q8_0>, as_one_row<std::uint16_t, from_4_bit<kLinearLevels>>,
     as_one_row<std::uint16_t, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
};

}  // namespace rowtide

#endif
