package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// testCombine demands the exact sum, in order, of the terms that are there: all, some, the last alone, none.
func testCombine(t *testing.T, k kernels.Table) {
	g := newGen(t, 7)
	for _, h := range Sizes {
		const rows, picks, missing = 6, 4, float32(math.MaxFloat32)
		y, w, shared := g.mat(rows*picks, h), g.mat(rows, picks), g.mat(rows, h)
		index := kernels.Ints{Rows: rows, Cols: picks, Stride: picks + 1, Data: make([]int32, rows*(picks+1))}
		for i, p := range g.Perm(rows * picks) {
			index.Row(i / picks)[i%picks] = int32(p)
		}
		for _, out := range [][2]int{{1, 0}, {2, 1}, {2, 3}, {3, 0}, {3, 1}, {3, 2}, {4, 0}, {4, 1}, {4, 2}, {4, 3}} { // rows 0 and 5 are whole
			index.Row(out[0])[out[1]] = -1
			w.Row(out[0])[out[1]] = missing // no sum may have it
		}
		for _, sh := range []kernels.Mat{shared, {}} {
			out := guarded(rows, h)
			k.Combine(out, y, index, w, sh)
			checkGuards(t, "Combine", out)
			for r := range rows {
				want := combined(y, index.Row(r), w.Row(r), sh, r)
				same(t, fmt.Sprintf("H %d, row %d of index %v", h, r, index.Row(r)), out.Row(r), want)
			}
		}
		out := guarded(rows, h)
		k.Combine(out, y, index, w, shared)
		k.Combine(shared, y, index, w, shared)
		for r := range rows {
			same(t, "in place", shared.Row(r), out.Row(r))
		}
	}
}

// combined is row r in the order of the contract, all at once in float32.
func combined(y kernels.Mat, index []int32, w []float32, shared kernels.Mat, r int) []float32 {
	var sum []float32
	add := func(term []float32) {
		if sum == nil {
			sum = term
			return
		}
		for i, v := range term {
			sum[i] += v
		}
	}
	for j, from := range index {
		if from < 0 {
			continue
		}
		term := make([]float32, y.Cols)
		for i, v := range y.Row(int(from)) {
			term[i] = w[j] * v
		}
		add(term)
	}
	if shared.Data != nil {
		add(append([]float32(nil), shared.Row(r)...))
	}
	if sum == nil {
		sum = make([]float32, y.Cols)
	}
	return sum
}
