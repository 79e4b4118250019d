// Package simd is the fast implementation of [kernels.Table]: C with vector instructions, in one version for each instruction set,
// chosen at run time. What an instruction set lacks, and everything in a build without cgo, is served by kernels/ref.
//
// One source serves all instruction sets: matmul.h and its like are written over the few functions of vec_*.h and included once for
// each. The order of summation is part of each file's head; it makes a row's bits independent of its batch. Bits may differ between
// instruction sets, but not those of int8 products, which are exact.
//
// With AMX (Linux on amd64) products with bfloat16 weights see a float32 row as the exact sum of three bfloat16 rows. AVX-512 BF16 is
// not used: the same way is slower there than float32 products (docs/adr, "Rows in float32").
//
// The package reads no environment and holds no state: the caller says what is switched off.
package simd
