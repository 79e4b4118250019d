// Absorbed latent attention over a paged cache, one row after the other. Include after vec_*.h.
//
// Online softmax (Milakov and Gimelshein 2018) over tiles of MR_ATTENTION_TILE positions from position 0. With m the largest score of a
// head so far, a tile rescales what is there by exp(m_old − m_new) and adds its own. All heads of a row (HEADS of them, if there are
// more) work on a tile while it lies in cache, and fetch the next one meanwhile.
//
// Order of summation. A score has one vector of sums over the elements, added by v_sum, then times the scale. The weights
// exp(score − m) of a tile are added lane by lane, then by v_sum, then to those of the tiles before. Each element of the result has
// one sum over the positions, in ascending order, with one fma each. So a result depends on its row's query and positions alone: not on
// pages, batch, or how rows are cut into calls.
#include <math.h>

#include "exp.h"
#include "rows_ops.h"
#include "vecmath.h"

#define HEADS 32                                // a group of them has its queries and results in cache beside a tile
#define TILE_HEADS 4                            // of the register tile of scores: × TILE_N positions
#define VALUE_HEADS (TILE_N > 3 ? 4 : 2)        // of the register tile of results: × VALUE_VECS vectors
#define VALUE_VECS 4
#define FETCH_EVERY (W == 16 ? 2 : 4)
#define LINE 16                                 // floats of a cache line
#define SCORES (MR_ATTENTION_TILE + 16)         // floats for the scores of a head: the last register tile may stick out
#define ROW_POINTERS (MR_ATTENTION_TILE + TILE_N)

// pages finds the cache rows of one sequence.
typedef struct {
	const float *cache;
	int64_t stride, block_size;
	const int32_t *blocks;
} pages;

INLINE const float *page_row(const pages *c, int64_t position) {
	return c->cache + (c->blocks[position / c->block_size] * c->block_size + position % c->block_size) * c->stride;
}

// score_tile sets s[h][p] = (q[h] · rows[p]) · scale for TILE_HEADS × TILE_N of them.
INLINE void score_tile(float *const *s, const float *const *q, const float *const *rows, int64_t width, float scale) {
	V sum[TILE_HEADS][TILE_N], r[TILE_N];
	for (int h = 0; h < TILE_HEADS; h++)
		for (int p = 0; p < TILE_N; p++) sum[h][p] = v_zero();
	int64_t k = 0;
	for (; k + W <= width; k += W) {
		for (int p = 0; p < TILE_N; p++) r[p] = v_load(rows[p] + k);
		for (int h = 0; h < TILE_HEADS; h++) {
			V x = v_load(q[h] + k);
			for (int p = 0; p < TILE_N; p++) sum[h][p] = v_fma(x, r[p], sum[h][p]);
		}
	}
	if (k < width) {
		for (int p = 0; p < TILE_N; p++) r[p] = load_rest(rows[p] + k, width - k);
		for (int h = 0; h < TILE_HEADS; h++) {
			V x = load_rest(q[h] + k, width - k);
			for (int p = 0; p < TILE_N; p++) sum[h][p] = v_fma(x, r[p], sum[h][p]);
		}
	}
	for (int h = 0; h < TILE_HEADS; h++)
		for (int p = 0; p < TILE_N; p++) s[h][p] = v_sum(sum[h][p]) * scale;
}

// value_tile sets out[h] = out[h]·keep[h] + Σ w[h][p]·rows[p] for VALUE_HEADS heads and vecs vectors from column col on; n elements of
// each count. The first tile of all (fresh) finds nothing in out. Meanwhile lines from next on are fetched into the second level of cache,
// one in FETCH_EVERY positions: more at once would hold up the loads.
INLINE void value_tile(float *const *out, const float *const *w, const float *keep, const float *const *rows, int64_t col, int vecs, int64_t n,
                       int64_t count, int fresh, const float *next) {
	V sum[VALUE_HEADS][VALUE_VECS], r[VALUE_VECS];
	for (int h = 0; h < VALUE_HEADS; h++)
		for (int v = 0; v < vecs; v++)
			sum[h][v] = fresh ? v_zero() : v_mul(n < W ? load_rest(out[h], n) : v_load(out[h] + v * W), v_set(keep[h]));
	for (int64_t p = 0; p < count; p++) {
		if (next && p % FETCH_EVERY == 0) __builtin_prefetch(next + p / FETCH_EVERY * LINE, 0, 2);
		for (int v = 0; v < vecs; v++) r[v] = n < W ? load_rest(rows[p] + col, n) : v_load(rows[p] + col + v * W);
		for (int h = 0; h < VALUE_HEADS; h++) {
			const V x = v_set(w[h][p]);
			for (int v = 0; v < vecs; v++) sum[h][v] = v_fma(x, r[v], sum[h][v]);
		}
	}
	for (int h = 0; h < VALUE_HEADS; h++)
		for (int v = 0; v < vecs; v++) {
			if (n < W) store_rest(out[h], sum[h][v], n);
			else v_store(out[h] + v * W, sum[h][v]);
		}
}

// softmax_tile turns count scores of a head into weights exp(score − top) with the new top, and returns their sum. A NaN score
// becomes a NaN weight.
INLINE float softmax_tile(float *s, int64_t count, float *top) {
	for (int64_t p = count; p % W; p++) s[p] = -INFINITY;
	V m = v_set(*top), sum = v_zero();
	for (int64_t p = 0; p < count; p += W) m = v_max(v_load(s + p), m);
	*top = v_top(m);
	m = v_set(*top);
	for (int64_t p = 0; p < count; p += W) {
		V w = v_exp(v_sub(v_load(s + p), m));
		v_store(s + p, w);
		sum = v_add(sum, w);
	}
	return v_sum(sum);
}

// attend_state is what a group of heads keeps from tile to tile.
typedef struct {
	_Alignas(64) float s[HEADS][SCORES];  // scores, then weights, of the tile's positions
	_Alignas(64) float top[HEADS];        // largest score so far
	_Alignas(64) float keep[HEADS];       // what the tile leaves of the results so far
	float sum[HEADS];                     // of the weights so far
	const float *rows[ROW_POINTERS];      // cache rows of the tile's positions
} attend_state;

// Register tiles are whole: behind the last head or position the last one stands in, and gives the same number again.
INLINE int64_t at_most(int64_t i, int64_t n) { return i < n ? i : n - 1; }

INLINE void attend_scores(attend_state *st, const float *q, int64_t heads, int64_t width, int64_t count, float scale) {
	for (int64_t h = 0; h < heads; h += TILE_HEADS) {
		const float *qs[TILE_HEADS];
		float *ss[TILE_HEADS];
		for (int i = 0; i < TILE_HEADS; i++) qs[i] = q + at_most(h + i, heads) * width;
		for (int64_t p = 0; p < count; p += TILE_N) {
			for (int i = 0; i < TILE_HEADS; i++) ss[i] = st->s[at_most(h + i, heads)] + p;
			score_tile(ss, qs, st->rows + p, width, scale);
		}
	}
}

INLINE void attend_weights(attend_state *st, int64_t heads, int64_t count, int fresh) {
	float tile[HEADS];
	memcpy(st->keep, st->top, sizeof st->keep);
	for (int64_t h = 0; h < heads; h++) tile[h] = softmax_tile(st->s[h], count, &st->top[h]);
	for (int64_t h = 0; h < heads; h += W) v_store(st->keep + h, v_exp(v_sub(v_load(st->keep + h), v_load(st->top + h))));
	for (int64_t h = 0; h < heads; h++) st->sum[h] = fresh ? tile[h] : st->sum[h] * st->keep[h] + tile[h];
}

// attend_values adds the tile of positions [from, from+count) to the results and fetches most of the next one, up to position n: half a row
// with each register tile, or a row if there are few.
INLINE void attend_values(float *out, const attend_state *st, const pages *c, int64_t heads, const mr_attention *a, int64_t from, int64_t count,
                          int64_t n) {
	const int64_t end = from + 2 * MR_ATTENTION_TILE < n ? from + 2 * MR_ATTENTION_TILE : n, width = a->latent + a->rope;
	const int64_t tiles = a->latent / (VALUE_VECS * W) * ((heads + VALUE_HEADS - 1) / VALUE_HEADS);
	const int64_t parts = tiles < 2 * MR_ATTENTION_TILE ? 1 : 2;
	int64_t part = 0;
	for (int64_t col = 0; col < a->latent;) {
		const int64_t rest = a->latent - col;
		for (int64_t h = 0; h < heads; h += VALUE_HEADS, part++) {
			float *os[VALUE_HEADS], keep[VALUE_HEADS];
			const float *ws[VALUE_HEADS];
			for (int i = 0; i < VALUE_HEADS; i++) {
				const int64_t j = at_most(h + i, heads);
				os[i] = out + j * a->latent + col, ws[i] = st->s[j], keep[i] = st->keep[j];
			}
			const int64_t ahead = from + count + part / parts;
			const float *next = ahead < end ? page_row(c, ahead) + part % parts * (width / parts) : NULL;
			if (rest >= VALUE_VECS * W) value_tile(os, ws, keep, st->rows, col, VALUE_VECS, W, count, from == 0, next);
			else value_tile(os, ws, keep, st->rows, col, 1, rest < W ? rest : W, count, from == 0, NULL);
		}
		col += rest >= VALUE_VECS * W ? VALUE_VECS * W : W;
	}
}

// attend is one row with up to HEADS heads over n positions. // out (heads, latent), q (heads, latent+rope)
static void attend(float *out, const float *q, const pages *c, int64_t n, int64_t heads, const mr_attention *a) {
	attend_state st;
	for (int64_t h = 0; h < HEADS; h++) st.top[h] = -INFINITY;
	for (int64_t from = 0; from < n; from += MR_ATTENTION_TILE) {
		const int64_t count = n - from < MR_ATTENTION_TILE ? n - from : MR_ATTENTION_TILE;
		for (int64_t p = 0; p < ROW_POINTERS; p++) st.rows[p] = page_row(c, from + at_most(p, count));
		attend_scores(&st, q, heads, a->latent + a->rope, count, a->scale);
		attend_weights(&st, heads, count, from == 0);
		attend_values(out, &st, c, heads, a, from, count, n);
	}
	for (int64_t h = 0; h < heads; h++) {
		float *o = out + h * a->latent;
		const V sum = v_set(st.sum[h]);
		int64_t k = 0;
		for (; k + W <= a->latent; k += W) v_store(o + k, v_div(v_load(o + k), sum));
		if (k < a->latent) store_rest(o + k, v_div(load_rest(o + k, a->latent - k), sum), a->latent - k);
	}
}

static void attention(float *out, int64_t out_stride, const float *q, int64_t q_stride, const float *cache, int64_t cache_stride,
                      const int32_t *tables, int64_t tables_stride, const int32_t *seqs, const int32_t *positions, int64_t rows, mr_attention a) {
	for (int64_t t = 0; t < rows; t++) {
		float *to = out + t * out_stride;
		if (seqs[t] < 0) {
			memset(to, 0, (size_t)(a.heads * a.latent) * sizeof *to);
			continue;
		}
		const pages c = {cache, cache_stride, a.block_size, tables + seqs[t] * tables_stride};
		for (int64_t h = 0; h < a.heads; h += HEADS) {
			const int64_t heads = a.heads - h < HEADS ? a.heads - h : HEADS;
			attend(to + h * a.latent, q + t * q_stride + h * (a.latent + a.rope), &c, positions[t] + 1, heads, &a);
		}
	}
}
