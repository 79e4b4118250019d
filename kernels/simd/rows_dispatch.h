// How Go calls the ops on rows: it cannot call through a pointer itself.
#ifndef MOERACK_ROWS_DISPATCH_H
#define MOERACK_ROWS_DISPATCH_H

#include "dispatch.h"
#include "rows_ops.h"

// moerack_rows returns the ops of an instruction set, or NULL if this build has none.
const mr_rows *moerack_rows(int set);

static inline void moerack_attention(const mr_rows *ops, float *out, int64_t out_stride, const float *q, int64_t q_stride, const float *cache,
                                     int64_t cache_stride, const int32_t *tables, int64_t tables_stride, const int32_t *seqs,
                                     const int32_t *positions, int64_t rows, mr_attention a) {
	ops->attention(out, out_stride, q, q_stride, cache, cache_stride, tables, tables_stride, seqs, positions, rows, a);
}

static inline void moerack_rmsnorm(const mr_rows *ops, float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *w,
                                   int64_t rows, int64_t cols, float eps) {
	ops->rmsnorm(out, out_stride, x, x_stride, w, rows, cols, eps);
}

static inline void moerack_add_rmsnorm(const mr_rows *ops, float *out, int64_t out_stride, float *x, int64_t x_stride, const float *y,
                                       int64_t y_stride, const float *w, int64_t rows, int64_t cols, float eps) {
	ops->add_rmsnorm(out, out_stride, x, x_stride, y, y_stride, w, rows, cols, eps);
}

static inline void moerack_rope(const mr_rows *ops, float *out, int64_t out_stride, const float *x, int64_t x_stride, const int32_t *positions,
                                const float *table, int64_t table_stride, int64_t rows, mr_rope r) {
	ops->rope(out, out_stride, x, x_stride, positions, table, table_stride, rows, r);
}

static inline void moerack_combine(const mr_rows *ops, float *out, int64_t out_stride, const float *y, int64_t y_stride, const int32_t *index,
                                   int64_t index_stride, const float *weights, int64_t weights_stride, const float *shared, int64_t shared_stride,
                                   int64_t rows, int64_t cols, int64_t picks) {
	ops->combine(out, out_stride, y, y_stride, index, index_stride, weights, weights_stride, shared, shared_stride, rows, cols, picks);
}

static inline void moerack_add(const mr_rows *ops, float *out, int64_t out_stride, const float *a, int64_t a_stride, const float *b,
                               int64_t b_stride, int64_t rows, int64_t cols) {
	ops->add(out, out_stride, a, a_stride, b, b_stride, rows, cols);
}

static inline int moerack_finite(const mr_rows *ops, const float *x, int64_t n) { return ops->finite(x, n); }

static inline void moerack_attend_keys(const mr_rows *ops, float *out, int64_t out_stride, const float *q, int64_t q_stride, const float *keys,
                                       int64_t keys_stride, const float *values, int64_t values_stride, const int32_t *positions, int64_t rows,
                                       mr_keys a, float *state) {
	ops->attend_keys(out, out_stride, q, q_stride, keys, keys_stride, values, values_stride, positions, rows, a, state);
}

static inline void moerack_block_max(const mr_rows *ops, float *out, const float *x, int64_t n) { ops->block_max(out, x, n); }

static inline void moerack_block_sum_exp(const mr_rows *ops, float *out, const float *x, int64_t n, float most, float scale) {
	ops->block_sum_exp(out, x, n, most, scale);
}

static inline void moerack_route(const mr_rows *ops, int32_t *ids, int64_t ids_stride, float *weights, int64_t weights_stride,
                                 const float *logits, int64_t logits_stride, const float *bias, const int32_t *seqs, int64_t rows, mr_router r,
                                 float *scratch) {
	ops->route(ids, ids_stride, weights, weights_stride, logits, logits_stride, bias, seqs, rows, r, scratch);
}

#endif
