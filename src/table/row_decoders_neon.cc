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

}  // namespace

const RowDecoders kNeonDecoders = {
    "neon",
    {copy_row, from_f16, from_bf16, from_q8_0, from_4_bit<kLinearLevels>, from_4_bit<kNonLinearLevels>},
    {from_f32, from_f16, copy_row, from_q8_0, from_4_bit<kLinearLevels>, from_4_bit<kNonLinearLevels>},
};

}  // namespace rowtide

#endif
