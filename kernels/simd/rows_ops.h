// The ops on rows of activations: one table of functions for each instruction set. kernels.Table says what they compute.
#ifndef MOERACK_ROWS_OPS_H
#define MOERACK_ROWS_OPS_H

#include <stdint.h>

// mr_attention is kernels.MLAAttention.
typedef struct {
	int64_t heads, latent, rope, block_size;
	float scale;
} mr_attention;

// mr_keys are the sizes of kernels.Table.AttendKeys.
typedef struct {
	int64_t from, positions, width, value;
	float scale;
} mr_keys;

// mr_rope is kernels.Rope.
typedef struct {
	int64_t heads, dim, in_stride, in_offset, out_stride, out_offset;
} mr_rope;

// mr_router is kernels.Router with the experts and the picks of a row.
typedef struct {
	int64_t experts, picks, groups, top_groups;
	int32_t sigmoid, method, normalize;
	float scale;
} mr_router;

enum { MR_ATTENTION_TILE = 64 };                        // kernels.AttentionTile
enum { MR_REDUCE_BLOCK = 64 };                          // kernels.ReduceBlock
enum { MR_GREEDY = 1, MR_GROUP_LIMITED, MR_NOAUX_TC };  // kernels.TopKMethod

// A matrix is a pointer to its first element and its stride. shared of combine, bias and seqs of route may be NULL.
typedef struct {
	void (*attention)(float *out, int64_t out_stride, const float *q, int64_t q_stride, const float *cache, int64_t cache_stride,
	                  const int32_t *tables, int64_t tables_stride, const int32_t *seqs, const int32_t *positions, int64_t rows, mr_attention a);
	void (*rmsnorm)(float *out, int64_t out_stride, const float *x, int64_t x_stride, const float *w, int64_t rows, int64_t cols, float eps);
	void (*add_rmsnorm)(float *out, int64_t out_stride, float *x, int64_t x_stride, const float *y, int64_t y_stride, const float *w, int64_t rows,
	                    int64_t cols, float eps);
	void (*rope)(float *out, int64_t out_stride, const float *x, int64_t x_stride, const int32_t *positions, const float *table,
	             int64_t table_stride, int64_t rows, mr_rope r);
	void (*combine)(float *out, int64_t out_stride, const float *y, int64_t y_stride, const int32_t *index, int64_t index_stride,
	                const float *weights, int64_t weights_stride, const float *shared, int64_t shared_stride, int64_t rows, int64_t cols, int64_t picks);
	void (*add)(float *out, int64_t out_stride, const float *a, int64_t a_stride, const float *b, int64_t b_stride, int64_t rows, int64_t cols);
	int (*finite)(const float *x, int64_t n);
	void (*route)(int32_t *ids, int64_t ids_stride, float *weights, int64_t weights_stride, const float *logits, int64_t logits_stride,
	              const float *bias, const int32_t *seqs, int64_t rows, mr_router r, float *scratch);
	void (*attend_keys)(float *out, int64_t out_stride, const float *q, int64_t q_stride, const float *keys, int64_t keys_stride, const float *values,
	                    int64_t values_stride, const int32_t *positions, int64_t rows, mr_keys a, float *state);
	void (*block_max)(float *out, const float *x, int64_t n);
	void (*block_sum_exp)(float *out, const float *x, int64_t n, float most, float scale);
} mr_rows;

extern const mr_rows moerack_rows_avx2, moerack_rows_avx512, moerack_rows_neon;

#endif
