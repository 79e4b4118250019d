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
