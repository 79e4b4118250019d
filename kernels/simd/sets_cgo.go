//go:build cgo && (amd64 || arm64)

package simd

// Standard C keeps a product and a sum apart where the source does not say fma; GNU C would fuse them.

/*
#cgo CFLAGS: -std=c11 -O3 -Wall
#cgo LDFLAGS: -lm
#include "dispatch.h"
*/
import "C"

import (
	"maps"

	"github.com/moerack/moerack/kernels"
)

// none is never said: there are sets.
const none = ""

// sets lists the instruction sets of this build, the most wanted first.
func sets() []set {
	s := func(name string, id C.int, ops map[string]func(*kernels.Table)) set {
		return set{name: name, there: C.moerack_supports(id) != 0, ops: ops}
	}
	return architecture(s)
}

// floats are the ops on float32 rows that an instruction set has.
func floats(id C.int) map[string]func(*kernels.Table) {
	ops := map[string]func(*kernels.Table){
		"MatMul":     func(t *kernels.Table) { t.MatMul = matMul(id) },
		"SwiGLU":     func(t *kernels.Table) { t.SwiGLU = swiGLU(id) },
		"HeadMatMul": func(t *kernels.Table) { t.HeadMatMul = headMatMul(id) },
	}
	maps.Copy(ops, rows(id))
	return ops
}

// bytes are the ops on quantised rows that an instruction set has.
func bytes(id C.int) map[string]func(*kernels.Table) {
	return map[string]func(*kernels.Table){
		"Quantize": func(t *kernels.Table) { t.Quantize = quantize(id) },
		"MatMul8":  func(t *kernels.Table) { t.MatMul8 = matMul8(id) },
		"SwiGLU8":  func(t *kernels.Table) { t.SwiGLU8 = swiGLU8(id) },
	}
}
