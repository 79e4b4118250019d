// How products are cut: tiles of a group of rows, blocks of outputs, and the ends of both. Include after vec_*.h.
#ifndef MOERACK_BLOCK_H
#define MOERACK_BLOCK_H

#include "exp.h"
#include "ops.h"
#include "vecmath.h"

#define GROUP 4                  // most rows of a tile
#define BLOCK_BYTES (256 << 10)  // of a block of outputs, about: half of a small second cache
#define BLOCK_T 48               // rows of a gated block

// UNROLL goes before a loop over registers: if it were unrolled late, its arrays of vectors would stay in memory.
#define UNROLL _Pragma("GCC unroll 40")

INLINE int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

// group is how many of the rows that are left go together: four, and at the end what leaves no row alone.
INLINE int group(int64_t left) { return left == 5 || left == 6 ? 3 : left < GROUP ? (int)left : GROUP; }

// block is how many outputs of so many bytes stay in the second cache: a multiple of 24, which every tile divides.
INLINE int64_t block(int64_t bytes, int64_t most) {
	int64_t n = BLOCK_BYTES / (bytes + 1) / 24 * 24;
	return n < 24 ? 24 : min64(n, most);
}

// gate_up turns a = x·gateᵀ, in out, and b = x·upᵀ into silu(a)·b.
INLINE void gate_up(float *out, const float *b, int64_t n) {
	int64_t i = 0;
	for (; i + W <= n; i += W) v_store(out + i, v_mul(v_silu(v_load(out + i)), v_load(b + i)));
	if (i < n) store_rest(out + i, v_mul(v_silu(load_rest(out + i, n - i)), load_rest(b + i, n - i)), n - i);
}

#endif
