package simd_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/kernels"
	"github.com/moerack/moerack/kernels/simd"
)

// eachTable runs f with the best of all instruction sets, then without the first of them, and so on to plain Go.
func eachTable(b *testing.B, f func(b *testing.B, k kernels.Table)) {
	b.Helper()
	names, last := simd.Names(), ""
	for i := range len(names) + 1 {
		k, _, err := simd.Select(names[:i])
		if err != nil {
			b.Fatal(err)
		}
		if k.Name == last { // the set that is off is not here
			continue
		}
		last = k.Name
		b.Run(k.Name, func(b *testing.B) { f(b, k) })
	}
}

// dense is a random matrix without a gap between its rows, as a device keeps them.
func dense(r *rand.Rand, rows, cols int) kernels.Mat {
	m := kernels.Mat{Data: make([]float32, rows*cols), Rows: rows, Cols: cols, Stride: cols}
	for i := range m.Data {
		m.Data[i] = float32(r.NormFloat64())
	}
	return m
}

func benchRand() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// BenchmarkMLAAttention has the heads and widths of DeepSeek-V2-Lite. Bytes are those of the cache rows, read once for each row.
func BenchmarkMLAAttention(b *testing.B) {
	a := kernels.MLAAttention{Heads: 16, Latent: 512, Rope: 64, BlockSize: 16, Scale: 0.07}
	for _, c := range []struct {
		name            string
		rows, positions int
		prefill         bool // of one sequence: row t at position t; else every row is the last of its own
	}{
		{"decode-1/512", 1, 512, false},
		{"decode-1/4096", 1, 4096, false},
		{"decode-8/512", 8, 512, false},
		{"decode-8/4096", 8, 4096, false},
		{"decode-16/512", 16, 512, false},
		{"decode-16/4096", 16, 4096, false},
		{"prefill-512", 512, 512, true},
	} {
		sequences := c.rows
		if c.prefill {
			sequences = 1
		}
		r, width := benchRand(), a.Latent+a.Rope
		blocks := c.positions / a.BlockSize
		cache, q, out := dense(r, sequences*c.positions, width), dense(r, c.rows, a.Heads*width), dense(r, c.rows, a.Heads*a.Latent)
		tables := kernels.Ints{Rows: sequences, Cols: blocks, Stride: blocks}
		for i := range sequences * blocks {
			tables.Data = append(tables.Data, int32(i))
		}
		seqs, positions, total := make([]int32, c.rows), make([]int32, c.rows), 0
		for t := range c.rows {
			seqs[t], positions[t] = int32(t), int32(c.positions-1)
			if c.prefill {
				seqs[t], positions[t] = 0, int32(t)
			}
			total += int(positions[t]) + 1
		}
		scratch := make([]float32, kernels.AttentionTile)
		b.Run(c.name, func(b *testing.B) {
			eachTable(b, func(b *testing.B, k kernels.Table) {
				b.SetBytes(int64(4 * total * width))
				for b.Loop() {
					k.MLAAttention(out, q, cache, tables, seqs, positions, a, scratch)
				}
				flops := 2 * float64(total) * float64(a.Heads*(width+a.Latent))
				b.ReportMetric(flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		})
	}
}

func BenchmarkRMSNorm(b *testing.B) {
	for _, cols := range []int{64, 2048} {
		r := benchRand()
		x, w, out := dense(r, 16, cols), dense(r, 1, cols), dense(r, 16, cols)
		b.Run(fmt.Sprintf("16x%d", cols), func(b *testing.B) {
			eachTable(b, func(b *testing.B, k kernels.Table) {
				b.SetBytes(int64(2 * 4 * 16 * cols))
				for b.Loop() {
					k.RMSNorm(out, x, w.Row(0), 1e-6)
				}
			})
		})
	}
}

func BenchmarkRope(b *testing.B) {
	r := benchRand()
	rope := kernels.Rope{Heads: 16, Dim: 64, InStride: 192, InOffset: 128, OutStride: 576, OutOffset: 512}
	x, table, out, positions := dense(r, 16, 16*192), dense(r, 512, 64), dense(r, 16, 16*576), make([]int32, 16)
	for i := range positions {
		positions[i] = int32(17 * i)
	}
	eachTable(b, func(b *testing.B, k kernels.Table) {
		b.SetBytes(2 * 4 * 16 * 16 * 64)
		for b.Loop() {
			k.Rope(out, x, positions, table, rope)
		}
	})
}

func BenchmarkCombine(b *testing.B) {
	const rows, picks, hidden = 16, 6, 2048
	r := benchRand()
	y, weights, shared, out := dense(r, rows*picks, hidden), dense(r, rows, picks), dense(r, rows, hidden), dense(r, rows, hidden)
	index := kernels.Ints{Rows: rows, Cols: picks, Stride: picks}
	for _, i := range r.Perm(rows * picks) {
		index.Data = append(index.Data, int32(i))
	}
	eachTable(b, func(b *testing.B, k kernels.Table) {
		b.SetBytes(4 * rows * hidden * (picks + 2))
		for b.Loop() {
			k.Combine(out, y, index, weights, shared)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	r := benchRand()
	x, y, out := dense(r, 16, 2048), dense(r, 16, 2048), dense(r, 16, 2048)
	eachTable(b, func(b *testing.B, k kernels.Table) {
		b.SetBytes(3 * 4 * 16 * 2048)
		for b.Loop() {
			k.Add(out, x, y)
		}
	})
}

func BenchmarkFinite(b *testing.B) {
	x := dense(benchRand(), 1, 2048).Row(0)
	eachTable(b, func(b *testing.B, k kernels.Table) {
		b.SetBytes(4 * 2048)
		for b.Loop() {
			if !k.Finite(x) {
				b.Fatal("random numbers are not finite")
			}
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	for name, c := range map[string]struct {
		experts, picks int
		r              kernels.Router
	}{
		"v2lite": {64, 6, kernels.Router{Method: kernels.Greedy, Groups: 1, Scale: 1}},
		"v3":     {256, 8, kernels.Router{Method: kernels.NoAuxTC, Sigmoid: true, Groups: 8, TopGroups: 4, Normalize: true, Scale: 2.5}},
	} {
		const rows = 16
		r := benchRand()
		logits, bias, weights := dense(r, rows, c.experts), dense(r, 1, c.experts).Row(0), dense(r, rows, c.picks)
		ids := kernels.Ints{Data: make([]int32, rows*c.picks), Rows: rows, Cols: c.picks, Stride: c.picks}
		scratch := make([]float32, kernels.RouterScratch(c.experts, c.r.Groups))
		b.Run(name, func(b *testing.B) {
			eachTable(b, func(b *testing.B, k kernels.Table) {
				b.SetBytes(int64(4 * rows * c.experts))
				for b.Loop() {
					k.Route(ids, weights, logits, bias, nil, c.r, scratch)
				}
			})
		})
	}
}
