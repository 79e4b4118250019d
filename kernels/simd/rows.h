// Norm, rotation, sums of rows. Include after vec_*.h.
//
// Order of summation. A norm's squares go to four vectors in turn, element k to lane k mod W of vector (k / W) mod 4, added as
// (0+1)+(2+3) and by v_sum; the elements behind the last whole vector count as one more of them, filled with zeros. All else is
// done element by element, products rounded before they are added, as kernels/ref does: the bits are the same. Rotation is written over
// vectors because GCC 12 fuses the plain loop (vfmaddsub), whatever it is told about contraction.
#include <math.h>

#include "rows_ops.h"
#include "vecmath.h"

INLINE float square_sum(const float *x, int64_t n) {
	V sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
	int64_t k = 0;
	for (; k + 4 * W <= n; k += 4 * W)
		for (int i = 0; i < 4; i++) {
			const V v = v_load(x + k + i * W);
			sum[i] = v_fma(v, v, sum[i]);
		}
	for (int i = 0; i < 4 && k < n; i++, k += W) {
		const V v = n - k < W ? load_rest(x + k, n - k) : v_load(x + k);
		sum[i] = v_fma(v, v, sum[i]);
	}
	return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3])));
}

static void rmsnorm(float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *w, int64_t rows, int64_t cols, float eps) {
	for (int64_t t = 0; t < rows; t++) {
		const float *row = x + t * x_stride;
		float *to = out + t * out_stride;
		const V scale = v_set((float)(1 / sqrt((double)square_sum(row, cols) / (double)cols + (double)eps)));
		int64_t k = 0;
		for (; k + W <= cols; k += W) v_store(to + k, v_mul(v_mul(v_load(row + k), scale), v_load(w + k)));
		if (k < cols) store_rest(to + k, v_mul(v_mul(load_rest(row + k, cols - k), scale), load_rest(w + k, cols - k)), cols - k);
	}
}

// rotate turns pairs (a, b) by angles (cos, sin): (a·cos + b·(−sin), b·cos + a·sin). sign is −1 in even lanes, 1 in odd ones.
INLINE V rotate(V x, V angles, V sign) {
	return v_add(v_mul(x, v_evens(angles)), v_mul(v_swap(x), v_mul(v_odds(angles), sign)));
}

static void rope(float *out, int64_t out_stride, const float *x, int64_t x_stride, const int32_t *positions, const float *table,
                 int64_t table_stride, int64_t rows, mr_rope r) {
	static const float signs[16] = {-1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1, -1, 1};
	const V sign = v_load(signs);
	for (int64_t t = 0; t < rows; t++) {
		const float *angles = table + positions[t] * table_stride;
		for (int64_t h = 0; h < r.heads; h++) {
			const float *from = x + t * x_stride + h * r.in_stride + r.in_offset;
			float *to = out + t * out_stride + h * r.out_stride + r.out_offset;
			int64_t i = 0;
			for (; i + W <= r.dim; i += W) v_store(to + i, rotate(v_load(from + i), v_load(angles + i), sign));
			if (i < r.dim) store_rest(to + i, rotate(load_rest(from + i, r.dim - i), load_rest(angles + i, r.dim - i), sign), r.dim - i);
		}
	}
}

// combine_columns is combine for vecs vectors, of which n elements each count, of one row.
INLINE void combine_columns(float *out, const float *y, int64_t y_stride, const int32_t *index, const float *weights, const float *shared,
                            int64_t picks, int vecs, int64_t n) {
	V sum[4];
	int any = 0;
	for (int v = 0; v < vecs; v++) sum[v] = v_zero();
	for (int64_t k = 0; k < picks; k++) {
		if (index[k] < 0) continue;
		const float *row = y + index[k] * y_stride;
		const V w = v_set(weights[k]);
		for (int v = 0; v < vecs; v++) {
			const V term = v_mul(w, n < W ? load_rest(row, n) : v_load(row + v * W));
			sum[v] = any ? v_add(sum[v], term) : term;  // the first term is not added to 0: −0 stays −0
		}
		any = 1;
	}
	for (int v = 0; v < vecs; v++) {
		if (shared) {
			const V term = n < W ? load_rest(shared, n) : v_load(shared + v * W);
			sum[v] = any ? v_add(sum[v], term) : term;
		}
		if (n < W) store_rest(out, sum[v], n);
		else v_store(out + v * W, sum[v]);
	}
}

static void combine(float *out, int64_t out_stride, const float *y, int64_t y_stride, const int32_t *index, int64_t index_stride,
                    const float *weights, int64_t weights_stride, const float *shared, int64_t shared_stride, int64_t rows, int64_t cols,
                    int64_t picks) {
	for (int64_t t = 0; t < rows; t++) {
		float *to = out + t * out_stride;
		const float *sh = shared ? shared + t * shared_stride : shared, *ws = weights + t * weights_stride;
		const int32_t *ix = index + t * index_stride;
		int64_t c = 0;
		for (; c + 4 * W <= cols; c += 4 * W) combine_columns(to + c, y + c, y_stride, ix, ws, sh ? sh + c : sh, picks, 4, W);
		for (; c < cols; c += W) combine_columns(to + c, y + c, y_stride, ix, ws, sh ? sh + c : sh, picks, 1, cols - c < W ? cols - c : W);
	}
}

static void add(float *out, int64_t out_stride, const float *a, int64_t a_stride, const float *b, int64_t b_stride, int64_t rows, int64_t cols) {
	for (int64_t t = 0; t < rows; t++) {
		float *to = out + t * out_stride;
		const float *x = a + t * a_stride, *y = b + t * b_stride;
		int64_t k = 0;
		for (; k + W <= cols; k += W) v_store(to + k, v_add(v_load(x + k), v_load(y + k)));
		for (; k < cols; k++) to[k] = x[k] + y[k];
	}
}

// add_rmsnorm takes a row through both while it is in the first cache.
static void add_rmsnorm(float *out, int64_t out_stride, float *x, int64_t x_stride, const float *y, int64_t y_stride, const float *w, int64_t rows,
                        int64_t cols, float eps) {
	for (int64_t t = 0; t < rows; t++) {
		float *row = x + t * x_stride;
		add(row, x_stride, row, x_stride, y + t * y_stride, y_stride, 1, cols);
		rmsnorm(out + t * out_stride, out_stride, row, x_stride, w, 1, cols, eps);
	}
}

// all_finite multiplies by zero: NaN and infinities give NaN, which stays in the sum.
static int all_finite(const float *x, int64_t n) {
	V sum[4] = {v_zero(), v_zero(), v_zero(), v_zero()};
	int64_t k = 0;
	for (; k + 4 * W <= n; k += 4 * W)
		for (int i = 0; i < 4; i++) sum[i] = v_fma(v_load(x + k + i * W), v_zero(), sum[i]);
	for (; k < n; k += W) sum[0] = v_fma(n - k < W ? load_rest(x + k, n - k) : v_load(x + k), v_zero(), sum[0]);
	return v_sum(v_add(v_add(sum[0], sum[1]), v_add(sum[2], sum[3]))) == 0;
}
