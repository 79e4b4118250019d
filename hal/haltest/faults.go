package haltest

import (
	"math"

	"github.com/moerack/moerack/hal"
)

// expectFault runs op and demands a caller's fault.
func (r *rig) expectFault(name string, op func()) {
	r.Helper()
	op()
	err := r.st.Err()
	if e := r.st.Synchronize(r.Context()); err == nil {
		err = e
	}
	if hal.ClassOf(err) != hal.CallerFault {
		r.Errorf("%s: %v, want a caller's fault", name, err)
	}
}

func testWrongShapes(r *rig) {
	w, _ := r.weight(4, 6)
	f := func(rows, cols int) hal.Tensor { return r.alloc(hal.F32, rows, cols) }
	n := func(rows, cols int) hal.Tensor { return r.alloc(hal.I32, rows, cols) }
	r.expectFault("MatMul: columns", func() { r.st.MatMul(f(2, 4), f(2, 5), w) })
	r.expectFault("MatMul: rows", func() { r.st.MatMul(f(3, 4), f(2, 6), w) })
	r.expectFault("MatMul: integers", func() { r.st.MatMul(f(2, 4), n(2, 6), w) })
	r.expectFault("MatMul: no weight", func() { r.st.MatMul(f(2, 4), f(2, 6), hal.Weight{}) })
	r.expectFault("SwiGLU: two shapes", func() {
		other, _ := r.weight(3, 6)
		r.st.SwiGLU(f(2, 4), f(2, 6), w, other)
	})
	r.expectFault("HeadMatMul: slice", func() {
		r.st.HeadMatMul(f(2, 4), f(2, 12), w, hal.HeadMatMul{Heads: 2, Rows: 2, From: 1, To: 3, InStride: 6, OutStride: 2})
	})
	r.expectFault("AddRMSNorm: y", func() { r.st.AddRMSNorm(f(2, 6), f(2, 6), f(1, 6), f(1, 6), 1e-6) })
	r.expectFault("RMSNorm: weight", func() { r.st.RMSNorm(f(2, 6), f(2, 6), f(1, 5), 1e-6) })
	r.expectFault("Rope: odd", func() {
		r.st.Rope(f(1, 3), f(1, 3), n(1, 1), f(1, 3), hal.Rope{Heads: 1, Dim: 3, InStride: 3, OutStride: 3})
	})
	r.expectFault("Route: picks", func() {
		r.st.Route(n(1, 5), f(1, 5), f(1, 4), hal.Tensor{}, hal.Tensor{}, hal.Router{Scoring: hal.Softmax, Method: hal.Greedy, Scale: 1})
	})
	r.expectFault("Route: groups", func() {
		r.st.Route(n(1, 2), f(1, 2), f(1, 4), hal.Tensor{}, hal.Tensor{}, hal.Router{Scoring: hal.Softmax, Method: hal.GroupLimitedGreedy, Groups: 3, TopGroups: 1, Scale: 1})
	})
	r.expectFault("Route: sequences", func() {
		r.st.Route(n(2, 2), f(2, 2), f(2, 4), hal.Tensor{}, n(1, 1), hal.Router{Scoring: hal.Softmax, Method: hal.Greedy, Scale: 1})
	})
	for name, change := range map[string]func(*hal.Tensor){
		"a row too many":     func(t *hal.Tensor) { t.Rows = 3 },
		"most rows":          func(t *hal.Tensor) { t.Rows = math.MaxInt },
		"most empty rows":    func(t *hal.Tensor) { t.Rows, t.Cols, t.Stride = math.MaxInt, 0, 0 },
		"largest stride":     func(t *hal.Tensor) { t.Stride = math.MaxInt },
		"stride that wraps":  func(t *hal.Tensor) { t.Rows, t.Stride = 5, math.MaxInt/2+1 },
		"stride below a row": func(t *hal.Tensor) { t.Stride = 5 },
		"largest offset":     func(t *hal.Tensor) { t.Offset = math.MaxInt },
		"negative offset":    func(t *hal.Tensor) { t.Offset = -1 },
		"most columns":       func(t *hal.Tensor) { t.Rows, t.Cols = 1, math.MaxInt },
		"offset and columns": func(t *hal.Tensor) { t.Rows, t.Cols, t.Offset = 1, math.MaxInt, math.MaxInt },
		"negative rows":      func(t *hal.Tensor) { t.Rows = -1 },
		"unknown type":       func(t *hal.Tensor) { t.DType = 99 },
	} {
		r.expectFault("view outside its buffer: "+name, func() {
			t := f(2, 6)
			change(&t)
			r.st.Add(t, t, t)
		})
	}
	r.expectFault("PutFloat32: length", func() { r.st.PutFloat32(f(2, 2), make([]float32, 3)) })
	r.expectFault("GetInt32: length", func() { r.st.GetInt32(make([]int32, 3), n(2, 2)) })
}

func testWrongIndices(r *rig) {
	w, _ := r.weight(4, 6)
	out, x := r.alloc(hal.F32, 1, 6), r.f32(1, r.random(6)...)
	for _, id := range []int32{-1, math.MinInt32} {
		r.expectFault("Embed", func() { r.st.Embed(out, w, r.i32(1, id), 0) })
	}
	r.expectFault("Embed: first", func() { r.st.Embed(out, w, r.i32(1, 0), -1) })
	for _, id := range []int32{-1, 4} {
		r.expectFault("GatherRows", func() { r.st.GatherRows(out, x, r.i32(1, id)) })
	}
	r.expectFault("StoreKV", func() { r.st.StoreKV(out, x, r.i32(1, 1)) })
	r.expectFault("Rope", func() {
		r.st.Rope(out, x, r.i32(1, 1), x, hal.Rope{Heads: 1, Dim: 6, InStride: 6, OutStride: 6})
	})
	a := hal.MLAAttention{Heads: 1, Latent: 4, Rope: 2, BlockSize: 1, Scale: 1}
	cache, got := r.alloc(hal.F32, 2, 6), r.alloc(hal.F32, 1, 4)
	for name, ix := range map[string][3]int32{"sequence": {0, 1, 0}, "position": {0, 0, 1}, "block": {2, 0, 0}} {
		r.expectFault("MLAAttention: "+name, func() {
			r.st.MLAAttention(got, x, cache, r.i32(1, ix[0]), r.i32(1, ix[1]), r.i32(1, ix[2]), a)
		})
	}
	for name, c := range map[string]struct{ id, other, first int }{"below none": {-2, 0, 0}, "lowest": {math.MinInt32, 0, 0}, "too few rows": {1, 1, 0}, "first": {0, 0, -1}} {
		r.expectFault("Dispatch: "+name, func() {
			r.st.Dispatch(out, r.alloc(hal.I32, 1, 2), r.alloc(hal.I32, 1, 2), x, r.i32(1, int32(c.id), int32(c.other)), c.first)
		})
	}
	r.expectFault("GroupedMatMul", func() {
		r.st.GroupedMatMul(r.alloc(hal.F32, 1, 4), x, r.i32(1, 2), []hal.Weight{w})
	})
	for _, row := range []int32{1, -2} {
		r.expectFault("Combine", func() {
			r.st.Combine(out, x, r.i32(1, row), r.f32(1, 1), hal.Tensor{})
		})
	}
}
