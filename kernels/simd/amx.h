// Products of a few or many rows with weights in bfloat16 or int8 on the tiles of AMX: 16 outputs × 16 rows at once.
//
// Weights are read as they lie in memory, as the left operand of a tile product; rows are packed for the right one, so sums come
// out as (outputs, rows) and are turned at the end. int8 is exact, so the order does not matter. For bfloat16 a float32 row is the sum
// of three bfloat16 rows, exactly: its bits from the top, a third each.
//
// Order of summation in bfloat16: every 32 elements, in ascending order, three tile products are added to the sum of a (row,
// output), first with the highest third; a tile product adds the products of even and of odd elements apart, then both. Inputs
// below 2^-126 count as zero. Nothing below departs from it, so a result depends on its row and its output alone.
#include <immintrin.h>

#include "block.h"

#define TILE 16            // outputs, rows and four-byte groups of the reduction in a tile
#define TILE_BYTES 1024    // of a tile
#define STEP_BYTES 64      // of an output in a tile
#define TILES_N 2          // tiles of outputs that pass together
#define CHUNK_T (2 * TILE) // rows that pass together
#define SUMS_N 1024        // outputs whose sums are kept between pieces of the reduction
#define SECOND (SUMS_N / 2 * 4 * CHUNK_T)  // bytes to the sums of a second weight
#define PACKED (384 << 10) // most bytes of packed rows: they and the weights that pass share the second cache
#define HELD (4 << 20)     // bytes of weights that pass again for every chunk of rows
#define WEIGHTS 4          // the tile of weights, where no other is
#define AHEAD_STEPS 8      // by which weights are asked for before they are used

// product is one call: up to two weights of the same shape for the same rows.
typedef struct {
	float *out;
	int64_t os;
	const char *x;
	int64_t xs;            // bytes
	const float *x_scale;  // int8
	int64_t rows, in;
	const mr_weight *w[2];
	int weights;
	int floats;  // x is float32 and weights are bfloat16, else both are int8
} product;

// run is a span of outputs of one weight for a chunk of rows, over one piece of the reduction.
typedef struct {
	const char *a;    // of the first output
	int64_t as;       // bytes between outputs
	int64_t n;        // outputs
	int64_t bytes;    // of the piece
	const char *b;    // packed rows: (steps, groups of 16 rows, thirds, tile), a single row in tiles of one column
	char *c;          // sums: (outputs, CHUNK_T) of four bytes
	int first, ahead;
} run;

// configure sets the sizes of tiles. Of a single row, rows and sums have one column.
static void configure(int single) {
	struct {
		uint8_t palette, start, reserved[14];
		uint16_t bytes[16];
		uint8_t rows[16];
	} all = {.palette = 1};
	for (int i = 0; i < 8; i++) {
		all.bytes[i] = single && i != WEIGHTS ? 4 : STEP_BYTES;
		all.rows[i] = TILE;
	}
	_tile_loadconfig(&all);
}

// transpose turns 16 × 16 elements of four bytes.
INLINE void transpose(__m512i *v) {
	__m512i t[16];
	UNROLL for (int i = 0; i < 16; i += 2) {
		t[i] = _mm512_unpacklo_epi32(v[i], v[i + 1]);
		t[i + 1] = _mm512_unpackhi_epi32(v[i], v[i + 1]);
	}
	UNROLL for (int i = 0; i < 16; i += 4) {
		v[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
		v[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
		v[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
		v[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
	}
	UNROLL for (int i = 0; i < 4; i++) {
		t[i] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0x88);
		t[i + 4] = _mm512_shuffle_i32x4(v[i], v[i + 4], 0xdd);
		t[i + 8] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0x88);
		t[i + 12] = _mm512_shuffle_i32x4(v[i + 8], v[i + 12], 0xdd);
	}
	UNROLL for (int i = 0; i < 4; i++) {
		v[i] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0x88);
		v[i + 8] = _mm512_shuffle_i32x4(t[i], t[i + 8], 0xdd);
		v[i + 4] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0x88);
		v[i + 12] = _mm512_shuffle_i32x4(t[i + 4], t[i + 12], 0xdd);
	}
}

// gather reads four bytes each of 16 columns of up to 16 rows, and turns them; what is not there is zero. bytes are those left in a row.
INLINE void gather(__m512i *v, const char *x, int64_t xs, int64_t rows, int64_t bytes) {
	const __mmask64 there = bytes >= 64 ? ~(__mmask64)0 : bytes <= 0 ? 0 : ((__mmask64)1 << bytes) - 1;
	UNROLL for (int r = 0; r < 16; r++) v[r] = r < rows ? _mm512_maskz_loadu_epi8(there, x + r * xs) : _mm512_setzero_si512();
	transpose(v);
}

// pack_bytes packs one step of up to 16 rows: 64 elements.
static void pack_bytes(char *to, const char *x, int64_t xs, int64_t rows, int64_t left) {
	__m512i v[16];
	gather(v, x, xs, rows, left);
	UNROLL for (int i = 0; i < 16; i++) _mm512_storeu_si512(to + 64 * i, v[i]);
}

// third splits off what bfloat16 holds of x; the rest, exact, is left in x. Nothing is left of an infinity or NaN.
INLINE __m512i third(__m512 *x) {
	const __m512i top = _mm512_set1_epi32((int)0xffff0000);
	__m512i h = _mm512_and_si512(_mm512_castps_si512(*x), top);
	__mmask16 finite = _mm512_cmp_ps_mask(_mm512_sub_ps(*x, *x), _mm512_setzero_ps(), _CMP_EQ_OQ);
	__mmask16 nan = _mm512_cmp_ps_mask(*x, *x, _CMP_UNORD_Q);
	h = _mm512_mask_or_epi32(h, nan, h, _mm512_set1_epi32(0x400000));
	*x = _mm512_maskz_sub_ps(finite, *x, _mm512_castsi512_ps(h));
	return h;
}

// pack_floats packs one step of up to 16 rows: 32 elements, left bytes of which are there.
static void pack_floats(char *to, const char *x, int64_t xs, int64_t rows, int64_t left) {
	for (int half = 0; half < 2; half++) {
		__m512i v[16];
		gather(v, x + 64 * half, xs, rows, left - 64 * half);
		for (int i = 0; i < 16; i += 2) {
			__m512 even = _mm512_castsi512_ps(v[i]), odd = _mm512_castsi512_ps(v[i + 1]);
			UNROLL for (int part = 0; part < 3; part++) {
				__m512i low = _mm512_srli_epi32(third(&even), 16), high = third(&odd);
				_mm512_storeu_si512(to + TILE_BYTES * part + 64 * (8 * half + i / 2), _mm512_or_si512(low, high));
			}
		}
	}
}

// pack_float packs one step of a single float32 row.
static void pack_float(char *to, const char *x, int64_t left) {
	const __m512i evens = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0), odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
	__m512i v[2];
	for (int half = 0; half < 2; half++) {
		const int64_t n = left / 4 - 16 * half;
		v[half] = _mm512_maskz_loadu_epi32(n >= 16 ? 0xffff : n <= 0 ? 0 : (__mmask16)((1 << n) - 1), x + 64 * half);
	}
	__m512 even = _mm512_castsi512_ps(_mm512_permutex2var_epi32(v[0], evens, v[1])), odd = _mm512_castsi512_ps(_mm512_permutex2var_epi32(v[0], odds, v[1]));
	UNROLL for (int part = 0; part < 3; part++) {
		__m512i low = _mm512_srli_epi32(third(&even), 16), high = third(&odd);
		_mm512_storeu_si512(to + 64 * part, _mm512_or_si512(low, high));
	}
}

// edge copies one step of up to 16 outputs, filled up with zeros.
static void edge(char *to, const char *a, int64_t as, int64_t n, int64_t bytes) {
	memset(to, 0, TILE_BYTES);
	for (int64_t o = 0; o < n; o++) memcpy(to + o * STEP_BYTES, a + o * as, (size_t)(bytes < STEP_BYTES ? bytes : STEP_BYTES));
}

// SUMS goes through the tiles of sums: of two times 16 outputs and one or two groups of rows.
#define SUMS(DO) \
	DO(0) DO(1) \
	if (groups == 2) { \
		DO(2) DO(3) \
	}

// multiply adds a piece of the reduction to the sums of 32 outputs × 16 or 32 rows. More places of memory at once, from which four
// tiles of outputs would come, are read more slowly.
INLINE void multiply(const run *s, int64_t j, int groups, int columns, int floats, int whole) {
	const int outputs = TILES_N, thirds = floats ? 3 : 1;
	const int64_t wide = 4 * CHUNK_T, across = 4 * columns, tile = TILE * across;
	char *c = s->c + j * wide;
	_Alignas(64) char copy[TILES_N * TILE_BYTES];
#define AT(i) (c + i / groups * TILE * wide + i % groups * 64)
#define LOAD(i) _tile_loadd(i, AT(i), wide);
#define ZERO(i) _tile_zero(i);
#define STORE(i) _tile_stored(i, AT(i), wide);
	if (s->first) {
		SUMS(ZERO)
	} else {
		SUMS(LOAD)
	}
	const char *a = s->a + j * s->as, *b = s->b;
	const int64_t steps = (s->bytes + STEP_BYTES - 1) / STEP_BYTES, early = min64(steps, AHEAD_STEPS);
	for (int64_t k = 0; k < steps; k++) {
		const char *p[TILES_N];
		int64_t stride = s->as;
		UNROLL for (int o = 0; o < outputs; o++) p[o] = a + o * TILE * s->as + k * STEP_BYTES;
		if (!whole) {
			stride = STEP_BYTES;
			for (int o = 0; o < outputs; o++) {
				edge(copy + o * TILE_BYTES, p[o], s->as, min64(s->n - j - o * TILE, TILE), s->bytes - k * STEP_BYTES);
				p[o] = copy + o * TILE_BYTES;
			}
		} else if (s->ahead) {
			const int64_t then = k + early, wrap = then < steps ? 0 : outputs * TILE * s->as - steps * STEP_BYTES;
			const char *want = a + then * STEP_BYTES + wrap;
			for (int o = 0; o < outputs * TILE; o++) __builtin_prefetch(want + o * s->as, 0, 2);
		}
#define DOT(sum, a, b) \
	if (floats) _tile_dpbf16ps(sum, a, b); \
	else _tile_dpbssd(sum, a, b);
		if (groups == 2) {
			_tile_loadd(4, p[0], stride);
			_tile_loadd(5, p[1], stride);
			for (int t = 0; t < thirds; t++) {
				_tile_loadd(6, b + t * TILE_BYTES, 64);
				_tile_loadd(7, b + (thirds + t) * TILE_BYTES, 64);
				DOT(0, 4, 6) DOT(1, 4, 7) DOT(2, 5, 6) DOT(3, 5, 7)
			}
		} else {
			_tile_loadd(5, b, across);
			if (floats) {
				_tile_loadd(6, b + tile, across);
				_tile_loadd(7, b + 2 * tile, across);
			}
#define ALL(i) \
	_tile_loadd(WEIGHTS, p[i], stride); \
	DOT(i, WEIGHTS, 5) \
	if (floats) { \
		_tile_dpbf16ps(i, WEIGHTS, 6); \
		_tile_dpbf16ps(i, WEIGHTS, 7); \
	}
			SUMS(ALL)
		}
		b += groups * thirds * tile;
	}
	SUMS(STORE)
#undef AT
#undef LOAD
#undef ZERO
#undef STORE
#undef DOT
#undef ALL
}

INLINE void piece(const run *s, int groups, int columns, int floats) {
	const int64_t most = TILES_N * TILE;
	const int even = s->bytes % STEP_BYTES == 0;
	for (int64_t j = 0; j < s->n; j += most) {
		if (even && s->n - j >= most) multiply(s, j, groups, columns, floats, 1);
		else multiply(s, j, groups, columns, floats, 0);
	}
}

// turned reads the sums of 16 outputs × 16 rows as rows.
INLINE void turned(__m512 *v, const char *c, int floats) {
	__m512i t[16];
	UNROLL for (int o = 0; o < 16; o++) t[o] = _mm512_loadu_si512(c + o * 4 * CHUNK_T);
	transpose(t);
	UNROLL for (int r = 0; r < 16; r++) v[r] = floats ? _mm512_castsi512_ps(t[r]) : _mm512_cvtepi32_ps(t[r]);
}

// finish writes outputs [o, o+n) of a chunk of rows from their sums.
static void finish(const product *p, int64_t r, int64_t rows, int64_t o, int64_t n, const char *sums) {
	for (int64_t j = 0; j < n; j += 16) {
		const __mmask16 there = n - j >= 16 ? 0xffff : (__mmask16)((1 << (n - j)) - 1);
		__m512 scale[2];
		for (int i = 0; i < p->weights && !p->floats; i++)
			scale[i] = _mm512_maskz_loadu_ps(there, p->w[i]->scale + p->w[i]->row_start + o + j);
		for (int64_t g = 0; g < rows; g += 16) {
			__m512 v[2][16];
			for (int i = 0; i < p->weights; i++) turned(v[i], sums + i * SECOND + (j * CHUNK_T + g) * 4, p->floats);
			for (int64_t t = 0; t < min64(rows - g, 16); t++) {
				__m512 y[2];
				for (int i = 0; i < p->weights; i++)
					y[i] = p->floats ? v[i][t] : _mm512_mul_ps(v[i][t], _mm512_mul_ps(_mm512_set1_ps(p->x_scale[r + g + t]), scale[i]));
				_mm512_mask_storeu_ps(p->out + (r + g + t) * p->os + o + j, there, p->weights == 2 ? v_mul(v_silu(y[0]), y[1]) : y[0]);
			}
		}
	}
}

static void products(const product *p) {
	_Alignas(64) char packed[PACKED], sums[2 * SECOND];
	const int64_t element = p->floats ? 2 : 1, thirds = p->floats ? 3 : 1, width = p->floats ? 2 : 1;  // width of x, in steps
	const int64_t bytes = p->in * element, outputs = p->w[0]->out;
	int64_t most = p->weights == 2 ? SUMS_N / 2 : SUMS_N;
	if (p->rows > CHUNK_T) most = min64(most, HELD / (p->weights * bytes + 1) / 32 * 32);
	if (most < 32) most = 32;
	const int single = p->floats && p->rows == 1;
	const int64_t tile = single ? TILE * 4 : TILE_BYTES;
	configure(single);
	for (int64_t o = 0; o < outputs; o += most) {
		const int64_t n = min64(outputs - o, most);
		for (int64_t r = 0; r < p->rows; r += CHUNK_T) {
			const int64_t rows = min64(p->rows - r, CHUNK_T);
			const int groups = rows > TILE ? 2 : 1;
			const int64_t step = groups * thirds * tile, fit = PACKED / step;
			for (int64_t at = 0; at == 0 || at < bytes; at += fit * STEP_BYTES) {
				const int64_t part = min64(bytes - at, fit * STEP_BYTES);
				char *to = packed;
				for (int64_t k = 0; k < part; k += STEP_BYTES)
					for (int g = 0; g < groups; g++) {
						const int64_t row = r + g * TILE, left = (part - k) * width;
						const char *x = p->x + row * p->xs + (at + k) * width;
						if (single) pack_float(to, x, left);
						else if (p->floats) pack_floats(to, x, p->xs, min64(p->rows - row, TILE), left);
						else pack_bytes(to, x, p->xs, min64(p->rows - row, TILE), left);
						to += thirds * tile;
					}
				for (int i = 0; i < p->weights; i++) {
					const mr_weight *w = p->w[i];
					run s = {(const char *)w->data + o * w->stride * element + at, w->stride * element, n, part, packed, sums + i * SECOND, at == 0, r == 0};
					if (groups == 2 && p->floats) piece(&s, 2, TILE, 1);
					else if (groups == 2) piece(&s, 2, TILE, 0);
					else if (single) piece(&s, 1, 1, 1);
					else if (p->floats) piece(&s, 1, TILE, 1);
					else piece(&s, 1, TILE, 0);
				}
			}
			finish(p, r, rows, o, n, sums);
		}
	}
	_tile_release();
}

MR_MATMUL(moerack_matmul_amx) {
	mr_weight w = mr_make(w_data, w_scale, w_dims);
	if (w.format != MR_BF16) {
		moerack_matmul(MR_AVX512, out, out_stride, x, x_stride, rows, w_data, w_scale, w_dims);
		return;
	}
	product p = {out, out_stride, (const char *)x, x_stride * 4, NULL, rows, w.in, {&w}, 1, 1};
	products(&p);
}

MR_SWIGLU(moerack_swiglu_amx) {
	mr_weight gate = mr_make(gate_data, gate_scale, gate_dims), up = mr_make(up_data, up_scale, up_dims);
	if (gate.format != MR_BF16 || up.format != MR_BF16) {
		moerack_swiglu(MR_AVX512, out, out_stride, x, x_stride, rows, gate_data, gate_scale, gate_dims, up_data, up_scale, up_dims);
		return;
	}
	product p = {out, out_stride, (const char *)x, x_stride * 4, NULL, rows, gate.in, {&gate, &up}, 2, 1};
	products(&p);
}

// Few rows leave a tile empty, and wait for memory: int8 is exact either way.
#define FEW8 4

MR_MATMUL8(moerack_matmul8_amx) {
	mr_weight w = mr_make(w_data, w_scale, w_dims);
	if (rows <= FEW8) {
		moerack_matmul8(MR_AVX512VNNI, out, out_stride, x, x_stride, x_scale, rows, w_data, w_scale, w_dims);
		return;
	}
	product p = {out, out_stride, (const char *)x, x_stride, x_scale, rows, w.in, {&w}, 1, 0};
	products(&p);
}

MR_SWIGLU8(moerack_swiglu8_amx) {
	mr_weight gate = mr_make(gate_data, gate_scale, gate_dims), up = mr_make(up_data, up_scale, up_dims);
	if (rows <= FEW8) {
		moerack_swiglu8(MR_AVX512VNNI, out, out_stride, x, x_stride, x_scale, rows, gate_data, gate_scale, gate_dims, up_data, up_scale, up_dims);
		return;
	}
	product p = {out, out_stride, (const char *)x, x_stride, x_scale, rows, gate.in, {&gate, &up}, 2, 0};
	products(&p);
}
