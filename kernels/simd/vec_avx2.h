// AVX2 with FMA and F16C: eight float32 lanes.
#ifndef MOERACK_VEC_H
#define MOERACK_VEC_H

#ifdef MOERACK_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx2.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#include "simde_gaps.h"
#else
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx2,fma,f16c")
#endif
#include <immintrin.h>
#endif
#include <stdint.h>

#define FN(name) moerack_##name##_avx2
#define W 8       // lanes
#define TILE_N 3  // outputs of a register tile: 4 × 3 accumulators and their operands fit 16 registers
// Outputs of a tile of 1, 2, … rows.
#define OUTPUTS_1 8
#define OUTPUTS_2 4
#define OUTPUTS_3 4
#define OUTPUTS_4 TILE_N

typedef __m256 V;

static inline V v_zero(void) { return _mm256_setzero_ps(); }
static inline V v_set(float x) { return _mm256_set1_ps(x); }
static inline V v_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void v_store(float *p, V a) { _mm256_storeu_ps(p, a); }
static inline V v_add(V a, V b) { return _mm256_add_ps(a, b); }
static inline V v_sub(V a, V b) { return _mm256_sub_ps(a, b); }
static inline V v_mul(V a, V b) { return _mm256_mul_ps(a, b); }
static inline V v_div(V a, V b) { return _mm256_div_ps(a, b); }
static inline V v_fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
static inline V v_sqrt(V a) { return _mm256_sqrt_ps(a); }
// v_max and v_min return b where a or b is NaN.
static inline V v_max(V a, V b) { return _mm256_max_ps(a, b); }
static inline V v_min(V a, V b) { return _mm256_min_ps(a, b); }
static inline V v_abs(V a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
// v_round rounds to the nearest whole number, halves to the even one.
static inline V v_round(V a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// v_pow2 is 2 to a whole number from -126 to 127.
static inline V v_pow2(V n) {
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
// v_swap exchanges neighbours, v_evens and v_odds double the even and the odd lanes.
static inline V v_swap(V a) { return _mm256_permute_ps(a, 0xb1); }
static inline V v_evens(V a) { return _mm256_permute_ps(a, 0xa0); }
static inline V v_odds(V a) { return _mm256_permute_ps(a, 0xf5); }

// v_sum adds the lanes as ((0+4)+(2+6)) + ((1+5)+(3+7)).
static inline float v_sum(V a) {
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// The next ones widen W numbers exactly.
static inline V v_bf16(const uint16_t *p) {
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
static inline V v_f16(const uint16_t *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }

// v_f8 widens OCP E4M3 by way of binary16, whose exponent has one bit more: the bits fit in, 2^8 too small. 0x7f is NaN.
static inline V v_f8(const uint8_t *p) {
	__m128i c = _mm_cvtepu8_epi16(_mm_loadl_epi64((const __m128i *)p));
	__m128i low = _mm_and_si128(c, _mm_set1_epi16(0x7f));
	__m128i nan = _mm_cmpeq_epi16(low, _mm_set1_epi16(0x7f));
	__m128i half = _mm_or_si128(_mm_slli_epi16(low, 7), _mm_slli_epi16(_mm_andnot_si128(_mm_set1_epi16(0x7f), c), 8));
	half = _mm_or_si128(half, _mm_and_si128(nan, _mm_set1_epi16(0x7e00)));
	return _mm256_mul_ps(_mm256_cvtph_ps(half), _mm256_set1_ps(256.0f));
}

#endif
