//go:build cgo

package simd

// #include "dispatch.h"
import "C"

import (
	"maps"

	"github.com/moerack/moerack/kernels"
)

func architecture(s func(string, C.int, map[string]func(*kernels.Table)) set) []set {
	avx2 := floats(C.MR_AVX2)
	maps.Copy(avx2, bytes(C.MR_AVX2))
	return []set{
		s("avx512vnni", C.MR_AVX512VNNI, bytes(C.MR_AVX512VNNI)),
		s("avx512", C.MR_AVX512, floats(C.MR_AVX512)),
		s("avx2", C.MR_AVX2, avx2),
	}
}
