package ref

import (
	"math"

	"github.com/moerack/moerack/kernels"
)

// AttendKeys is attention of one head in its plain form, with the online softmax of MLAAttention over the same tiles. state holds each
// row's largest score, then each row's sum of weights. // out (T, Value), q (T, C), keys (P, C), values (P, Value), positions (T), state (2·T)
func AttendKeys(out, q, keys, values kernels.Mat, positions []int32, from int, scale float32, state []float32) {
	var scores [kernels.AttentionTile]float32
	tops, sums := state[:len(positions)], state[len(positions):]
	for t, position := range positions {
		n := min(int(position)+1-from, keys.Rows)
		to := out.Row(t)
		if from == 0 {
			clear(to)
			tops[t], sums[t] = float32(math.Inf(-1)), 0
		}
		for first := 0; first < n; first += kernels.AttentionTile {
			last := min(first+kernels.AttentionTile, n)
			top := tops[t]
			for p := first; p < last; p++ {
				scores[p-first] = dotF32(keys.Row(p), q.Row(t)) * scale
				top = max(top, scores[p-first])
			}
			keep := exp(tops[t] - top) // 0 for the first tile
			tops[t] = top
			sums[t] *= keep
			for i := range to {
				to[i] *= keep
			}
			weights := scores[:last-first]
			for i, s := range weights {
				weights[i] = exp(s - top)
				sums[t] += weights[i]
			}
			addWeighted(to, values.Sub(first, last), weights)
		}
		if n > 0 && int(position) < from+keys.Rows {
			for i := range to {
				to[i] /= sums[t]
			}
		}
	}
}
