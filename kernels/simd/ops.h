// What Go calls. One set of functions for each instruction set; kernels.Table says what they compute.
#ifndef MOERACK_OPS_H
#define MOERACK_OPS_H

#include <stdint.h>

// mr_weight is a kernels.Weight.
typedef struct {
	const void *data;
	const float *scale;  // NULL: none
	int64_t out, in, stride;
	int64_t scale_cols, block_rows, block_cols, row_start, col_start;
	int32_t format;  // as in package kernels
} mr_weight;

enum { MR_F32 = 1, MR_BF16, MR_F16, MR_F8, MR_I8 };

// A weight comes as three arguments, so that Go passes no pointer to memory that holds pointers: dims are the numbers of mr_weight, in
// order.
#define MR_WEIGHT(w) const void *w##_data, const float *w##_scale, const int64_t *w##_dims

static inline mr_weight mr_make(const void *data, const float *scale, const int64_t *d) {
	mr_weight w = {data, scale, d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], (int32_t)d[8]};
	return w;
}

#define MR_MATMUL(name) \
	void name(float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(w))
#define MR_SWIGLU(name) \
	void name(float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(gate), MR_WEIGHT(up))
#define MR_HEAD_MATMUL(name) \
	void name(float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(w), int64_t heads, int64_t head_rows, \
	          int64_t from, int64_t to, int64_t transpose, int64_t in_stride, int64_t head_out_stride)
#define MR_QUANTIZE(name) \
	void name(int8_t *out, int64_t out_stride, float *scale, const float *x, int64_t x_stride, int64_t rows, int64_t cols)
#define MR_MATMUL8(name) \
	void name(float *out, int64_t out_stride, const int8_t *x, int64_t x_stride, const float *x_scale, int64_t rows, MR_WEIGHT(w))
#define MR_SWIGLU8(name) \
	void name(float *out, int64_t out_stride, const int8_t *x, int64_t x_stride, const float *x_scale, int64_t rows, MR_WEIGHT(gate), MR_WEIGHT(up))

#endif
