package kerneltest

import (
	"fmt"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// cuts lie inside blocks of 128, and one element before, on and behind their border.
var cuts = []int{0, 1, 37, 127, 128, 129, 200}

// testSlices compares slices of a matrix with the same elements of the whole, in blocks as published: bits must be equal wherever the
// order of sums is the same. Slices begin and end anywhere.
func testSlices(t *testing.T, k kernels.Table) {
	g := newGen(t, 12)
	for name, f := range formats {
		const out, in, rows = 261, 259, 2
		w := g.weight(f, out, in)
		if f == kernels.F8E4M3 {
			w.BlockRows, w.BlockCols, w.ScaleCols, w.RowStart, w.ColStart, w.Scale = 128, 128, 3, 0, 0, nil
			for range 9 {
				w.Scale = append(w.Scale, 0.01+g.Float32())
			}
		}
		x, whole := g.mat(rows, in), guarded(rows, out)
		k.MatMul(whole, x, w)
		table := guarded(out, in)
		k.Embed(table, w, upTo(out), 0)
		for _, from := range cuts {
			for _, to := range []int{from + 1, from + 59, 257} {
				name := fmt.Sprintf("%s [%d, %d)", name, from, to)
				testRowSlice(t, k, g, name, w, from, to, x, whole, table)
				testColumnSlice(t, k, g, name, w, from, to, table)
			}
		}
	}
}

// testRowSlice cuts outputs: each is what it is in the whole product, bit for bit. // x (rows, in), whole (rows, out), table (out, in)
func testRowSlice(t *testing.T, k kernels.Table, g gen, name string, w *kernels.Weight, from, to int, x, whole, table kernels.Mat) {
	t.Helper()
	part := cut(w, from, to, 0, w.In)
	got := guarded(x.Rows, to-from)
	k.MatMul(got, x, part)
	checkGuards(t, name, got)
	for r := range x.Rows {
		same(t, name+" rows: MatMul", got.Row(r), whole.Row(r)[from:to])
	}
	gated, wholeGated := guarded(x.Rows, to-from), guarded(x.Rows, w.Out)
	k.SwiGLU(gated, x, part, part)
	k.SwiGLU(wholeGated, x, w, w)
	for r := range x.Rows {
		same(t, name+" rows: SwiGLU", gated.Row(r), wholeGated.Row(r)[from:to])
	}
	ids := []int32{int32(from), int32(from) - 1, int32(to), int32(to - 1), int32(g.IntN(w.Out))}
	if from == 0 {
		ids[1] = int32(w.Out)
	}
	rows := guarded(len(ids), w.In)
	k.Embed(rows, part, ids, from)
	checkGuards(t, name, rows)
	for r, id := range ids {
		want := make([]float32, w.In)
		if int(id) >= from && int(id) < to {
			copy(want, table.Row(int(id)))
		}
		same(t, fmt.Sprintf("%s rows: Embed %d", name, id), rows.Row(r), want)
	}
}

// testColumnSlice cuts inputs: elements are those of the whole, bit for bit; sums are those of the part alone. // table (out, in)
func testColumnSlice(t *testing.T, k kernels.Table, g gen, name string, w *kernels.Weight, from, to int, table kernels.Mat) {
	t.Helper()
	part := cut(w, 0, w.Out, from, to)
	elements := guarded(w.Out, to-from)
	k.Embed(elements, part, upTo(w.Out), 0)
	checkGuards(t, name, elements)
	for o := range w.Out {
		same(t, name+" columns: Embed", elements.Row(o), table.Row(o)[from:to])
	}
	x, got := g.mat(1, to-from), guarded(1, w.Out)
	k.MatMul(got, x, part)
	for o, v := range got.Row(0) {
		sum, terms := dot64(w, o, from, x.Row(0))
		near(t, fmt.Sprintf("%s columns: MatMul %d", name, o), v, sum, terms, tolerance)
	}
	h := kernels.HeadMatMul{Heads: 1, Rows: w.Out, From: 3, To: w.Out - 1, Transposed: true, InStride: w.Out, OutStride: w.In}
	y, back, wholeBack := g.mat(1, w.Out), guarded(1, to-from), guarded(1, w.In)
	k.HeadMatMul(wholeBack, y, w, h)
	h.OutStride = to - from
	k.HeadMatMul(back, y, part, h)
	checkGuards(t, name, back)
	same(t, name+" columns: transposed", back.Row(0), wholeBack.Row(0)[from:to])
}

func upTo(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = int32(i)
	}
	return ids
}
