// A product per head. Plain ones are matmul.h's. In transposed ones each output has one sum, to which x[j]·w[j][i] is added with
// one fma in ascending j, so that a result depends on nothing else here either. Some rows of the weight are widened into memory, as they
// lie, and tiles of up to 4 rows × COLUMNS pass over them. Include after matmul.h.

#define COLUMNS (3 * W)   // of a tile
#define WIDE 528          // columns that are widened at once, a multiple of COLUMNS
#define DEEP 12           // rows that are widened at once

// spread adds Σ x[r][j]·row j to rows × COLUMNS outputs. x (rows, deep), panel (deep, WIDE)
INLINE void spread(int rows, int first, float *out, int64_t os, const float *x, int64_t xs, const float *panel, int64_t deep) {
	V sum[4 * 3];
#pragma GCC unroll 12
	for (int i = 0; i < rows * 3; i++) sum[i] = first ? v_zero() : v_load(out + i / 3 * os + i % 3 * W);
	for (int64_t j = 0; j < deep; j++) {
		V b[3];
		for (int c = 0; c < 3; c++) b[c] = v_load(panel + j * WIDE + c * W);
		for (int r = 0; r < rows; r++) {
			V a = v_set(x[r * xs + j]);
			for (int c = 0; c < 3; c++) sum[r * 3 + c] = v_fma(a, b[c], sum[r * 3 + c]);
		}
	}
#pragma GCC unroll 12
	for (int i = 0; i < rows * 3; i++) v_store(out + i / 3 * os + i % 3 * W, sum[i]);
}

// spread_all runs the tiles of a panel of n columns over up to 4 rows; the last may be narrower.
static void spread_all(int rows, int first, float *out, int64_t os, const float *x, int64_t xs, const float *panel, int64_t n, int64_t deep) {
	_Alignas(64) float edge[4 * COLUMNS] = {0};
	for (int64_t c = 0; c < n; c += COLUMNS) {
		int64_t width = min64(n - c, COLUMNS), ts = width < COLUMNS ? COLUMNS : os;
		float *to = width < COLUMNS ? edge : out + c;
		for (int r = 0; to == edge && r < rows; r++) memcpy(edge + r * COLUMNS, out + r * os + c, sizeof(float) * (size_t)width);
		switch (rows) {
		case 1: spread(1, first, to, ts, x, xs, panel + c, deep); break;
		case 2: spread(2, first, to, ts, x, xs, panel + c, deep); break;
		case 3: spread(3, first, to, ts, x, xs, panel + c, deep); break;
		default: spread(4, first, to, ts, x, xs, panel + c, deep); break;
		}
		for (int r = 0; to == edge && r < rows; r++) memcpy(out + r * os + c, edge + r * COLUMNS, sizeof(float) * (size_t)width);
	}
}

// transposed sets out[r] = Σ x[r][j] · row from+j. // out (rows, in), x (rows, to-from)
static void transposed(float *out, int64_t os, const float *x, int64_t xs, int64_t rows, const mr_weight *w, int64_t from, int64_t to) {
	_Alignas(64) float panel[DEEP * WIDE];
	memset(panel, 0, sizeof panel);  // a narrow tile reads behind the last column
	for (int64_t c = 0; c < w->in; c += WIDE) {
		int64_t n = min64(w->in - c, WIDE);
		for (int64_t j = from; j < to; j += DEEP) {
			int64_t deep = min64(to - j, DEEP);
			for (int64_t d = 0; d < deep; d++) {
				const char *next = element_at(w, j + d + DEEP, c);
				for (int64_t i = 0; i < n * bytes_of(w->format); i += 64) __builtin_prefetch(next + i, 0, 2);
				widen(panel + d * WIDE, w, j + d, c, n);
			}
			for (int64_t r = 0; r < rows; r += 4)
				spread_all((int)min64(rows - r, 4), j == from, out + r * os + c, os, x + r * xs + j - from, xs, panel, n, deep);
		}
	}
}

MR_HEAD_MATMUL(FN(head_matmul)) {
	mr_weight w = mr_make(w_data, w_scale, w_dims);
	for (int64_t h = 0; h < heads; h++) {
		float *to_head = out + h * head_out_stride;
		const float *of_head = x + h * in_stride;
		int64_t first = h * head_rows + from, end = h * head_rows + to;
		if (transpose)
			transposed(to_head, out_stride, of_head, x_stride, rows, &w, first, end);
		else
			product(to_head, out_stride, of_head, x_stride, rows, &w, first, end);
	}
}
