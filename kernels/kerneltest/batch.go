package kerneltest

import (
	"fmt"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// testBatches demands the same bits of a row alone, of rows in parts, of outputs in parts and of all at once, at sizes that cross
// the blocks of implementations: of rows, of outputs and of the reduction.
func testBatches(t *testing.T, k kernels.Table) {
	g := newGen(t, 15)
	for _, s := range []struct{ rows, outs, in int }{{1, 131, 260}, {9, 53, 2101}, {14, 100, 801}, {105, 61, 130}, {4, 27, 8209}} {
		x, q := g.mat(s.rows, s.in), g.rows8(s.rows, s.in)
		for name, f := range formats {
			a, b := g.weight(f, s.outs, s.in), g.weight(f, s.outs, s.in)
			name := fmt.Sprintf("%s, %d rows, %d×%d", name, s.rows, s.outs, s.in)
			testCuts(t, g, name+": MatMul", s.rows, s.outs, func(out kernels.Mat, r0, r1, o0, o1 int) {
				k.MatMul(out, x.Sub(r0, r1), cut(a, o0, o1, 0, s.in))
			})
			testCuts(t, g, name+": SwiGLU", s.rows, s.outs, func(out kernels.Mat, r0, r1, o0, o1 int) {
				k.SwiGLU(out, x.Sub(r0, r1), cut(a, o0, o1, 0, s.in), cut(b, o0, o1, 0, s.in))
			})
			testTransposedCuts(t, k, g, name, s.rows, a)
		}
		a, b := g.weight8(s.outs, s.in), g.weight8(s.outs, s.in)
		testCuts(t, g, fmt.Sprintf("%d rows, %d×%d: SwiGLU8", s.rows, s.outs, s.in), s.rows, s.outs, func(out kernels.Mat, r0, r1, o0, o1 int) {
			g, u := a.Sub(o0, o1), b.Sub(o0, o1)
			k.SwiGLU8(out, q.Sub(r0, r1), &g, &u)
		})
	}
}

// testCuts compares rows and outputs of f cut at random with the whole. f computes rows [r0, r1) and outputs [o0, o1) into out.
func testCuts(t *testing.T, g gen, name string, rows, outs int, f func(out kernels.Mat, r0, r1, o0, o1 int)) {
	t.Helper()
	whole := guarded(rows, outs)
	f(whole, 0, rows, 0, outs)
	checkGuards(t, name, whole)
	for range 3 {
		r0, o0 := g.IntN(rows), g.IntN(outs)
		for _, r1 := range []int{r0 + 1, r0 + 1 + g.IntN(rows-r0)} {
			o1 := o0 + 1 + g.IntN(outs-o0)
			part := guarded(r1-r0, o1-o0)
			f(part, r0, r1, o0, o1)
			checkGuards(t, name, part)
			for r := range part.Rows {
				same(t, fmt.Sprintf("%s: rows %d … %d, outputs %d … %d, row %d", name, r0, r1-1, o0, o1-1, r), part.Row(r), whole.Row(r0 + r)[o0:o1])
			}
		}
	}
}

// testTransposedCuts takes w as the rows of one head.
func testTransposedCuts(t *testing.T, k kernels.Table, g gen, name string, rows int, w *kernels.Weight) {
	t.Helper()
	h := kernels.HeadMatMul{Heads: 1, Rows: w.Out, To: w.Out, Transposed: true, InStride: w.Out, OutStride: w.In}
	x, whole, alone := g.mat(rows, w.Out), guarded(rows, w.In), guarded(1, w.In)
	k.HeadMatMul(whole, x, w, h)
	checkGuards(t, name+": transposed", whole)
	r := g.IntN(rows)
	k.HeadMatMul(alone, x.Sub(r, r+1), w, h)
	same(t, name+": transposed", alone.Row(0), whole.Row(r))
}
