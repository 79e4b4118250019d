// Products of float32 rows with weights of any format but I8. Include after vec_*.h, once for each instruction set.
//
// Order of summation: each (row, output) has one vector of sums. Lane j adds x[k]·w[k] for k ≡ j (mod W) in ascending k, each with
// one fma; what is missing in the last group counts as zero; v_sum adds the lanes. Nothing below departs from it, so a result
// depends on its row and its output alone: not on how many there are, where they stand, or how the work is cut.
//
// A tile is a few rows × a few outputs, so that the sums fit the registers and each vector that is loaded meets several others. A
// group of rows, short enough for the first cache, passes over a block of outputs that stays in the second; the reduction is cut into
// pieces, between which the vectors of sums are kept as they are. Weights are widened in registers. Where that costs too much, a
// panel of outputs is widened into memory and many rows pass over it.
#include "widen.h"

#define BLOCK_N 48   // most outputs of a block
#define PANEL_N 12   // outputs of a panel
#define PANEL_T (W < 16 ? 64 : 32)  // rows that share a panel; their sums are on the stack
#define PANEL_K 384  // of the reduction, a multiple of W
#define LINE 64      // bytes of a cache line
#define SHORT 2048   // bytes of a row that is too short for the processor to see a stream in it
#define PAGE 4096    // bytes of a row in which it does, if nothing else is done meanwhile

// span is one piece of the reduction for a group of rows and a run of outputs.
typedef struct {
	V *keep;          // sums between pieces: OUTPUTS[rows] · rows for each tile
	int first, last;  // of the pieces
	float *out;
	int64_t os;
	const float *x;
	int64_t xs;
	const char *w;  // element (0, 0) of the piece
	int64_t ws;     // bytes from one output to the next
	int64_t n;      // outputs
	int64_t k;      // elements of the piece, a multiple of W unless it is the last
	int64_t ahead;  // bytes from an output to what is wanted next, 0 for nothing
	int along;      // what is wanted next is asked for along the memory, else along the outputs
} span;

// tile is outputs [j, j+outputs) of a span; those that are not there repeat the last one.
INLINE void tile(int rows, int outputs, int format, const span *s, int64_t j) {
	const int64_t size = bytes_of(format), line = LINE / size, n = s->k;
	const int64_t along_o = s->along ? LINE : s->ws, along_k = s->along ? outputs * size : size;
	const char *p[8], *next = s->w + j * s->ws + s->ahead;
	V sum[GROUP * 8], *keep = s->keep + j * rows;
	UNROLL for (int o = 0; o < outputs; o++) p[o] = s->w + min64(j + o, s->n - 1) * s->ws;
	if (s->first) {
#pragma GCC unroll 32
		for (int i = 0; i < rows * outputs; i++) sum[i] = v_zero();
	} else {
#pragma GCC unroll 32
		for (int i = 0; i < rows * outputs; i++) sum[i] = keep[i];
	}
#define STEP(LOAD_X, LOAD_W) \
	if (rows < outputs) { \
		V a[GROUP]; \
		UNROLL for (int r = 0; r < rows; r++) a[r] = LOAD_X; \
		UNROLL for (int o = 0; o < outputs; o++) { \
			V b = LOAD_W; \
			UNROLL for (int r = 0; r < rows; r++) sum[r * outputs + o] = v_fma(a[r], b, sum[r * outputs + o]); \
		} \
	} else { \
		V b[8]; \
		UNROLL for (int o = 0; o < outputs; o++) b[o] = LOAD_W; \
		UNROLL for (int r = 0; r < rows; r++) { \
			V a = LOAD_X; \
			UNROLL for (int o = 0; o < outputs; o++) sum[r * outputs + o] = v_fma(a, b[o], sum[r * outputs + o]); \
		} \
	}
	int64_t k = 0;
	for (; k + line <= n; k += line) {
		if (s->ahead)
			for (int o = 0; o < outputs; o++) __builtin_prefetch(next + o * along_o + k * along_k, 0, 2);
		for (int64_t i = k; i < k + line; i += W) { STEP(v_load(s->x + r * s->xs + i), widen1(format, p[o] + i * size)) }
	}
	for (; k + W <= n; k += W) { STEP(v_load(s->x + r * s->xs + k), widen1(format, p[o] + k * size)) }
	if (k < n) { STEP(load_rest(s->x + r * s->xs + k, n - k), widen_rest(format, p[o] + k * size, n - k)) }
#undef STEP
	if (!s->last) {
#pragma GCC unroll 32
		for (int i = 0; i < rows * outputs; i++) keep[i] = sum[i];
		return;
	}
	for (int o = 0; o < outputs && j + o < s->n; o++)
		for (int r = 0; r < rows; r++) s->out[r * s->os + j + o] = v_sum(sum[r * outputs + o]);
}

INLINE void tiles(int rows, int outputs, int format, const span *s) {
	for (int64_t j = 0; j < s->n; j += outputs) tile(rows, outputs, format, s, j);
}

#define TILES(format) \
	static void tiles_##format(int rows, const span *s) { \
		switch (rows) { \
		case 1: tiles(1, OUTPUTS_1, MR_##format, s); break; \
		case 2: tiles(2, OUTPUTS_2, MR_##format, s); break; \
		case 3: tiles(3, OUTPUTS_3, MR_##format, s); break; \
		default: tiles(4, OUTPUTS_4, MR_##format, s); break; \
		} \
	}
TILES(F32)
TILES(BF16)
TILES(F16)
#undef TILES

// run takes a span of up to GROUP rows.
static void run(int format, int rows, const span *s) {
	switch (format) {
	case MR_F32: tiles_F32(rows, s); break;
	case MR_BF16: tiles_BF16(rows, s); break;
	default: tiles_F16(rows, s); break;
	}
}

// direct takes outputs [o, o+n) of some rows, n ≤ BLOCK_N, of a format without scales.
static void direct(float *out, int64_t os, const float *x, int64_t xs, int64_t rows, const mr_weight *w, int64_t o, int64_t n) {
	V keep[GROUP * BLOCK_N];
	int64_t size = bytes_of(w->format);
	for (int64_t r = 0; r < rows;) {
		int height = group(rows - r);
		int64_t piece = 8192 / height / LINE * LINE;
		span s = {.keep = keep, .out = out + r * os, .os = os, .xs = xs, .ws = w->stride * size, .n = n};
		if (rows > GROUP) {  // the block comes from memory with the first rows, the next one is asked for with the last
			if (r + height == rows) s.ahead = n * s.ws;
		} else if (s.ws < SHORT) {
			s.along = 1;
			s.ahead = 16 * s.ws;
		} else if (rows > 1 || s.ws < PAGE) {
			s.ahead = 8 * s.ws;
		}
		for (int64_t k = 0; k == 0 || k < w->in; k += piece) {
			s.first = k == 0;
			s.last = k + piece >= w->in;
			s.k = min64(w->in - k, piece);
			s.x = x + r * xs + k;
			s.w = element_at(w, o, k);
			run(w->format, height, &s);
		}
		r += height;
	}
}

// by_panel is direct for FP8, of up to PANEL_T rows and PANEL_N outputs.
static void by_panel(float *out, int64_t os, const float *x, int64_t xs, int64_t rows, const mr_weight *w, int64_t o, int64_t n) {
	V keep[PANEL_T * (PANEL_N + 4)];
	_Alignas(64) float panel[PANEL_N * PANEL_K];
	for (int64_t k = 0; k == 0 || k < w->in; k += PANEL_K) {
		int64_t piece = min64(w->in - k, PANEL_K);
		for (int64_t j = 0; j < n; j++) widen(panel + j * PANEL_K, w, o + j, k, piece);
		for (int64_t r = 0; r < rows;) {
			int height = group(rows - r);
			span s = {keep + r * (PANEL_N + 4), k == 0, k + PANEL_K >= w->in, out + r * os, os, x + r * xs + k, xs,
			          (const char *)panel, 4 * PANEL_K, n, piece, 0, 0};
			run(MR_F32, height, &s);
			r += height;
		}
	}
}

INLINE int64_t block_n(const mr_weight *w) { return w->format == MR_F8 ? PANEL_N : block(w->in * bytes_of(w->format), BLOCK_N); }

// outputs takes outputs [o, o+n) of some rows, n ≤ block_n.
static void outputs(float *out, int64_t os, const float *x, int64_t xs, int64_t rows, const mr_weight *w, int64_t o, int64_t n) {
	if (w->format != MR_F8) {
		direct(out, os, x, xs, rows, w, o, n);
		return;
	}
	for (int64_t r = 0; r < rows; r += PANEL_T) by_panel(out + r * os, os, x + r * xs, xs, min64(rows - r, PANEL_T), w, o, n);
}

// product sets out to x times outputs [from, to). // out (rows, to-from)
static void product(float *out, int64_t os, const float *x, int64_t xs, int64_t rows, const mr_weight *w, int64_t from, int64_t to) {
	int64_t most = block_n(w);
	for (int64_t o = from; o < to; o += most) outputs(out + o - from, os, x, xs, rows, w, o, min64(to - o, most));
}

MR_MATMUL(FN(matmul)) {
	mr_weight w = mr_make(w_data, w_scale, w_dims);
	product(out, out_stride, x, x_stride, rows, &w, 0, w.out);
}

MR_SWIGLU(FN(swiglu)) {
	mr_weight gate = mr_make(gate_data, gate_scale, gate_dims), up = mr_make(up_data, up_scale, up_dims);
	float b[BLOCK_T * BLOCK_N];
	int64_t most = min64(block_n(&gate), block_n(&up));
	for (int64_t o = 0; o < gate.out; o += most) {
		int64_t n = min64(gate.out - o, most);
		for (int64_t r = 0; r < rows; r += BLOCK_T) {
			int64_t height = min64(rows - r, BLOCK_T);
			float *to = out + r * out_stride + o;
			outputs(to, out_stride, x + r * x_stride, x_stride, height, &gate, o, n);
			outputs(b, BLOCK_N, x + r * x_stride, x_stride, height, &up, o, n);
			for (int64_t i = 0; i < height; i++) gate_up(to + i * out_stride, b + i * BLOCK_N, n);
		}
	}
}
