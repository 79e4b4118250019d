//go:build cgo

package simd

// #include "dispatch.h"
import "C"

import (
	"maps"
	"slices"

	"github.com/moerack/moerack/kernels"
)

// products are what AMX has tiles for.
var products = []string{"MatMul", "SwiGLU", "MatMul8", "SwiGLU8"}

func architecture(s func(string, C.int, map[string]func(*kernels.Table)) set) []set {
	avx2 := floats(C.MR_AVX2)
	maps.Copy(avx2, bytes(C.MR_AVX2))
	amx := bytes(C.MR_AMX)
	maps.Copy(amx, floats(C.MR_AMX))
	maps.DeleteFunc(amx, func(op string, _ func(*kernels.Table)) bool { return !slices.Contains(products, op) })
	tiles := s("amx", C.MR_AMX, amx)
	tiles.calls = []string{"avx512", "avx512vnni"}
	return []set{
		tiles,
		s("avx512vnni", C.MR_AVX512VNNI, bytes(C.MR_AVX512VNNI)),
		s("avx512", C.MR_AVX512, floats(C.MR_AVX512)),
		s("avx2", C.MR_AVX2, avx2),
	}
}
