//go:build cgo && (amd64 || arm64)

package simd

/*
#cgo noescape moerack_attention
#cgo nocallback moerack_attention
#cgo noescape moerack_rmsnorm
#cgo nocallback moerack_rmsnorm
#cgo noescape moerack_add_rmsnorm
#cgo nocallback moerack_add_rmsnorm
#cgo noescape moerack_rope
#cgo nocallback moerack_rope
#cgo noescape moerack_combine
#cgo nocallback moerack_combine
#cgo noescape moerack_add
#cgo nocallback moerack_add
#cgo noescape moerack_finite
#cgo nocallback moerack_finite
#cgo noescape moerack_attend_keys
#cgo nocallback moerack_attend_keys
#cgo noescape moerack_block_max
#cgo nocallback moerack_block_max
#cgo noescape moerack_block_sum_exp
#cgo nocallback moerack_block_sum_exp
#cgo noescape moerack_route
#cgo nocallback moerack_route
#include "rows_dispatch.h"
*/
import "C"

import (
	"unsafe"

	"github.com/moerack/moerack/kernels"
)

// C and Go agree on the tile and the block.
var (
	_ = [1]struct{}{}[C.MR_ATTENTION_TILE-kernels.AttentionTile]
	_ = [1]struct{}{}[C.MR_REDUCE_BLOCK-kernels.ReduceBlock]
)

// rows are the ops on rows of activations that an instruction set has.
func rows(id C.int) map[string]func(*kernels.Table) {
	ops := C.moerack_rows(id)
	return map[string]func(*kernels.Table){
		"RMSNorm":      func(t *kernels.Table) { t.RMSNorm = rmsNorm(ops) },
		"AddRMSNorm":   func(t *kernels.Table) { t.AddRMSNorm = addRMSNorm(ops) },
		"Rope":         func(t *kernels.Table) { t.Rope = rope(ops) },
		"MLAAttention": func(t *kernels.Table) { t.MLAAttention = mlaAttention(ops) },
		"Route":        func(t *kernels.Table) { t.Route = route(ops) },
		"Combine":      func(t *kernels.Table) { t.Combine = combine(ops) },
		"Add":          func(t *kernels.Table) { t.Add = add(ops) },
		"Finite":       func(t *kernels.Table) { t.Finite = finite(ops) },
		"AttendKeys":   func(t *kernels.Table) { t.AttendKeys = attendKeys(ops) },
		"BlockMax":     func(t *kernels.Table) { t.BlockMax = blockMax(ops) },
		"BlockSumExp":  func(t *kernels.Table) { t.BlockSumExp = blockSumExp(ops) },
	}
}

func intsAt(s []int32) *C.int32_t { return (*C.int32_t)(unsafe.Pointer(unsafe.SliceData(s))) }

func mlaAttention(ops *C.mr_rows) func(out, q, cache kernels.Mat, tables kernels.Ints, seqs, positions []int32, a kernels.MLAAttention, _ []float32) {
	return func(out, q, cache kernels.Mat, tables kernels.Ints, seqs, positions []int32, a kernels.MLAAttention, _ []float32) {
		C.moerack_attention(ops, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(q.Data), C.int64_t(q.Stride), floatsAt(cache.Data), C.int64_t(cache.Stride),
			intsAt(tables.Data), C.int64_t(tables.Stride), intsAt(seqs), intsAt(positions), C.int64_t(len(seqs)), C.mr_attention{
				heads: C.int64_t(a.Heads), latent: C.int64_t(a.Latent), rope: C.int64_t(a.Rope), block_size: C.int64_t(a.BlockSize), scale: C.float(a.Scale),
			})
	}
}

func rmsNorm(ops *C.mr_rows) func(out, x kernels.Mat, w []float32, eps float32) {
	return func(out, x kernels.Mat, w []float32, eps float32) {
		C.moerack_rmsnorm(ops, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(x.Data), C.int64_t(x.Stride), floatsAt(w), C.int64_t(x.Rows), C.int64_t(x.Cols), C.float(eps))
	}
}

func addRMSNorm(ops *C.mr_rows) func(out, x, y kernels.Mat, w []float32, eps float32) {
	return func(out, x, y kernels.Mat, w []float32, eps float32) {
		C.moerack_add_rmsnorm(ops, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(x.Data), C.int64_t(x.Stride), floatsAt(y.Data), C.int64_t(y.Stride),
			floatsAt(w), C.int64_t(x.Rows), C.int64_t(x.Cols), C.float(eps))
	}
}

func rope(ops *C.mr_rows) func(out, x kernels.Mat, positions []int32, table kernels.Mat, r kernels.Rope) {
	return func(out, x kernels.Mat, positions []int32, table kernels.Mat, r kernels.Rope) {
		C.moerack_rope(ops, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(x.Data), C.int64_t(x.Stride), intsAt(positions),
			floatsAt(table.Data), C.int64_t(table.Stride), C.int64_t(len(positions)), C.mr_rope{
				heads: C.int64_t(r.Heads), dim: C.int64_t(r.Dim), in_stride: C.int64_t(r.InStride), in_offset: C.int64_t(r.InOffset),
				out_stride: C.int64_t(r.OutStride), out_offset: C.int64_t(r.OutOffset),
			})
	}
}

func combine(ops *C.mr_rows) func(out, rows kernels.Mat, index kernels.Ints, weights, shared kernels.Mat) {
	return func(out, rows kernels.Mat, index kernels.Ints, weights, shared kernels.Mat) {
		C.moerack_combine(ops, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(rows.Data), C.int64_t(rows.Stride), intsAt(index.Data), C.int64_t(index.Stride),
			floatsAt(weights.Data), C.int64_t(weights.Stride), floatsAt(shared.Data), C.int64_t(shared.Stride), C.int64_t(out.Rows), C.int64_t(out.Cols), C.int64_t(index.Cols))
	}
}

func add(ops *C.mr_rows) func(out, a, b kernels.Mat) {
	return func(out, a, b kernels.Mat) {
		C.moerack_add(ops, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(a.Data), C.int64_t(a.Stride), floatsAt(b.Data), C.int64_t(b.Stride), C.int64_t(out.Rows), C.int64_t(out.Cols))
	}
}

func finite(ops *C.mr_rows) func(x []float32) bool {
	return func(x []float32) bool { return C.moerack_finite(ops, floatsAt(x), C.int64_t(len(x))) != 0 }
}

func attendKeys(ops *C.mr_rows) func(out, q, keys, values kernels.Mat, positions []int32, from int, scale float32, state []float32) {
	return func(out, q, keys, values kernels.Mat, positions []int32, from int, scale float32, state []float32) {
		C.moerack_attend_keys(ops, floatsAt(out.Data), C.int64_t(out.Stride), floatsAt(q.Data), C.int64_t(q.Stride), floatsAt(keys.Data), C.int64_t(keys.Stride),
			floatsAt(values.Data), C.int64_t(values.Stride), intsAt(positions), C.int64_t(len(positions)), C.mr_keys{
				from: C.int64_t(from), positions: C.int64_t(keys.Rows), width: C.int64_t(keys.Cols), value: C.int64_t(values.Cols), scale: C.float(scale),
			}, floatsAt(state))
	}
}

func blockMax(ops *C.mr_rows) func(out, x []float32) {
	return func(out, x []float32) { C.moerack_block_max(ops, floatsAt(out), floatsAt(x), C.int64_t(len(x))) }
}

func blockSumExp(ops *C.mr_rows) func(out, x []float32, most, scale float32) {
	return func(out, x []float32, most, scale float32) {
		C.moerack_block_sum_exp(ops, floatsAt(out), floatsAt(x), C.int64_t(len(x)), C.float(most), C.float(scale))
	}
}

func route(ops *C.mr_rows) func(ids kernels.Ints, weights, logits kernels.Mat, bias []float32, seqs []int32, r kernels.Router, scratch []float32) {
	return func(ids kernels.Ints, weights, logits kernels.Mat, bias []float32, seqs []int32, r kernels.Router, scratch []float32) {
		flag := func(b bool) C.int32_t {
			if b {
				return 1
			}
			return 0
		}
		C.moerack_route(ops, intsAt(ids.Data), C.int64_t(ids.Stride), floatsAt(weights.Data), C.int64_t(weights.Stride), floatsAt(logits.Data), C.int64_t(logits.Stride),
			floatsAt(bias), intsAt(seqs), C.int64_t(logits.Rows), C.mr_router{
				experts: C.int64_t(logits.Cols), picks: C.int64_t(ids.Cols), groups: C.int64_t(r.Groups), top_groups: C.int64_t(r.TopGroups),
				sigmoid: flag(r.Sigmoid), method: C.int32_t(r.Method), normalize: flag(r.Normalize), scale: C.float(r.Scale),
			}, floatsAt(scratch))
	}
}
