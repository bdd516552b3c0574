#include "table/row_decoders.h"

#if defined(__x86_64__)

#include <immintrin.h>

#if !defined(__clang__) && __GNUC__ < 13
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // false alarms of that version's header
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif

// On each function and not on the file, lest code that other files share be built for this instruction set.
#define ROWTIDE_AVX512 __attribute__((target("avx512f,avx512bw")))

namespace rowtide {
namespace {

constexpr std::uint64_t kStep = 16;  // numbers of one vector of binary32

// As the reference rounds. The CPU's own conversion (AVX512_BF16) makes subnormal numbers zero.
ROWTIDE_AVX512 inline __m256i to_bf16(__m512 value) {
  const __m512i bits = _mm512_castps_si512(value);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i nearest = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
  const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  const __m512i chosen = _mm512_mask_or_epi32(nearest, is_nan, bits, _mm512_set1_epi32(0x00400000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(chosen, 16));
}

ROWTIDE_AVX512 inline void store(__m512 values, float* out) { _mm512_storeu_ps(out, values); }

ROWTIDE_AVX512 inline void store(__m512 values, std::uint16_t* out) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), to_bf16(values));
}

ROWTIDE_AVX512 inline __m128i load_128(const std::byte* raw) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(raw));
}

ROWTIDE_AVX512 inline __m256i load_256(const std::byte* raw) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(raw));
}

// Sixteen codes of four bits, the low half of each byte before its high half; above each lies something else.
ROWTIDE_AVX512 inline __m128i load_pairs(const std::byte* raw) {
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(raw));
  return _mm_unpacklo_epi8(bytes, _mm_srli_epi16(bytes, 4));
}

ROWTIDE_AVX512 inline __m512 load_scale(const std::byte* raw) {
  std::int16_t scale;
  std::memcpy(&scale, raw, sizeof(scale));
  return _mm512_cvtph_ps(_mm256_set1_epi16(scale));
}

ROWTIDE_AVX512 inline __m512 to_f32(__m128i levels) { return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(levels)); }

ROWTIDE_AVX512 void from_f32(const std::byte* raw, std::uint64_t values, std::uint16_t* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    store(_mm512_castsi512_ps(_mm512_loadu_si512(raw + 4 * i)), out + i);
  }
  decode_rest<RowFormat::kF32>(raw, 4, values, kStep, out);
}

template <class Out>
ROWTIDE_AVX512 void from_f16(const std::byte* raw, std::uint64_t values, Out* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    store(_mm512_cvtph_ps(load_256(raw + 2 * i)), out + i);
  }
  decode_rest<RowFormat::kF16>(raw, 2, values, kStep, out);
}

ROWTIDE_AVX512 void from_bf16(const std::byte* raw, std::uint64_t values, float* out) {
  for (std::uint64_t i = 0; i + kStep <= values; i += kStep) {
    const __m512i words = _mm512_cvtepu16_epi32(load_256(raw + 2 * i));
    store(_mm512_castsi512_ps(_mm512_slli_epi32(words, 16)), out + i);
  }
  decode_rest<RowFormat::kBf16>(raw, 2, values, kStep, out);
}

template <class Out>
ROWTIDE_AVX512 void from_q8_0(const std::byte* raw, std::uint64_t values, Out* out) {
  for (; values > 0; values -= kBlockValues, out += kBlockValues, raw += kScaleBytes + kBlockValues) {
    const __m512 scale = load_scale(raw);
    store(_mm512_mul_ps(scale, to_f32(load_128(raw + kScaleBytes))), out);
    store(_mm512_mul_ps(scale, to_f32(load_128(raw + kScaleBytes + 16))), out + 16);
  }
}

// A look-up reads the low four bits of an index and no others, so the codes need no mask.
ROWTIDE_AVX512 inline void store_products(__m512 products, __m128i codes, float* out) {
  const __m512i indices = _mm512_cvtepu8_epi32(codes);
  store(_mm512_permutexvar_ps(indices, products), out);
  store(_mm512_permutexvar_ps(_mm512_srli_epi32(indices, 4), products), out + 16);
}

// Here it reads five, and the table is there twice.
ROWTIDE_AVX512 inline void store_products(__m512 products, __m128i codes, std::uint16_t* out) {
  const __m256i halves = _mm256_set_m128i(_mm_srli_epi16(codes, 4), codes);
  const __m512i table = _mm512_broadcast_i64x4(to_bf16(products));
  _mm512_storeu_si512(out, _mm512_permutexvar_epi16(_mm512_cvtepu8_epi16(halves), table));
}

template <const Levels& levels, class Out>
ROWTIDE_AVX512 void from_4_bit(const std::byte* raw, std::uint64_t values, Out* out) {
  const __m512 table = to_f32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(levels.data())));
  for (; values > 0; values -= kBlockValues, out += kBlockValues, raw += kScaleBytes + kBlockValues / 2) {
    store_products(_mm512_mul_ps(load_scale(raw), table), load_128(raw + kScaleBytes), out);
  }
}

// Two vectors of 16: the codes as binary16, whose exponents are 8 too small and whose greatest magnitude, a NaN, is
// not.
struct Halves {
  __m256i low, high;
};
ROWTIDE_AVX512 inline Halves load_e4m3(const std::byte* raw) {
  const __m512i words = _mm512_slli_epi16(_mm512_cvtepi8_epi16(load_256(raw)), 7);
  const __m512i halves = _mm512_and_si512(words, _mm512_set1_epi16(static_cast<short>(0xbf80)));
  const __m512i magnitudes = _mm512_and_si512(words, _mm512_set1_epi16(0x3f80));
  const __mmask32 is_nan = _mm512_cmpeq_epi16_mask(magnitudes, _mm512_set1_epi16(0x3f80));
  const __m512i all = _mm512_mask_add_epi16(halves, is_nan, halves, _mm512_set1_epi16(0x7e00 - 0x3f80));
  return {_mm512_castsi512_si256(all), _mm512_extracti64x4_epi64(all, 1)};
}

ROWTIDE_AVX512 inline __m512 scaled_halves(__m256i halves, __m512 scale) {
  return _mm512_mul_ps(_mm512_mul_ps(_mm512_cvtph_ps(halves), _mm512_set1_ps(256)), scale);
}

template <class Out>
ROWTIDE_AVX512 inline void store_e4m3(const std::byte* raw, __m512 scale, Out* out) {
  const Halves halves = load_e4m3(raw);
  store(scaled_halves(halves.low, scale), out);
  store(scaled_halves(halves.high, scale), out + 16);
}

template <class Out>
ROWTIDE_AVX512 void from_fp8(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  constexpr std::uint64_t kCodes = 32;
  const std::uint64_t values = rows * coding.values;
  const __m512 scale = _mm512_set1_ps(coding.scale);
  for (std::uint64_t i = 0; i + kCodes <= values; i += kCodes) store_e4m3(raw + i, scale, out + i);
  decode_rest<RowFormat::kFp8>(raw, 1, values, kCodes, out, coding.scale);
}

template <class Out>
ROWTIDE_AVX512 void from_fp8_ue8m0(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const std::uint64_t blocks = coding.values / kUe8m0BlockValues;
  for (; rows > 0; --rows) {
    const std::byte* const scales = raw + coding.values;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      store_e4m3(raw, _mm512_set1_ps(e8m0_to_f32(scales[block])), out);
      raw += kUe8m0BlockValues;
      out += kUe8m0BlockValues;
    }
    raw = scales + blocks;
  }
}

// The look-up reads the low four bits of an index and no others.
template <class Out>
ROWTIDE_AVX512 void from_nvfp4(const RowCoding& coding, const std::byte* raw, std::uint64_t rows, Out* out) {
  const __m512 values = _mm512_loadu_ps(kE2m1Values.data());
  const __m512 scale = _mm512_set1_ps(coding.scale);
  const std::uint64_t blocks = coding.values / kNvfp4BlockValues;
  for (; rows > 0; --rows) {
    const std::byte* const scales = raw + coding.values / 2;
    for (std::uint64_t block = 0; block < blocks; ++block) {
      const __m512 block_scale = _mm512_set1_ps(kE4m3Values[std::to_integer<std::size_t>(scales[block])]);
      const __m512 products = _mm512_mul_ps(_mm512_mul_ps(values, block_scale), scale);
      store(_mm512_permutexvar_ps(_mm512_cvtepu8_epi32(load_pairs(raw)), products), out);
      raw += kNvfp4BlockValues / 2;
      out += kNvfp4BlockValues;
    }
    raw = scales + blocks;
  }
}

}  // namespace

const RowDecoders kAvx512Decoders = {
    "avx512",
    {as_one_row<float, copy_row>, as_one_row<float, from_f16>, as_one_row<float, from_bf16>,
     as_one_row<float, from_q8_0>, as_one_row<float, from_4_bit<kLinearLevels>>,
     as_one_row<float, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
    {as_one_row<std::uint16_t, from_f32>, as_one_row<std::uint16_t, from_f16>, as_one_row<std::uint16_t, copy_row>,
     as_one_row<std::uint16_t, from_q8_0>, as_one_row<std::uint16_t, from_4_bit<kLinearLevels>>,
     as_one_row<std::uint16_t, from_4_bit<kNonLinearLevels>>, from_fp8, from_fp8_ue8m0, from_nvfp4},
};

}  // namespace rowtide

#endif
