// Vectors that are not whole, and sums over lanes. Include after vec_*.h.
#ifndef MOERACK_VECMATH_H
#define MOERACK_VECMATH_H

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

// load_rest reads n < W elements; the others are zero.
INLINE V load_rest(const float *p, int64_t n) {
	_Alignas(64) float whole[W] = {0};
	memcpy(whole, p, (size_t)n * sizeof *p);
	return v_load(whole);
}

// store_rest writes the first n < W elements.
INLINE void store_rest(float *p, V a, int64_t n) {
	_Alignas(64) float whole[W];
	v_store(whole, a);
	memcpy(p, whole, (size_t)n * sizeof *p);
}

// v_top is the largest lane.
INLINE float v_top(V a) {
	_Alignas(64) float x[W];
	v_store(x, a);
	float top = x[0];
	for (int i = 1; i < W; i++) top = x[i] > top ? x[i] : top;
	return top;
}

#endif
