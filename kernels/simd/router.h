// The choice of experts (DeepSeek-V2, section 2.2.2; DeepSeek-V3, section 2.1.2). Include after vec_*.h.
//
// Scores are computed by vectors, and a softmax's sum is taken lane by lane, then by v_sum, so that they depend on their row alone. The
// choice among them is that of kernels/ref, comparison by comparison.
#include <math.h>

#include "exp.h"
#include "rows_ops.h"
#include "vecmath.h"

// alias32 reads the memory of a float as a number.
typedef int32_t __attribute__((may_alias)) alias32;

INLINE V load_some(const float *p, int64_t n) { return n < W ? load_rest(p, n) : v_load(p); }

INLINE void store_some(float *p, V a, int64_t n) {
	if (n < W) store_rest(p, a, n);
	else v_store(p, a);
}

static void sigmoids(float *scores, const float *logits, int64_t n) {
	for (int64_t e = 0; e < n; e += W) store_some(scores + e, v_sigmoid(load_some(logits + e, n - e)), n - e);
}

static void softmax(float *scores, const float *logits, int64_t n) {
	float top = -INFINITY;
	V m = v_set(top), sum = v_zero();
	int64_t e = 0;
	for (; e + W <= n; e += W) m = v_max(v_load(logits + e), m);
	top = v_top(m);
	for (; e < n; e++) top = logits[e] > top ? logits[e] : top;
	for (e = 0; e < n; e += W) {
		store_some(scores + e, v_exp(v_sub(load_some(logits + e, n - e), v_set(top))), n - e);
		sum = v_add(sum, load_some(scores + e, n - e));
	}
	const V total = v_set(v_sum(sum));
	for (e = 0; e < n; e += W) store_some(scores + e, v_div(load_some(scores + e, n - e), total), n - e);
}

// limit_groups takes the experts of all but the best groups out of the choice: a group counts its best expert (others become 0) or, with
// noaux_tc, its two best (others become −∞).
static void limit_groups(float *choice, float *groups, const mr_router *r) {
	const int64_t size = r->experts / r->groups;
	for (int64_t g = 0; g < r->groups; g++) {
		float best = -INFINITY, second = -INFINITY;
		for (int64_t e = g * size; e < (g + 1) * size; e++) {
			const float c = choice[e];
			if (c > best || c != c) second = best, best = c;
			else if (c > second) second = c;
		}
		groups[g] = r->method == MR_NOAUX_TC ? best + second : best;
	}
	for (int64_t g = 0; g < r->groups; g++) {
		int64_t ahead = 0;  // groups that come before g: a larger score, or the same and a lower number
		for (int64_t o = 0; o < r->groups; o++) ahead += groups[o] > groups[g] || (groups[o] == groups[g] && o < g);
		if (ahead < r->top_groups) continue;
		for (int64_t e = g * size; e < (g + 1) * size; e++) choice[e] = r->method == MR_NOAUX_TC ? -INFINITY : 0;
	}
}

// top_k picks the largest values, ties by the lower index, NaN above everything. The values become whole numbers in the same order: those
// of a float as sign and magnitude, −0 as 0.
static void top_k(int32_t *picks, int64_t n_picks, float *v, int64_t n) {
	alias32 *keys = (alias32 *)v;
	for (int64_t e = 0; e < n; e++) {
		const float f = v[e] + 0.0f;
		int32_t bits;
		memcpy(&bits, &f, sizeof bits);
		keys[e] = f != f ? INT32_MAX : bits ^ ((bits >> 31) & INT32_MAX);
	}
	for (int64_t k = 0; k < n_picks; k++) {
		int32_t best = INT32_MIN;  // below all of them: what has been picked
		for (int64_t e = 0; e < n; e++) best = keys[e] > best ? keys[e] : best;
		int64_t e = 0;
		while (keys[e] != best) e++;
		keys[e] = INT32_MIN;
		picks[k] = (int32_t)e;
	}
}

// sort_by_score orders picks by score, largest first, ties by the lower expert.
static void sort_by_score(int32_t *picks, int64_t n, const float *scores) {
	for (int64_t i = 1; i < n; i++)
		for (int64_t j = i; j > 0; j--) {
			const int32_t a = picks[j - 1], b = picks[j];
			if (scores[a] > scores[b] || (scores[a] == scores[b] && a < b)) break;
			picks[j - 1] = b, picks[j] = a;
		}
}

// route is for rows of logits; scratch holds 2·experts + groups floats.
static void route(int32_t *ids, int64_t ids_stride, float *weights, int64_t weights_stride, const float *logits, int64_t logits_stride,
                  const float *bias, const int32_t *seqs, int64_t rows, mr_router r, float *scratch) {
	float *scores = scratch, *choice = scratch + r.experts, *groups = choice + r.experts;
	for (int64_t t = 0; t < rows; t++) {
		int32_t *picks = ids + t * ids_stride;
		float *to = weights + t * weights_stride;
		if (seqs && seqs[t] < 0) {
			for (int64_t k = 0; k < r.picks; k++) picks[k] = -1, to[k] = 0;
			continue;
		}
		if (r.sigmoid) sigmoids(scores, logits + t * logits_stride, r.experts);
		else softmax(scores, logits + t * logits_stride, r.experts);
		memcpy(choice, scores, (size_t)r.experts * sizeof *choice);
		if (r.method == MR_NOAUX_TC && bias)
			for (int64_t e = 0; e < r.experts; e++) choice[e] += bias[e];
		if (r.method != MR_GREEDY) limit_groups(choice, groups, &r);
		top_k(picks, r.picks, choice, r.experts);
		sort_by_score(picks, r.picks, scores);
		float sum = 0;
		for (int64_t k = 0; k < r.picks; k++) sum += to[k] = scores[picks[k]];
		for (int64_t k = 0; k < r.picks; k++) {
			if (r.normalize && r.picks > 1) to[k] /= sum + 1e-20f;
			to[k] *= r.scale;
		}
	}
}
