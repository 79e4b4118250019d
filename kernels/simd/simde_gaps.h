// For tests of AVX-512 on machines without it: SIMDe (Debian's libsimde-dev) emulates the intrinsics in portable C, in a build with
// CGO_CFLAGS=-DMOERACK_SIMDE. These are the ones that its version 0.7 lacks.
#ifndef MOERACK_SIMDE_GAPS_H
#define MOERACK_SIMDE_GAPS_H

#ifndef _MM_FROUND_NO_EXC
#define _MM_FROUND_NO_EXC SIMDE_MM_FROUND_NO_EXC
#endif

#ifdef SIMDE_X86_AVX512_H
static inline __m512 mr_join(__m256 low, __m256 high) {
	return _mm512_castpd_ps(_mm512_insertf64x4(_mm512_castps_pd(_mm512_castps256_ps512(low)), _mm256_castps_pd(high), 1));
}
static inline __m512i mr_join_i(__m256i low, __m256i high) { return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1); }
static inline __m256 mr_half(__m512 a, int high) {
	float lanes[16];
	_mm512_storeu_ps(lanes, a);
	return _mm256_loadu_ps(lanes + 8 * high);
}
static inline __m512i _mm512_cvtps_epi32(__m512 a) {
	return mr_join_i(_mm256_cvtps_epi32(mr_half(a, 0)), _mm256_cvtps_epi32(mr_half(a, 1)));
}
static inline __m512i _mm512_cvtepu16_epi32(__m256i a) {
	return mr_join_i(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(a)), _mm256_cvtepu16_epi32(_mm256_extracti128_si256(a, 1)));
}
static inline __m512 _mm512_cvtph_ps(__m256i a) {
	return mr_join(_mm256_cvtph_ps(_mm256_castsi256_si128(a)), _mm256_cvtph_ps(_mm256_extracti128_si256(a, 1)));
}
static inline int32_t _mm512_reduce_add_epi32(__m512i a) {
	int32_t lanes[16], sum = 0;
	_mm512_storeu_si512(lanes, a);
	for (int i = 0; i < 16; i++) sum += lanes[i];
	return sum;
}
#endif

#endif
