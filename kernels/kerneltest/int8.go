package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// guard8 is what guard zones of integers hold: no op produces it.
const guard8 = int8(-128)

// guarded8 returns rows of guards with guards between and around them, and scales with guards behind.
func guarded8(rows, cols int) kernels.Rows8 {
	const before, gap, after = 3, 5, 11
	m := kernels.Rows8{Rows: rows, Cols: cols, Stride: cols + gap, Scale: guarded(1, rows).Data}
	data := make([]int8, before+rows*m.Stride+after)
	for i := range data {
		data[i] = guard8
	}
	m.Data = data[before:]
	return m
}

// rows8 returns random rows, extremes among them, at an odd offset with garbage between.
func (g gen) rows8(rows, cols int) kernels.Rows8 {
	m := guarded8(rows, cols)
	for i := range rows {
		m.Scale[i] = float32(math.Exp(g.NormFloat64())) / 100
		g.fill8(m.Row(i))
	}
	return m
}

// fill8 fills a row with all its range, or with nothing but extremes, whose sums are the largest.
func (g gen) fill8(row []int8) {
	one := int8(127)
	if g.IntN(2) == 0 {
		one = -127
	}
	extreme := g.IntN(4) == 0
	for i := range row {
		row[i] = int8(g.IntN(255) - 127)
		if extreme {
			row[i] = one
		}
	}
}

// weight8 returns a random I8 weight with garbage between its rows.
func (g gen) weight8(out, in int) *kernels.Weight {
	rows := g.rows8(out, in)
	w := &kernels.Weight{Format: kernels.I8, Out: out, In: in, Stride: rows.Stride, I8: rows.Data, Scale: rows.Scale}
	return w
}

// product8 is element (t, o) by the contract's formula: the same bits are demanded.
func product8(x kernels.Rows8, t int, w *kernels.Weight, o int) float32 {
	var sum int64
	for i, v := range x.Row(t) {
		sum += int64(v) * int64(w.I8[o*w.Stride+i])
	}
	return float32(sum) * (x.Scale[t] * w.Scale[w.RowStart+o])
}

func testQuantize(t *testing.T, k kernels.Table) {
	g := newGen(t, 12)
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, c := range Sizes {
		const rows = 9
		x := g.mat(rows, c)
		for i := range x.Row(1) { // ties: the largest is 127, the others are halves
			x.Row(1)[i] = float32(g.IntN(200)-100) + 0.5
		}
		x.Row(1)[c-1] = -127
		clear(x.Row(2))
		for i := range x.Row(3) {
			x.Row(3)[i] = math.SmallestNonzeroFloat32 * float32(g.IntN(9)-4)
		}
		x.Row(4)[g.IntN(c)] = nan
		x.Row(5)[g.IntN(c)] = -inf
		x.Row(6)[g.IntN(c)] = math.MaxFloat32
		out := guarded8(rows, c)
		k.Quantize(out, x)
		for i, v := range out.Data {
			if inside := i/out.Stride < rows && i%out.Stride < c; !inside && v != guard8 {
				t.Fatalf("Quantize: element %d outside the rows was overwritten with %d", i, v)
			}
		}
		if v := out.Scale[rows]; v != guardValue {
			t.Fatalf("Quantize: the element behind the scales was overwritten with %g", v)
		}
		for r := range rows {
			want, scale := quantize64(x.Row(r))
			if got := out.Scale[r]; math.Float32bits(got) != math.Float32bits(scale) && !(isNaN(got) && isNaN(scale)) {
				t.Fatalf("row %d of %d: scale %g, want %g", r, c, got, scale)
			}
			for i, v := range out.Row(r) {
				if v != want[i] {
					t.Fatalf("row %d, element %d: %g became %d, want %d", r, i, x.Row(r)[i], v, want[i])
				}
			}
		}
	}
}

func quantize64(x []float32) ([]int8, float32) {
	out, amax := make([]int8, len(x)), float32(0)
	for _, v := range x {
		if isNaN(v) || math.IsInf(float64(v), 0) {
			return out, float32(math.NaN())
		}
		amax = max(amax, v, -v)
	}
	if amax < 0x1p-100 {
		return out, 0
	}
	inverse := 127 / amax
	for i, v := range x {
		out[i] = int8(math.RoundToEven(float64(v * inverse)))
	}
	return out, amax / 127
}

func testMatMul8(t *testing.T, k kernels.Table) {
	g := newGen(t, 13)
	for n, in := range append([]int{2048, 2055}, Sizes...) {
		for _, rows := range []int{1, 2, 3, 4, 5, 9} {
			outs := Sizes[len(Sizes)-1-n%len(Sizes)]
			x, w, out := g.rows8(rows, in), g.weight8(outs, in), guarded(rows, outs)
			k.MatMul8(out, x, w)
			checkGuards(t, "MatMul8", out)
			for r := range rows {
				want := make([]float32, outs)
				for o := range want {
					want[o] = product8(x, r, w, o)
				}
				same(t, fmt.Sprintf("%d rows, %d×%d: row %d", rows, outs, in, r), out.Row(r), want)
			}
			from := g.IntN(outs)
			part := w.Sub(from, outs)
			got := guarded(1, outs-from)
			k.MatMul8(got, x.Sub(rows-1, rows), &part)
			same(t, "a part of one row", got.Row(0), out.Row(rows - 1)[from:])
		}
	}
}

func testSwiGLU8(t *testing.T, k kernels.Table) {
	g := newGen(t, 14)
	for n, in := range Sizes {
		rows, outs := 1+n%6, Sizes[len(Sizes)-1-n]
		x, gate, up, out := g.rows8(rows, in), g.weight8(outs, in), g.weight8(outs, in), guarded(rows, outs)
		k.SwiGLU8(out, x, gate, up)
		checkGuards(t, "SwiGLU8", out)
		for r := range rows {
			for o := range outs {
				a, b := float64(product8(x, r, gate, o)), float64(product8(x, r, up, o))
				want := a / (1 + math.Exp(-a)) * b
				near(t, fmt.Sprintf("%d×%d (%d, %d)", outs, in, r, o), out.Row(r)[o], want, math.Abs(want)+1e-30, tolerance)
			}
			alone := guarded(1, outs)
			k.SwiGLU8(alone, x.Sub(r, r+1), gate, up)
			same(t, "SwiGLU8", out.Row(r), alone.Row(0))
		}
	}
}
