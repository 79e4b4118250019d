package simd_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moerack/moerack/kernels"
	"github.com/moerack/moerack/kernels/ref"
	"github.com/moerack/moerack/kernels/simd"
)

// each runs f for the table of every instruction set that is here.
func each(t *testing.T, f func(t *testing.T, k kernels.Table)) {
	t.Helper()
	names := simd.Names()
	for i, name := range names {
		k, choices, err := simd.Select(names[:i])
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(choices, func(c simd.Choice) bool { return c.Implementation == name }) {
			t.Run(name, func(t *testing.T) { f(t, k) })
		}
	}
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 1))
}

func randomMat(r *rand.Rand, rows, cols int) kernels.Mat {
	m := kernels.Mat{Data: make([]float32, rows*(cols+3)), Rows: rows, Cols: cols, Stride: cols + 3}
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
	}
	return m
}

func emptyMat(rows, cols int) kernels.Mat {
	return kernels.Mat{Data: make([]float32, rows*(cols+1)), Rows: rows, Cols: cols, Stride: cols + 1}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// attentionCase is a batch of rows over some sequences. Pages are given only when it runs.
type attentionCase struct {
	a         kernels.MLAAttention
	latents   []kernels.Mat // of each sequence // (positions, Latent+Rope)
	q         kernels.Mat   // (T, N·(Latent+Rope))
	seqs, pos []int32       // (T)
}

func newAttentionCase(r *rand.Rand) attentionCase {
	a := kernels.MLAAttention{Heads: 1 + r.IntN(7), Latent: 1 + r.IntN(90), Rope: r.IntN(40), Scale: r.Float32()}
	if r.IntN(5) == 0 {
		a.Heads = 30 + r.IntN(8)
	}
	c, width := attentionCase{a: a}, a.Latent+a.Rope
	for range 1 + r.IntN(3) {
		c.latents = append(c.latents, randomMat(r, 1+r.IntN(4*kernels.AttentionTile), width))
	}
	c.q = randomMat(r, 1+r.IntN(9), a.Heads*width)
	for range c.q.Rows {
		s := r.IntN(len(c.latents)+1) - 1
		c.seqs, c.pos = append(c.seqs, int32(s)), append(c.pos, 0)
		if s >= 0 {
			c.pos[len(c.pos)-1] = int32(r.IntN(c.latents[s].Rows))
		}
	}
	return c
}

// run computes the given rows in one call, over pages of a size in random order.
func (c attentionCase) run(r *rand.Rand, k kernels.Table, blockSize int, rows ...int) kernels.Mat {
	a, width := c.a, c.a.Latent+c.a.Rope
	a.BlockSize = blockSize
	blocks, most := 0, 0
	for _, l := range c.latents {
		n := (l.Rows-1)/blockSize + 1
		blocks, most = blocks+n, max(most, n)
	}
	tables := kernels.Ints{Data: make([]int32, len(c.latents)*(most+1)), Rows: len(c.latents), Cols: most, Stride: most + 1}
	cache := kernels.Mat{Data: make([]float32, blocks*blockSize*(width+2)), Rows: blocks * blockSize, Cols: width, Stride: width + 2}
	for i := range cache.Data {
		cache.Data[i] = float32(math.NaN())
	}
	order := r.Perm(blocks)
	for s, l := range c.latents {
		for p := range l.Rows {
			if p%blockSize == 0 {
				tables.Row(s)[p/blockSize], order = int32(order[0]), order[1:]
			}
			copy(cache.Row(int(tables.Row(s)[p/blockSize])*blockSize+p%blockSize), l.Row(p))
		}
	}
	q := emptyMat(len(rows), a.Heads*width)
	seqs, pos := make([]int32, len(rows)), make([]int32, len(rows))
	for i, t := range rows {
		copy(q.Row(i), c.q.Row(t))
		seqs[i], pos[i] = c.seqs[t], c.pos[t]
	}
	out := emptyMat(len(rows), a.Heads*a.Latent)
	k.MLAAttention(out, q, cache, tables, seqs, pos, a, make([]float32, kernels.AttentionTile))
	return out
}

// TestAttentionBits: a row has the same bits alone and in any batch, in any order, over pages of any size; and it is near the plain
// implementation.
func TestAttentionBits(t *testing.T) {
	each(t, func(t *testing.T, k kernels.Table) {
		r := seeded(t)
		for range 60 {
			c := newAttentionCase(r)
			order := r.Perm(c.q.Rows)
			together := c.run(r, k, 1+r.IntN(80), order...)
			cut := r.IntN(len(order)) // a batch in two calls
			first, second := c.run(r, k, 1+r.IntN(80), order[:cut]...), c.run(r, k, 1+r.IntN(80), order[cut:]...)
			plain := c.run(r, ref.Table(), 16, order...)
			for i, row := range order {
				name := fmt.Sprintf("%+v, row %d at position %d of sequence %d", c.a, row, c.pos[row], c.seqs[row])
				alone := c.run(r, k, 1+r.IntN(80), row)
				part := first
				if i >= cut {
					part, i = second, i-cut
				}
				if !sameBits(alone.Row(0), part.Row(i)) {
					t.Fatalf("%s: other bits in a part of the batch than alone", name)
				}
			}
			for i, row := range order {
				alone := c.run(r, k, 7, row)
				if !sameBits(alone.Row(0), together.Row(i)) {
					t.Fatalf("%+v: row %d has other bits in a batch than alone", c.a, row)
				}
				for j, want := range plain.Row(i) {
					// weights add up to 1, latents are a few units: float32 sums of some hundred terms
					if got := together.Row(i)[j]; !(math.Abs(float64(got-want)) < 1e-4) {
						t.Fatalf("%+v: row %d element %d is %g, plain %g", c.a, row, j, got, want)
					}
				}
			}
		}
	})
}

// TestAttentionExtremes: large scores neither overflow nor vanish, a NaN or an infinity shows from its position on and not before, and in
// no other sequence.
func TestAttentionExtremes(t *testing.T) {
	each(t, func(t *testing.T, k kernels.Table) {
		r := seeded(t)
		nan, inf := float32(math.NaN()), float32(math.Inf(1))
		for _, bad := range []float32{nan, inf, -inf} {
			for range 20 {
				c := newAttentionCase(r)
				l := c.latents[0]
				at := r.IntN(l.Rows)
				l.Row(at)[r.IntN(l.Cols)] = bad
				order := r.Perm(c.q.Rows)
				out, plain := c.run(r, k, 16, order...), c.run(r, ref.Table(), 16, order...)
				for i, row := range order {
					for j, want := range plain.Row(i) {
						got := out.Row(i)[j]
						if finite := want-want == 0; finite != (got-got == 0) || finite && c.seqs[row] == 0 && int(c.pos[row]) < at && !(math.Abs(float64(got-want)) < 1e-4) {
							t.Fatalf("%+v: %g at position %d: row at %d of sequence %d: element %d is %g, plain %g", c.a, bad, at, c.pos[row], c.seqs[row], j, got, want)
						}
					}
				}
			}
		}
		a := kernels.MLAAttention{Heads: 2, Latent: 5, Rope: 1, Scale: 1}
		c := attentionCase{a: a, latents: []kernels.Mat{randomMat(r, 150, 6)}, q: emptyMat(1, 12), seqs: []int32{0}, pos: []int32{149}}
		c.q.Row(0)[5], c.q.Row(0)[11] = 1e20, -1e20
		c.latents[0].Row(70)[5], c.latents[0].Row(99)[5] = 1e15, -1e15
		out := c.run(r, k, 16, 0).Row(0)
		if want := append(slices.Clone(c.latents[0].Row(70)[:5]), c.latents[0].Row(99)[:5]...); !sameBits(out, want) {
			t.Errorf("one score far above all others: got %v, want that position's latent %v", out, want)
		}
	})
}
