// AVX-512 (F, BW, VL): sixteen float32 lanes.
#ifndef MOERACK_VEC_H
#define MOERACK_VEC_H

#ifdef MOERACK_SIMDE
#define SIMDE_ENABLE_NATIVE_ALIASES
#include <simde/x86/avx512.h>
#include <simde/x86/f16c.h>
#include <simde/x86/fma.h>
#include "simde_gaps.h"
#else
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx2,fma,f16c,prefer-vector-width=512")
#endif
#include <immintrin.h>
#endif
#include <stdint.h>

#define FN(name) moerack_##name##_avx512
#define W 16
#define TILE_N 6  // 4 × 6 accumulators and their operands fit 32 registers
// Outputs of a tile of 1, 2, … rows.
#define OUTPUTS_1 8
#define OUTPUTS_2 8
#define OUTPUTS_3 8
#define OUTPUTS_4 TILE_N

typedef __m512 V;

static inline V v_zero(void) { return _mm512_setzero_ps(); }
static inline V v_set(float x) { return _mm512_set1_ps(x); }
static inline V v_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void v_store(float *p, V a) { _mm512_storeu_ps(p, a); }
static inline V v_add(V a, V b) { return _mm512_add_ps(a, b); }
static inline V v_sub(V a, V b) { return _mm512_sub_ps(a, b); }
static inline V v_mul(V a, V b) { return _mm512_mul_ps(a, b); }
static inline V v_div(V a, V b) { return _mm512_div_ps(a, b); }
static inline V v_fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
static inline V v_sqrt(V a) { return _mm512_sqrt_ps(a); }
// v_max and v_min return b where a or b is NaN.
static inline V v_max(V a, V b) { return _mm512_max_ps(a, b); }
static inline V v_min(V a, V b) { return _mm512_min_ps(a, b); }
static inline V v_abs(V a) { return _mm512_abs_ps(a); }
// v_round rounds to the nearest whole number, halves to the even one.
static inline V v_round(V a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
// v_pow2 is 2 to a whole number from -126 to 127.
static inline V v_pow2(V n) {
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
// v_swap exchanges neighbours, v_evens and v_odds double the even and the odd lanes.
static inline V v_swap(V a) { return _mm512_shuffle_ps(a, a, 0xb1); }
static inline V v_evens(V a) { return _mm512_shuffle_ps(a, a, 0xa0); }
static inline V v_odds(V a) { return _mm512_shuffle_ps(a, a, 0xf5); }

// v_sum adds lane i to lane i+8, then as AVX2 does.
static inline float v_sum(V a) {
	__m256 h = _mm256_add_ps(_mm512_castps512_ps256(a), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a), 1)));
	__m128 s = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
	s = _mm_add_ps(s, _mm_movehl_ps(s, s));
	return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

// The next ones widen W numbers exactly.
static inline V v_bf16(const uint16_t *p) {
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
static inline V v_f16(const uint16_t *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }

// v_f8 widens OCP E4M3 by way of binary16, whose exponent has one bit more: the bits fit in, 2^8 too small. 0x7f is NaN.
static inline V v_f8(const uint8_t *p) {
	__m256i c = _mm256_cvtepu8_epi16(_mm_loadu_si128((const __m128i *)p));
	__m256i low = _mm256_and_si256(c, _mm256_set1_epi16(0x7f));
	__m256i nan = _mm256_cmpeq_epi16(low, _mm256_set1_epi16(0x7f));
	__m256i half = _mm256_or_si256(_mm256_slli_epi16(low, 7), _mm256_slli_epi16(_mm256_andnot_si256(_mm256_set1_epi16(0x7f), c), 8));
	half = _mm256_or_si256(half, _mm256_and_si256(nan, _mm256_set1_epi16(0x7e00)));
	return _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f));
}

#endif
