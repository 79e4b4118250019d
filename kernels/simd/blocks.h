// Reductions of a row of logits in blocks of MR_REDUCE_BLOCK elements. Include after vec_*.h.
//
// A block has one vector of maxima or sums: lane j takes elements k ≡ j (mod W), in ascending k; lanes are joined at its end. Elements
// that the last block lacks count as −∞.
#include <math.h>

#include "exp.h"
#include "rows_ops.h"
#include "vecmath.h"

// load_or reads n elements, W at most; the others are v.
INLINE V load_or(const float *p, int64_t n, float v) {
	if (n >= W) return v_load(p);
	_Alignas(64) float whole[W];
	for (int i = 0; i < W; i++) whole[i] = i < n ? p[i] : v;
	return v_load(whole);
}

static void block_max(float *out, const float *x, int64_t n) {
	for (int64_t b = 0; b < n; b += MR_REDUCE_BLOCK) {
		const int64_t end = b + MR_REDUCE_BLOCK < n ? b + MR_REDUCE_BLOCK : n;
		V most = v_set(-INFINITY);
		for (int64_t k = b; k < end; k += W) most = v_max(load_or(x + k, end - k, -INFINITY), most);
		*out++ = v_top(most);
	}
}

static void block_sum_exp(float *out, const float *x, int64_t n, float most, float scale) {
	const V top = v_set(most), by = v_set(scale), none = v_set(-104.0f);
	for (int64_t b = 0; b < n; b += MR_REDUCE_BLOCK) {
		const int64_t end = b + MR_REDUCE_BLOCK < n ? b + MR_REDUCE_BLOCK : n;
		V sum = v_zero();
		for (int64_t k = b; k < end; k += W)
			sum = v_add(sum, v_exp(v_max(none, v_mul(v_sub(load_or(x + k, end - k, -INFINITY), top), by))));
		*out++ = v_sum(sum);
	}
}
