#include "table/row_decoders.h"

#if defined(__x86_64__)

#include <immintrin.h>

// On each function and not on the file, lest code that other files share be built for this instruction set.
#define ROWTIDE_AVX2 __attribute__((target("avx2,f16c")))

namespace rowtide {
namespace {

constexpr std::uint64_t kStep = 16;  // numbers a store() takes: those of one vector of bfloat16

// Two binary32 vectors as the eight and eight words of one vector of bfloat16, each rounded as the reference does it.
ROWTIDE_AVX2 inline __m256i rounded(__m256 value) {
  const __m256i bits = _mm256_castps_si256(value);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i nearest = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  const __m256 is_nan = _mm256_cmp_ps(value, value, _CMP_UNORD_Q);
  const __m256 chosen = _mm256_blendv_ps(_mm256_castsi256_ps(nearest), _mm256_castsi256_ps(quiet), is_nan);
  return _mm256_srli_epi32(_mm256_castps_si256(chosen), 16);
}

ROWTIDE_AVX2 inline __m256i to_bf16(__m256 low, __m256 high) {
  const __m256i interleaved = _mm256_packus_epi32(rounded(low), rounded(high));
  return _mm256_permute4x64_epi64(interleaved, 0b11'01'10'00);
}

ROWTIDE_AVX2 inline void store(__m256 low, __m256 high, float* out) {
  _mm256_storeu_ps(out, low);
  _mm256_storeu_ps(out + 8, high);
}

ROWTIDE_AVX2 inline void store(__m256 low, __m256 high, std::uint16_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), to_bf16(low, high));
}

ROWTIDE_AVX2 inline __m128i load_128(const std::byte* raw) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(raw));
}

ROWTIDE_AVX2 inline __m256 load_256(const std::byte* raw) {
  return _mm256_castsi256_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(raw)));
}

ROWTIDE_AVX2 inline __m256 load_scale(const std::byte* raw) {
  std::int16_t scale;
  std::memcpy(&scale, raw, sizeof(scale));
  return _mm256_cvtph_ps(_mm_set1_epi16(scale));
}

// The eight signed bytes at the bottom, times the scale.
ROWTIDE_AVX2 inline __m256 scaled(__m256 scale, __m128i levels) {
  return _mm256_mul_ps(scale, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(levels)));
}

template <class Out>
ROWTIDE_AVX2 void store_scaled(__m256 scale, __m128i levels, Out* out) {
  store(scaled(scale, levels), scaled(scale, _mm_unpackhi_epi64(levels, levels)), out);
}

ROWTIDE_AVX2 void from_f32(const std::byte* raw, std::uint64_t values, std::uint16_t* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    store(load_256(raw + 4 * i), load_256(raw + 4 * i + 32), out + i);
  }
  decode_rest<RowFormat::kF32>(raw, 4, values, kStep, out);
}

template <class Out>
ROWTIDE_AVX2 void from_f16(const std::byte* raw, std::uint64_t values, Out* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    store(_mm256_cvtph_ps(load_128(raw + 2 * i)), _mm256_cvtph_ps(load_128(raw + 2 * i + 16)), out + i);
  }
  decode_rest<RowFormat::kF16>(raw, 2, values, kStep, out);
}

ROWTIDE_AVX2 inline __m256 bf16_to_f32(__m128i words) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(words), 16));
}

ROWTIDE_AVX2 void from_bf16(const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    store(bf16_to_f32(load_128(raw + 2 * i)), bf16_to_f32(load_128(raw + 2 * i + 16)), out + i);
  }
  decode_rest<RowFormat::kBf16>(raw, 2, values, kStep, out);
}

template <class Out>
ROWTIDE_AVX2 void from_q8_0(const std::byte* raw, std::uint64_t values, Out* out) {
  for (; values > 0; values -= kBlockValues, out += kBlockValues, raw += kScaleBytes + kBlockValues) {
    const __m256 scale = load_scale(raw);
    store_scaled(scale, load_128(raw + kScaleBytes), out);
    store_scaled(scale, load_128(raw + kScaleBytes + 16), out + 16);
  }
}

// The 32 codes of a block in their order: the sixteen low halves, then the high ones.
ROWTIDE_AVX2 inline __m256i load_codes(const std::byte* raw) {
  const __m128i pairs = load_128(raw);
  return _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(pairs, 4), pairs), _mm256_set1_epi8(15));
}

ROWTIDE_AVX2 inline void store_products(__m128i levels, __m256 scale, __m256i codes, float* out) {
  const __m256i chosen = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(levels), codes);
  store_scaled(scale, _mm256_castsi256_si128(chosen), out);
  store_scaled(scale, _mm256_extracti128_si256(chosen, 1), out + 16);
}

// Sixteen roundings serve the block. A look-up chooses bytes, so there is one table of low and one of high bytes.
ROWTIDE_AVX2 inline void store_products(__m128i levels, __m256 scale, __m256i codes, std::uint16_t* out) {
  const __m256i words = to_bf16(scaled(scale, levels), scaled(scale, _mm_unpackhi_epi64(levels, levels)));
  const __m256i bytes =
      _mm256_packus_epi16(_mm256_and_si256(words, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(words, 8));
  const __m256i low = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(bytes, 0b10'00'10'00), codes);
  const __m256i high = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(bytes, 0b11'01'11'01), codes);
  const __m256i even_eights = _mm256_unpacklo_epi8(low, high);  // numbers 0..7 and 16..23
  const __m256i odd_eights = _mm256_unpackhi_epi8(low, high);   // the others
  auto* to = reinterpret_cast<__m256i*>(out);
  _mm256_storeu_si256(to, _mm256_permute2x128_si256(even_eights, odd_eights, 0x20));
  _mm256_storeu_si256(to + 1, _mm256_permute2x128_si256(even_eights, odd_eights, 0x31));
}

template <const Levels& levels, class Out>
ROWTIDE_AVX2 void from_4_bit(const std::byte* raw, std::uint64_t values, Out* out) {
  const __m128i table = _mm_loadu_si128(reinterpret_cast<const __m128i*>(levels.data()));
  for (; values > 0; values -= kBlockValues, out += kBlockValues, raw += kScaleBytes + kBlockValues / 2) {
    store_products(table, load_scale(raw), load_codes(raw + kScaleBytes), out);
  }
}

// Sixteen codes, as binary16 at first: its exponents are 8 too small, and its greatest magnitude is not yet a NaN.
template <class Out>
ROWTIDE_AVX2 inline void store_e4m3(const std::byte* raw, __m256 scale, Out* out) {
  const __m256i words = _mm256_slli_epi16(_mm256_cvtepi8_epi16(load_128(raw)), 7);
  const __m256i greatest = _mm256_set1_epi16(0x3f80);
  const __m256i is_nan = _mm256_cmpeq_epi16(_mm256_and_si256(words, greatest), greatest);
  const __m256i halves = _mm256_add_epi16(_mm256_and_si256(words, _mm256_set1_epi16(static_cast<short>(0xbf80))),
                                          _mm256_and_si256(is_nan, _mm256_set1_epi16(0x7e00 - 0x3f80)));
  const __m256 low = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(halves)), _mm256_set1_ps(256));
  const __m256 high = _mm256_mul_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1)), _mm256_set1_ps(256));
  store(_mm256_mul_ps(low, scale), _mm256_mul_ps(high, scale), out);
}

template <class Out>
ROWTIDE_AVX2 void from_fp8(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const std::uint64_t values = rows * coding.values;
  const __m256 scale = _mm256_set1_ps(coding.scale);
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) store_e4m3(raw + i, scale, out + i);
  decode_rest<RowFormat::kFp8>(raw, 1, values, kStep, out, coding.scale);
}

template <class Out>
ROWTIDE_AVX2 void from_fp8_ue8m0(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const std::uint64_t blocks = coding.values / kUe8m0BlockValues;
  for (; rows > 0; --rows) {
    const std::byte* const scales = raw + coding.values;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const __m256 scale = _mm256_set1_ps(e8m0_to_f32(scales[block]));
      store_e4m3(raw, scale, out);
      store_e4m3(raw + kStep, scale, out + kStep);
      raw += kUe8m0BlockValues;
      out += kUe8m0BlockValues;
    }
    raw = scales + blocks;
  }
}

// A look-up reads the low three bits of an index; the fourth is the sign.
ROWTIDE_AVX2 inline __m256 signed_products(__m256 products, __m128i codes) {
  const __m256i indices = _mm256_cvtepu8_epi32(codes);
  const __m256i signs = _mm256_and_si256(_mm256_slli_epi32(indices, 28), _mm256_set1_epi32(INT32_MIN));
  return _mm256_xor_ps(_mm256_permutevar8x32_ps(products, indices), _mm256_castsi256_ps(signs));
}

template <class Out>
ROWTIDE_AVX2 void from_nvfp4(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const __m256 magnitudes = _mm256_loadu_ps(kE2m1Values.data());
  const __m256 scale = _mm256_set1_ps(coding.scale);
  const std::uint64_t blocks = coding.values / kNvfp4BlockValues;
  for (; rows > 0; --rows) {
    const std::byte* const scales = raw + coding.values / 2;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const __m256 block_scale = _mm256_set1_ps(kE4m3Values[std::to_integer<std::size_t>(scales[block])]);
      const __m256 products = _mm256_mul_ps(_mm256_mul_ps(magnitudes, block_scale), scale);
      const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(raw));
      const __m128i codes = _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));  // above each lies something else
      store(signed_products(products, codes), signed_products(products, _mm_unpackhi_epi64(codes, codes)), out);
      raw += kNvfp4BlockValues / 2;
      out += kNvfp4BlockValues;
    }
    raw = scales + blocks;
  }
}

}  // namespace

const RowDecoders kAvx2Decoders = {
    "avx2",
    {as_one_row<float, copy_row>, as_one_row<float, from_f16>, as_one_row<float, from_bf16>,
     as_one_row<float, from_q8_0>, as_one_row<float, from_4_bit<kLinearLevels>>,
     as_one_row<float, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
    {as_one_row<std::uint16_t, from_f32>, as_one_row<std::uint16_t, from_f16>, as_one_row<std::uint16_t, copy_row>,
     as_one_row<std::uint16_t, from_q8_0>, as_one_row<std::uint16_t, from_4_bit<kLinearLevels>>,
     as_one_row<std::uint16_t, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
};

}  // namespace rowtide

#endif
