package kerneltest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// Sizes are vector lengths around the unrolling steps and vector widths of implementations, and primes.
var Sizes = []int{1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 127, 131}

// guardValue is what guard zones hold: a number that no op produces.
const guardValue = float32(-7.62939453125e-06)

// gen makes operands from a printed seed.
type gen struct {
	*rand.Rand
}

func newGen(t *testing.T, seed uint64) gen {
	t.Helper()
	t.Logf("seed %d", seed)
	return gen{rand.New(rand.NewPCG(seed, 1))}
}

func (g gen) value() float32 { return float32(g.NormFloat64()) }

// mat returns random rows with a stride larger than the columns, at an odd offset.
func (g gen) mat(rows, cols int) kernels.Mat {
	m := guarded(rows, cols)
	for i := range rows {
		for j := range m.Row(i) {
			m.Row(i)[j] = g.value()
		}
	}
	return m
}

// guarded returns rows of guard values: what an op must fill, and around it what it must not touch.
func guarded(rows, cols int) kernels.Mat {
	const before, gap, after = 3, 5, 11
	data := make([]float32, before+rows*(cols+gap)+after)
	for i := range data {
		data[i] = guardValue
	}
	return kernels.Mat{Data: data[before:], Rows: rows, Cols: cols, Stride: cols + gap}
}

// checkGuards fails if anything between, or behind, the rows of m was written.
func checkGuards(t *testing.T, name string, m kernels.Mat) {
	t.Helper()
	for i, v := range m.Data {
		if inside := i/m.Stride < m.Rows && i%m.Stride < m.Cols; !inside && v != guardValue {
			t.Fatalf("%s: element %d outside its rows was overwritten with %g", name, i, v)
		}
	}
}

// weight returns random rows in a format, with a scale per block for FP8.
func (g gen) weight(f kernels.Format, out, in int) *kernels.Weight {
	w := &kernels.Weight{Format: f, Out: out, In: in}
	n := out * in
	switch f {
	case kernels.F32:
		for range n {
			w.F32 = append(w.F32, g.value())
		}
	case kernels.BF16:
		for range n {
			w.U16 = append(w.U16, uint16(math.Float32bits(g.value())>>16))
		}
	case kernels.F16:
		for range n { // sign, exponents around 1 and subnormals, any fraction
			w.U16 = append(w.U16, uint16(g.IntN(2)<<15|g.IntN(18)<<10|g.IntN(1024)))
		}
	case kernels.F8E4M3:
		for range n {
			c := g.IntN(0x70) // below NaN
			w.U8 = append(w.U8, uint8(g.IntN(2)<<7|c))
		}
		w.BlockRows, w.BlockCols = 16, 8 // smaller than published, so that small sizes have edges
		w.ScaleCols = (in + w.BlockCols - 1) / w.BlockCols
		for range (out + w.BlockRows - 1) / w.BlockRows * w.ScaleCols {
			w.Scale = append(w.Scale, float32(math.Exp(g.NormFloat64()))/64)
		}
	}
	return w
}

var formats = map[string]kernels.Format{"F32": kernels.F32, "BF16": kernels.BF16, "F16": kernels.F16, "F8_E4M3": kernels.F8E4M3}

// element returns the real value of w[o][i] by the formats' definitions, in float64.
func element(w *kernels.Weight, o, i int) float64 {
	k := o*w.In + i
	switch w.Format {
	case kernels.F32:
		return float64(w.F32[k])
	case kernels.BF16:
		return float64(math.Float32frombits(uint32(w.U16[k]) << 16))
	case kernels.F16:
		return minifloat(int(w.U16[k]), 5, 10)
	default:
		scale := w.Scale[o/w.BlockRows*w.ScaleCols+i/w.BlockCols]
		return float64(float32(minifloat(int(w.U8[k]), 4, 3)) * scale) // the published rule rounds to float32
	}
}

// minifloat is sign · 2^(e−bias) · 1.f, subnormals included, for finite codes.
func minifloat(code, expBits, fracBits int) float64 {
	bias := 1<<(expBits-1) - 1
	frac := float64(code & (1<<fracBits - 1))
	e := code >> fracBits & (1<<expBits - 1)
	v := math.Ldexp(1+math.Ldexp(frac, -fracBits), e-bias)
	if e == 0 {
		v = math.Ldexp(frac, 1-bias-fracBits)
	}
	if code>>(expBits+fracBits)&1 == 1 {
		v = -v
	}
	return v
}

// near fails unless got is within tol of want, relative to the size of the terms that were added.
func near(t *testing.T, name string, got float32, want, terms, tol float64) {
	t.Helper()
	if diff := math.Abs(float64(got) - want); !(diff <= tol*(terms+1e-30)) {
		t.Fatalf("%s: got %g, want %g (off by %g, terms add up to %g)", name, got, want, diff, terms)
	}
}

// same fails unless the bits are equal.
func same(t *testing.T, name string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d: %g among others, %g alone: a row must not depend on its batch", name, i, got[i], want[i])
		}
	}
}
