// int8 dot products with AVX2, which multiplies unsigned by signed bytes: |a| by b with the sign of a. Both are within ±127, so a pair
// of products is at most 32,258 and does not saturate its 16 bits. Include after vec_avx2.h.
#define FN8(name) moerack_##name##_avx2
#define W8 32      // bytes of a vector
#define APART8 1
// Outputs of a tile of 1, 2, … rows.
#define OUTPUTS8_1 2
#define OUTPUTS8_2 2
#define OUTPUTS8_3 3
#define OUTPUTS8_4 2

typedef __m256i V8;  // of int8
typedef __m256i S8;  // of sums
typedef __m256i A8;  // a vector of a row, prepared for many outputs

static inline S8 s8_zero(void) { return _mm256_setzero_si256(); }
static inline V8 v8_load(const int8_t *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline A8 a8(V8 a) { return a; }
static inline S8 s8_dot(S8 sum, A8 a, V8 b) {
	__m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
	return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
static inline int32_t s8_sum(S8 s) {
	__m128i a = _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
	a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0x4e));
	a = _mm_add_epi32(a, _mm_shuffle_epi32(a, 0xb1));
	return _mm_cvtsi128_si32(a);
}

// v8_round rounds W8/4 · 4 floats to int8, halves to the even one; they are within ±127.5.
static inline void v8_round(int8_t *out, const float *x, float f) {
	__m256 m = _mm256_set1_ps(f);
	__m256i q[4];
	for (int i = 0; i < 4; i++) q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), m));
	__m256i b = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
	b = _mm256_max_epi8(b, _mm256_set1_epi8(-127));
	b = _mm256_permutevar8x32_epi32(b, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
	_mm256_storeu_si256((__m256i *)out, b);
}
