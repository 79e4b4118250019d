#define _DEFAULT_SOURCE  // syscall
// Calls from Go, one for each op, handed on to the instruction set that Go chose.
#include "dispatch.h"

#ifdef MR_HAS_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#if defined(__x86_64__)
#define SETS(X) X(MR_AVX2, avx2) X(MR_AVX512, avx512)
#define SETS8(X) X(MR_AVX2, avx2) X(MR_AVX512VNNI, avx512vnni)
#elif defined(__aarch64__)
#define SETS(X) X(MR_NEON, neon)
#define SETS8(X) X(MR_NEON, neon)
#else
#define SETS(X)
#define SETS8(X)
#endif

#ifdef MR_HAS_AMX
#define AMX(X) X(MR_AMX, amx)

// has_amx reports whether there are tiles of int8 and bfloat16, and asks the system for leave to use them, which it gives to a whole
// process and without which the first such instruction would end it.
static int has_amx(void) {
	enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18, ALL = 1 << 22 | 1 << 24 | 1 << 25 };
	unsigned a, b, c, d;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & ALL) == ALL && syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}
#else
#define AMX(X)
#endif

int moerack_supports(int set) {
#if defined(__x86_64__)
#ifdef MOERACK_SIMDE
	return set == MR_AVX2 || set == MR_AVX512 || set == MR_AVX512VNNI;
#else
	__builtin_cpu_init();
	int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
	int avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
	switch (set) {
	case MR_AVX2: return avx2;
	case MR_AVX512: return avx512;
	case MR_AVX512VNNI: return avx512 && __builtin_cpu_supports("avx512vnni");
#ifdef MR_HAS_AMX
	case MR_AMX: return avx512 && __builtin_cpu_supports("avx512vnni") && has_amx();
#endif
	}
	return 0;
#endif
#elif defined(__aarch64__)
	return set == MR_NEON;
#else
	return 0;
#endif
}

#define PRODUCTS(id, isa) \
	MR_MATMUL(moerack_matmul_##isa); \
	MR_SWIGLU(moerack_swiglu_##isa);
#define PRODUCTS8(id, isa) \
	MR_MATMUL8(moerack_matmul8_##isa); \
	MR_SWIGLU8(moerack_swiglu8_##isa);
#define HEADS(id, isa) MR_HEAD_MATMUL(moerack_head_matmul_##isa);
#define QUANTIZE(id, isa) MR_QUANTIZE(moerack_quantize_##isa);

SETS(PRODUCTS)
SETS(HEADS)
SETS8(PRODUCTS8)
SETS8(QUANTIZE)
AMX(PRODUCTS)
AMX(PRODUCTS8)

#define W3(w) w##_data, w##_scale, w##_dims

void moerack_matmul(int set, float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(w)) {
#define CASE(id, isa) case id: moerack_matmul_##isa(out, out_stride, x, x_stride, rows, W3(w)); break;
	switch (set) { SETS(CASE) AMX(CASE) }
#undef CASE
}

void moerack_swiglu(int set, float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(gate), MR_WEIGHT(up)) {
#define CASE(id, isa) case id: moerack_swiglu_##isa(out, out_stride, x, x_stride, rows, W3(gate), W3(up)); break;
	switch (set) { SETS(CASE) AMX(CASE) }
#undef CASE
}

void moerack_head_matmul(int set, float *out, int64_t out_stride, const float *x, int64_t x_stride, int64_t rows, MR_WEIGHT(w), int64_t heads,
                         int64_t head_rows, int64_t from, int64_t to, int64_t transpose, int64_t in_stride, int64_t head_out_stride) {
#define CASE(id, isa) \
	case id: \
		moerack_head_matmul_##isa(out, out_stride, x, x_stride, rows, W3(w), heads, head_rows, from, to, transpose, in_stride, head_out_stride); \
		break;
	switch (set) { SETS(CASE) }
#undef CASE
}

void moerack_quantize(int set, int8_t *out, int64_t out_stride, float *scale, const float *x, int64_t x_stride, int64_t rows, int64_t cols) {
#define CASE(id, isa) case id: moerack_quantize_##isa(out, out_stride, scale, x, x_stride, rows, cols); break;
	switch (set) { SETS8(CASE) }
#undef CASE
}

void moerack_matmul8(int set, float *out, int64_t out_stride, const int8_t *x, int64_t x_stride, const float *x_scale, int64_t rows, MR_WEIGHT(w)) {
#define CASE(id, isa) case id: moerack_matmul8_##isa(out, out_stride, x, x_stride, x_scale, rows, W3(w)); break;
	switch (set) { SETS8(CASE) AMX(CASE) }
#undef CASE
}

void moerack_swiglu8(int set, float *out, int64_t out_stride, const int8_t *x, int64_t x_stride, const float *x_scale, int64_t rows,
                     MR_WEIGHT(gate), MR_WEIGHT(up)) {
#define CASE(id, isa) case id: moerack_swiglu8_##isa(out, out_stride, x, x_stride, x_scale, rows, W3(gate), W3(up)); break;
	switch (set) { SETS8(CASE) AMX(CASE) }
#undef CASE
}
