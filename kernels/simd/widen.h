// Weight elements as float32 vectors. Widening is exact; an element of a format with scales is multiplied by its block's scale and
// rounded, as published. Include after vec_*.h.
#ifndef MOERACK_WIDEN_H
#define MOERACK_WIDEN_H

#include "block.h"

// bytes_of is the size of an element.
INLINE int64_t bytes_of(int format) { return format == MR_F32 ? 4 : format == MR_F8 ? 1 : 2; }

// element_at points at element (o, i).
INLINE const char *element_at(const mr_weight *w, int64_t o, int64_t i) {
	return (const char *)w->data + (o * w->stride + i) * bytes_of(w->format);
}

// widen1 reads W elements, without scale.
INLINE V widen1(int format, const char *p) {
	switch (format) {
	case MR_F32: return v_load((const float *)p);
	case MR_BF16: return v_bf16((const uint16_t *)p);
	case MR_F16: return v_f16((const uint16_t *)p);
	default: return v_f8((const uint8_t *)p);
	}
}

// widen_rest reads n < W elements; the others are zero.
INLINE V widen_rest(int format, const char *p, int64_t n) {
	_Alignas(64) char raw[4 * W] = {0};
	memcpy(raw, p, (size_t)(n * bytes_of(format)));
	return widen1(format, raw);
}

// widen_run writes n elements times f to dst.
INLINE void widen_run(float *dst, int format, const char *p, int64_t n, V f, int scaled) {
	int64_t k = 0;
	for (; k + W <= n; k += W) {
		V v = widen1(format, p + k * bytes_of(format));
		v_store(dst + k, scaled ? v_mul(v, f) : v);
	}
	if (k < n) {
		V v = widen_rest(format, p + k * bytes_of(format), n - k);
		store_rest(dst + k, scaled ? v_mul(v, f) : v, n - k);
	}
}

// widen writes elements [i, i+n) of row o to dst: runs of one scale, one after the other.
static void widen(float *dst, const mr_weight *w, int64_t o, int64_t i, int64_t n) {
	const char *p = element_at(w, o, i);
	switch (w->format) {
	case MR_F32: memcpy(dst, p, sizeof(float) * (size_t)n); return;
	case MR_BF16: widen_run(dst, MR_BF16, p, n, v_zero(), 0); return;
	case MR_F16: widen_run(dst, MR_F16, p, n, v_zero(), 0); return;
	}
	if (!w->scale) {
		widen_run(dst, MR_F8, p, n, v_zero(), 0);
		return;
	}
	const float *scale = w->scale + (w->row_start + o) / w->block_rows * w->scale_cols;
	for (int64_t k = 0; k < n;) {
		int64_t column = w->col_start + i + k, block = column / w->block_cols;
		int64_t run = min64((block + 1) * w->block_cols - column, n - k);
		widen_run(dst + k, MR_F8, p + k, run, v_set(scale[block]), 1);
		k += run;
	}
}

#endif
