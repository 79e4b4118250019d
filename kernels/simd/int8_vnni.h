// int8 dot products with AVX-512 VNNI, which multiplies unsigned by signed bytes and adds four products to 32 bits without
// saturation: a+128 by b, less 128·Σb. The sum of b is taken beside the products, once for all rows of a tile. Include first.
#include "vec_avx512.h"

#ifndef MOERACK_SIMDE
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("avx512vnni"))), apply_to = function)
#else
#pragma GCC target("avx512vnni")
#endif
#endif

#define FN8(name) moerack_##name##_avx512vnni
#define W8 64
#define APART8 0
// Outputs of a tile of 1, 2, … rows.
#define OUTPUTS8_1 8
#define OUTPUTS8_2 8
#define OUTPUTS8_3 8
#define OUTPUTS8_4 6

typedef __m512i V8;  // of int8
typedef __m512i S8;  // of sums
typedef __m512i A8;  // a vector of a row, prepared for many outputs

#define OFFSET 128  // of a8

static inline S8 s8_zero(void) { return _mm512_setzero_si512(); }
static inline V8 v8_load(const int8_t *p) { return _mm512_loadu_si512(p); }
static inline A8 a8(V8 a) { return _mm512_xor_si512(a, _mm512_set1_epi8((char)0x80)); }
static inline S8 s8_dot(S8 sum, A8 a, V8 b) { return _mm512_dpbusd_epi32(sum, a, b); }
// s8_ones adds Σb.
static inline S8 s8_ones(S8 sum, V8 b) { return _mm512_dpbusd_epi32(sum, _mm512_set1_epi8(1), b); }
static inline int32_t s8_sum(S8 s) { return _mm512_reduce_add_epi32(s); }

// v8_round rounds 64 floats times f to int8, halves to the even one; the products are within ±127.5.
static inline void v8_round(int8_t *out, const float *x, float f) {
	__m512 m = _mm512_set1_ps(f);
	for (int i = 0; i < 4; i++) {
		__m512i q = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16 * i), m));
		q = _mm512_max_epi32(q, _mm512_set1_epi32(-127));
		_mm_storeu_si128((__m128i *)(out + 16 * i), _mm512_cvtsepi32_epi8(q));
	}
}
