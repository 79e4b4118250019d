package simd_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moerack/moerack/kernels"
	"github.com/moerack/moerack/kernels/ref"
)

// TestRowsAsPlain: rotation, sums and the weighing of experts have the bits of the plain implementation, a norm is near it, at sizes that
// nobody chose.
func TestRowsAsPlain(t *testing.T) {
	each(t, func(t *testing.T, k kernels.Table) {
		r, plain := seeded(t), ref.Table()
		for range 200 {
			rows, cols := 1+r.IntN(5), 1+r.IntN(300)
			check := func(op string, f func(k kernels.Table, out kernels.Mat)) {
				t.Helper()
				got, want := emptyMat(rows, cols), emptyMat(rows, cols)
				f(k, got)
				f(plain, want)
				for i, v := range got.Data {
					if w := want.Data[i]; math.Float32bits(v) != math.Float32bits(w) {
						t.Fatalf("%s of %d × %d: element %d is %g, plain %g", op, rows, cols, i, v, w)
					}
				}
			}
			a, b := randomMat(r, rows, cols), randomMat(r, rows, cols)
			check("Add", func(k kernels.Table, out kernels.Mat) { k.Add(out, a, b) })

			picks := 1 + r.IntN(6)
			y, index, weights := randomMat(r, 10, cols), kernels.Ints{Data: make([]int32, rows*picks), Rows: rows, Cols: picks, Stride: picks}, randomMat(r, rows, picks)
			for i := range index.Data {
				index.Data[i] = int32(r.IntN(11)) - 1
			}
			clear(y.Row(0)) // times a negative weight: −0
			shared := kernels.Mat{}
			if r.IntN(2) == 0 {
				shared = b
			}
			check("Combine", func(k kernels.Table, out kernels.Mat) { k.Combine(out, y, index, weights, shared) })

			dim := 2 * (1 + r.IntN(40))
			table, x := randomMat(r, 20, dim), randomMat(r, rows, 3*(dim+5))
			positions := make([]int32, rows)
			for i := range positions {
				positions[i] = int32(r.IntN(20))
			}
			rope := kernels.Rope{Heads: 3, Dim: dim, InStride: dim + 5, InOffset: r.IntN(6), OutStride: dim + 1, OutOffset: r.IntN(2)}
			cols = 3 * rope.OutStride
			check("Rope", func(k kernels.Table, out kernels.Mat) { k.Rope(out, x, positions, table, rope) })

			got, want := emptyMat(rows, a.Cols), emptyMat(rows, a.Cols)
			k.RMSNorm(got, a, b.Row(0), 1e-6)
			plain.RMSNorm(want, a, b.Row(0), 1e-6)
			for i, v := range got.Data {
				// a sum of up to 300 squares in another order, under a root, and two products
				if w := want.Data[i]; !(math.Abs(float64(v-w)) <= 2e-6*math.Abs(float64(w))) {
					t.Fatalf("RMSNorm of %d × %d: element %d is %g, plain %g", rows, a.Cols, i, v, w)
				}
			}
			alone := emptyMat(1, a.Cols)
			last := rows - 1
			k.RMSNorm(alone, a.Sub(last, rows), b.Row(0), 1e-6)
			if !sameBits(alone.Row(0), got.Row(last)) {
				t.Fatalf("RMSNorm: row %d of %d has other bits than alone", last, rows)
			}
		}
	})
}

// TestRouteAsPlain: the choice is that of the plain implementation, whatever the numbers of experts, groups and picks, and with logits that
// are equal, infinite or NaN.
func TestRouteAsPlain(t *testing.T) {
	each(t, func(t *testing.T, k kernels.Table) {
		r, plain := seeded(t), ref.Table()
		for range 400 {
			route := randomRouter(r)
			experts := route.Groups * (2 + r.IntN(20))
			picks := 1 + r.IntN(min(8, experts/route.Groups*route.TopGroups))
			rows := 1 + r.IntN(4)
			logits := randomMat(r, rows, experts)
			if r.IntN(2) == 0 { // few values, so that there are ties
				few := []float32{0, 1, -1, 2, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}[:4+r.IntN(4)]
				for i := range logits.Data {
					logits.Data[i] = few[r.IntN(len(few))]
				}
			}
			var bias []float32
			if route.Method == kernels.NoAuxTC && r.IntN(3) > 0 {
				bias = randomMat(r, 1, experts).Row(0)
			}
			run := func(k kernels.Table, logits kernels.Mat) (kernels.Ints, kernels.Mat) {
				ids, weights := kernels.Ints{Data: make([]int32, logits.Rows*picks), Rows: logits.Rows, Cols: picks, Stride: picks}, emptyMat(logits.Rows, picks)
				k.Route(ids, weights, logits, bias, nil, route, make([]float32, kernels.RouterScratch(experts, route.Groups)))
				return ids, weights
			}
			ids, weights := run(k, logits)
			wantIDs, want := run(plain, logits)
			if !slices.Equal(ids.Data, wantIDs.Data) {
				t.Fatalf("%+v, %d experts: chose %v, plain %v", route, experts, ids.Data, wantIDs.Data)
			}
			for i, v := range weights.Data {
				w := want.Data[i]
				if v != w && !(v != v && w != w) && !(math.Abs(float64(v-w)) <= 4e-6*math.Abs(float64(w))) {
					t.Fatalf("%+v, %d experts: weight %d is %g, plain %g", route, experts, i, v, w)
				}
			}
			if _, alone := run(k, logits.Sub(rows-1, rows)); !sameBits(alone.Row(0), weights.Row(rows-1)) {
				t.Fatalf("%+v: the last of %d rows has other weights than alone", route, rows)
			}
		}
	})
}

func randomRouter(r *rand.Rand) kernels.Router {
	route := kernels.Router{
		Sigmoid: r.IntN(2) == 0, Method: []kernels.TopKMethod{kernels.Greedy, kernels.GroupLimitedGreedy, kernels.NoAuxTC}[r.IntN(3)],
		Groups: 1 + r.IntN(8), Normalize: r.IntN(2) == 0, Scale: 2.5,
	}
	route.TopGroups = 1 + r.IntN(route.Groups)
	return route
}
