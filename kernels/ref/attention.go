package ref

import (
	"math"

	"github.com/moerack/moerack/kernels"
)

// MLAAttention is absorbed multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1.2): queries meet the cached
// latent rows directly, and the weighted sum of latents is what comes out; the value projection follows elsewhere.
//
// Online softmax (Milakov and Gimelshein 2018) over tiles of kernels.AttentionTile positions from position 0: with m the largest
// score so far, a tile rescales what is there by exp(m_old − m_new) and adds its own. Scratch holds one tile of scores.
func MLAAttention(out, q, cache kernels.Mat, tables kernels.Ints, seqs, positions []int32, a kernels.MLAAttention, scratch []float32) {
	width := a.Latent + a.Rope
	for t, seq := range seqs {
		if seq < 0 {
			clear(out.Row(t))
			continue
		}
		blocks, n := tables.Row(int(seq)), int(positions[t])+1
		for h := range a.Heads {
			attend(
				out.Row(t)[h*a.Latent:(h+1)*a.Latent], q.Row(t)[h*width:(h+1)*width],
				cache, blocks, n, a.BlockSize, a.Scale, scratch[:kernels.AttentionTile])
		}
	}
}

// attend is one head of one row over n positions. // to (Latent), q (Latent+Rope), scores (AttentionTile)
func attend(to, q []float32, cache kernels.Mat, blocks []int32, n, blockSize int, scale float32, scores []float32) {
	clear(to)
	top, sum := float32(math.Inf(-1)), float32(0)
	for first := 0; first < n; first += kernels.AttentionTile {
		last := min(first+kernels.AttentionTile, n)
		best := top
		for p := first; p < last; {
			rows, count := run(cache, blocks, p, last, blockSize)
			for i := range count {
				s := dotF32(rows.Row(i), q) * scale
				scores[p-first+i] = s
				best = max(best, s)
			}
			p += count
		}
		if best != top {
			keep := exp(top - best) // 0 for the first tile
			sum *= keep
			for i := range to {
				to[i] *= keep
			}
			top = best
		}
		for p := first; p < last; {
			rows, count := run(cache, blocks, p, last, blockSize)
			weights := scores[p-first:][:count]
			for i, s := range weights {
				weights[i] = exp(s - top)
				sum += weights[i]
			}
			addWeighted(to, rows, weights)
			p += count
		}
	}
	for i := range to {
		to[i] /= sum
	}
}

// addWeighted adds Σᵢ weights[i]·rows[i] to y, one row after the other: ((y + w₀·r₀) + w₁·r₁) + …, four in a pass. // rows (len(weights), ≥ len(y))
func addWeighted(y []float32, rows kernels.Mat, weights []float32) {
	first := 0
	for ; first+4 <= len(weights); first += 4 {
		w0, w1, w2, w3 := weights[first], weights[first+1], weights[first+2], weights[first+3]
		r0, r1, r2, r3 := rows.Row(first)[:len(y)], rows.Row(first + 1)[:len(y)], rows.Row(first + 2)[:len(y)], rows.Row(first + 3)[:len(y)]
		for i, v := range y {
			y[i] = (((v + float32(w0*r0[i])) + float32(w1*r1[i])) + float32(w2*r2[i])) + float32(w3*r3[i])
		}
	}
	for i := first; i < len(weights); i++ {
		w, row := weights[i], rows.Row(i)[:len(y)]
		for j, v := range row {
			y[j] += float32(w * v)
		}
	}
}

// run returns the cache rows of positions from p on that lie in one block and before last, and how many they are.
func run(cache kernels.Mat, blocks []int32, p, last, blockSize int) (kernels.Mat, int) {
	offset := p % blockSize
	count := min(blockSize-offset, last-p)
	first := int(blocks[p/blockSize])*blockSize + offset
	return cache.Sub(first, first+count), count
}
