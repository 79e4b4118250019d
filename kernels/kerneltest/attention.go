package kerneltest

import (
	"fmt"
	"math"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// testAttention compares paged latent attention with a plain softmax, over lengths around the tile's borders, and demands the
// same bits for every block size, block order and batch.
func testAttention(t *testing.T, k kernels.Table) {
	g := newGen(t, 10)
	const tile = kernels.AttentionTile
	for _, n := range []int{1, 2, 7, tile - 1, tile, tile + 1, 2*tile + 3} {
		a := kernels.MLAAttention{Heads: 3, Latent: 9, Rope: 4, Scale: 0.3}
		width := a.Latent + a.Rope
		latents := g.mat(n, width) // one row for each position
		positions := []int32{int32(n - 1), 0, int32(n / 2)}
		q := g.mat(len(positions)+1, a.Heads*width)
		var first kernels.Mat
		for _, blockSize := range []int{1, 4, 16, tile + 1} {
			a.BlockSize = blockSize
			out := runPaged(k, g, q, latents, positions, a)
			checkGuards(t, "MLAAttention", out)
			for r, p := range positions {
				for h := range a.Heads {
					want, terms := attention64(q.Row(r)[h*width:][:width], latents, int(p)+1, a)
					for i := range want {
						name := fmt.Sprintf("%d positions, blocks of %d: row %d head %d element %d", n, blockSize, r, h, i)
						near(t, name, out.Row(r)[h*a.Latent+i], want[i], terms[i], 1e-5)
					}
				}
			}
			for _, v := range out.Row(len(positions)) {
				if v != 0 {
					t.Fatalf("a row without a sequence gives %g, want 0", v)
				}
			}
			if first.Data == nil {
				first = out
			}
			for r := range positions {
				same(t, fmt.Sprintf("blocks of %d", blockSize), out.Row(r), first.Row(r))
				alone := runPaged(k, g, q.Sub(r, r+1), latents, positions[r:r+1], a)
				same(t, "alone", out.Row(r), alone.Row(0))
			}
		}
	}
}

// runPaged scatters the latents over blocks in random order, with garbage elsewhere, and attends. If q has a row more than there are
// positions, that row is padding.
func runPaged(k kernels.Table, g gen, q, latents kernels.Mat, positions []int32, a kernels.MLAAttention) kernels.Mat {
	need := (latents.Rows + a.BlockSize - 1) / a.BlockSize
	order := g.Perm(need + 2)
	cache := guarded((need+2)*a.BlockSize, latents.Cols)
	for i := range cache.Rows {
		for j := range cache.Row(i) {
			cache.Row(i)[j] = float32(math.NaN())
		}
	}
	tables := kernels.Ints{Rows: 2, Cols: need, Stride: need, Data: make([]int32, 2*need)}
	for i := range need {
		tables.Row(1)[i] = int32(order[i])
	}
	for p := range latents.Rows {
		copy(cache.Row(order[p/a.BlockSize]*a.BlockSize+p%a.BlockSize), latents.Row(p))
	}
	seqs, pos := make([]int32, q.Rows), make([]int32, q.Rows)
	for r := range seqs {
		seqs[r] = -1
		if r < len(positions) {
			seqs[r], pos[r] = 1, positions[r]
		}
	}
	out := guarded(q.Rows, a.Heads*a.Latent)
	k.MLAAttention(out, q, cache, tables, seqs, pos, a, make([]float32, kernels.AttentionTile))
	return out
}

// attention64 is latent attention of a head: latents are keys, and their first elements values.
func attention64(q []float32, latents kernels.Mat, n int, a kernels.MLAAttention) (out, terms []float64) {
	return softmax64(q, latents, latents.Columns(0, a.Latent), n, float64(a.Scale))
}
