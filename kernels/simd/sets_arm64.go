//go:build cgo

package simd

// #include "dispatch.h"
import "C"

import (
	"maps"

	"github.com/moerack/moerack/kernels"
)

func architecture(s func(string, C.int, map[string]func(*kernels.Table)) set) []set {
	neon := floats(C.MR_NEON)
	maps.Copy(neon, bytes(C.MR_NEON))
	return []set{s("neon", C.MR_NEON, neon)}
}
