// What Go calls. kernels.Table says what the ops compute.
#ifndef MOERACK_DISPATCH_H
#define MOERACK_DISPATCH_H

#include "ops.h"

// The instruction sets, in the order of Go's constants.
enum { MR_AVX2 = 1, MR_AVX512, MR_AVX512VNNI, MR_AMX, MR_NEON };

#if defined(__x86_64__) && defined(__linux__) && !defined(MOERACK_SIMDE)
#define MR_HAS_AMX
#endif

// moerack_supports reports whether processor and system have an instruction set.
int moerack_supports(int set);

void moerack_matmul(int set, float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(w));
void moerack_swiglu(int set, float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(gate), MR_WEIGHT(up));
void moerack_head_matmul(int set, float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(w), int64_t heads,
                         int64_t head_rows, int64_t from, int64_t to, int64_t transpose, int64_t in_stride, int64_t head_out_stride);
void moerack_quantize(int set, int8_t *out, int64_t out_stride, float *scale, const float *x, int64_t x_stride, int64_t rows, int64_t cols);
void moerack_matmul8(int set, float *out, int64_t out_stride, const int8_t *x, int64_t x_stride, const float *x_scale, int64_t rows, MR_WEIGHT(w));
void moerack_swiglu8(int set, float *out, int64_t out_stride, const int8_t *x, int64_t x_stride, const float *x_scale, int64_t rows,
                     MR_WEIGHT(gate), MR_WEIGHT(up));

#endif
