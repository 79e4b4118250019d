// Package simd is the fast implementation of [kernels.Table]: C with vector instructions, in one version for each instruction set,
// chosen at run time. What an instruction set lacks, and everything in a build without cgo, is served by kernels/ref.
//
// One source serves all instruction sets: matmul.h and its like are written over the few functions of vec_*.h and included once for
// each. The order of summation is part of each file's head; it makes a row's bits independent of its batch. Bits may differ between
// instruction sets, but not those of int8 products, which are exact.
//
// AVX-512 BF16 is not used: its dot product takes both operands in bfloat16, and activations are float32 here.
//
// The package reads no environment and holds no state: the caller says what is switched off.
package simd
