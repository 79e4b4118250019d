// Products of quantised rows with int8 weights. Include after int8_*.h, once for each instruction set. Sums are whole
// numbers, exact in any order; all implementations end in the same two float32 products, and so in the same bits.
//
// As in matmul.h a tile is a few rows × a few outputs, and a group of rows passes over a block of outputs that stays in the second
// cache. Bytes come so slowly from memory, and are so soon used up, that what comes next is always asked for ahead; with
// APART8, where a single group passes, the outputs of a tile lie far apart: some processors read several places faster than one.
#include <math.h>

#include "block.h"

#define BLOCK8_N 96   // most outputs of a block
#define AHEAD8 64     // elements between two prefetches, a multiple of W8

// span8 is a group of rows and a run of outputs, over a whole reduction.
typedef struct {
	float *out;
	int64_t os;
	const int8_t *x;
	int64_t xs;
	const float *x_scale;
	const int8_t *w;
	int64_t ws;
	const float *w_scale;
	int64_t n;      // outputs
	int64_t k;      // elements
	int64_t step;   // from one output of a tile to the next
	int64_t ahead;  // from w to what is wanted next, 0 for nothing
} span8;

INLINE V8 load8_rest(const int8_t *p, int64_t n) {
	_Alignas(64) int8_t raw[W8] = {0};
	memcpy(raw, p, (size_t)n);
	return v8_load(raw);
}

#ifdef OFFSET  // rows are unsigned with an offset: the sums of the weights take it out again
#define OFFSETS(o) offset[o] = s8_ones(offset[o], b[o])
#else
#define OFFSETS(o)
#endif

// tile8 is outputs j, j+step, … of a span; those that are not there repeat the last one.
INLINE void tile8(int rows, int outputs, const span8 *s, int64_t j) {
	const int8_t *p[8];
	S8 sum[GROUP * 8], offset[8];
	UNROLL for (int o = 0; o < outputs; o++) {
		p[o] = s->w + min64(j + o * s->step, s->n - 1) * s->ws;
		offset[o] = s8_zero();
	}
	UNROLL for (int i = 0; i < rows * outputs; i++) sum[i] = s8_zero();
#define STEP8(LOAD_X, LOAD_W) \
	{ \
		V8 b[8]; \
		UNROLL for (int o = 0; o < outputs; o++) { \
			b[o] = LOAD_W; \
			OFFSETS(o); \
		} \
		UNROLL for (int r = 0; r < rows; r++) { \
			A8 a = a8(LOAD_X); \
			UNROLL for (int o = 0; o < outputs; o++) sum[r * outputs + o] = s8_dot(sum[r * outputs + o], a, b[o]); \
		} \
	}
	const int64_t n = s->k;
	int64_t k = 0;
	for (; k + AHEAD8 <= n; k += AHEAD8) {
		if (s->ahead)
			for (int o = 0; o < outputs; o++) __builtin_prefetch(p[o] + s->ahead + k, 0, 2);
		for (int64_t i = k; i < k + AHEAD8; i += W8) STEP8(v8_load(s->x + r * s->xs + i), v8_load(p[o] + i))
	}
	for (; k + W8 <= n; k += W8) STEP8(v8_load(s->x + r * s->xs + k), v8_load(p[o] + k))
	if (k < n) STEP8(load8_rest(s->x + r * s->xs + k, n - k), load8_rest(p[o] + k, n - k))
#undef STEP8
	for (int o = 0; o < outputs && j + o * s->step < s->n; o++) {
		const int64_t at = j + o * s->step;
		int32_t extra = 0;
#ifdef OFFSET
		extra = OFFSET * s8_sum(offset[o]);
#endif
		for (int r = 0; r < rows; r++)
			s->out[r * s->os + at] = (float)(s8_sum(sum[r * outputs + o]) - extra) * (s->x_scale[r] * s->w_scale[at]);
	}
	(void)offset;
}

INLINE void tiles8(int rows, int outputs, span8 *s, int apart) {
	if (apart) s->step = (s->n + outputs - 1) / outputs;
	if (s->step > 1)
		for (int64_t j = 0; j < s->step; j++) tile8(rows, outputs, s, j);
	else
		for (int64_t j = 0; j < s->n; j += outputs) tile8(rows, outputs, s, j);
}

// outputs8 takes outputs [o, o+n) of some rows.
static void outputs8(float *out, int64_t os, const int8_t *x, int64_t xs, const float *x_scale, int64_t rows, const mr_weight *w, int64_t o,
                     int64_t n) {
	for (int64_t r = 0; r < rows;) {
		int height = group(rows - r);
		span8 s = {out + r * os, os, x + r * xs, xs, x_scale + r, (const int8_t *)w->data + o * w->stride, w->stride,
		           w->scale + w->row_start + o, n, w->in, 1, 0};
		const int apart = APART8 && height == rows;
		if (apart) s.ahead = 1024;
		else if (r + height == rows) s.ahead = (rows > GROUP ? n : 8) * s.ws;
		switch (height) {
		case 1: tiles8(1, OUTPUTS8_1, &s, apart); break;
		case 2: tiles8(2, OUTPUTS8_2, &s, apart); break;
		case 3: tiles8(3, OUTPUTS8_3, &s, apart); break;
		default: tiles8(4, OUTPUTS8_4, &s, apart); break;
		}
		r += height;
	}
}

MR_MATMUL8(FN8(matmul8)) {
	mr_weight w = mr_make(w_data, w_scale, w_dims);
	int64_t most = block(w.in, BLOCK8_N);
	for (int64_t o = 0; o < w.out; o += most)
		outputs8(out + o, out_stride, x, x_stride, x_scale, rows, &w, o, min64(w.out - o, most));
}

MR_SWIGLU8(FN8(swiglu8)) {
	mr_weight gate = mr_make(gate_data, gate_scale, gate_dims), up = mr_make(up_data, up_scale, up_dims);
	float b[BLOCK_T * BLOCK8_N];
	int64_t most = block(gate.in, BLOCK8_N);
	for (int64_t o = 0; o < gate.out; o += most) {
		int64_t n = min64(gate.out - o, most);
		for (int64_t r = 0; r < rows; r += BLOCK_T) {
			int64_t height = min64(rows - r, BLOCK_T);
			float *to = out + r * out_stride + o;
			const int8_t *from = x + r * x_stride;
			outputs8(to, out_stride, from, x_stride, x_scale + r, height, &gate, o, n);
			outputs8(b, BLOCK8_N, from, x_stride, x_scale + r, height, &up, o, n);
			for (int64_t i = 0; i < height; i++) gate_up(to + i * out_stride, b + i * BLOCK8_N, n);
		}
	}
}

MR_QUANTIZE(FN8(quantize)) {
	for (int64_t r = 0; r < rows; r++) {
		const float *row = x + r * x_stride;
		int8_t *q = out + r * out_stride;
		V most = v_zero(), zero = v_zero();  // zero stays 0 unless an element is not finite
		int64_t k = 0;
		_Alignas(64) float lanes[2 * W], raw[W8] = {0};
		_Alignas(64) int8_t rest[W8];
		for (; k + W <= cols; k += W) {
			V v = v_load(row + k);
			most = v_max(v_abs(v), most);
			zero = v_fma(v, v_zero(), zero);
		}
		v_store(lanes, most);
		v_store(lanes + W, zero);
		float m = 0, bad = 0;
		for (int i = 0; i < W; i++) {
			m = lanes[i] > m ? lanes[i] : m;
			bad += lanes[W + i];
		}
		for (; k < cols; k++) {
			float a = fabsf(row[k]);
			m = a > m ? a : m;
			bad += row[k] * 0.0f;
		}
		if (bad != 0 || m < 0x1p-100f) {  // a NaN is no zero
			memset(q, 0, (size_t)cols);
			scale[r] = bad != 0 ? NAN : 0;
			continue;
		}
		scale[r] = m / 127;
		float inverse = 127 / m;
		for (k = 0; k + W8 <= cols; k += W8) v8_round(q + k, row + k, inverse);
		if (k < cols) {
			memcpy(raw, row + k, sizeof(float) * (size_t)(cols - k));
			v8_round(rest, raw, inverse);
			memcpy(q + k, rest, (size_t)(cols - k));
		}
	}
}
