package ref

import (
	"math"

	"github.com/moerack/moerack/kernels"
)

// BlockMax sets out[b] to the largest element of block b of x, without NaN. // out (Blocks(V)), x (V)
func BlockMax(out, x []float32) {
	for b := range out {
		most := float32(math.Inf(-1))
		for _, v := range block(x, b) {
			if v > most {
				most = v
			}
		}
		out[b] = most
	}
}

// BlockSumExp sets out[b] = Σ exp((x[i] − most) · scale) over block b of x. // out (Blocks(V)), x (V)
func BlockSumExp(out, x []float32, most, scale float32) {
	for b := range out {
		sum := 0.0
		for _, v := range block(x, b) {
			sum += math.Exp(float64((v - most) * scale))
		}
		out[b] = float32(sum)
	}
}

func block(x []float32, b int) []float32 {
	from := b * kernels.ReduceBlock
	return x[from:min(from+kernels.ReduceBlock, len(x))]
}
