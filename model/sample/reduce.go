package sample

import (
	"math"

	"github.com/moerack/moerack/hal"
)

// blocks returns how many blocks n logits make.
func blocks(n int) int { return (n + hal.ReduceBlock - 1) / hal.ReduceBlock }

// block returns the logits of block b.
func block(logits []float32, b int) []float32 {
	from := b * hal.ReduceBlock
	return logits[from:min(from+hal.ReduceBlock, len(logits))]
}

// plain is the Reducer of a Sampler that got none.
type plain struct{}

func (plain) BlockMax(out, x []float32) {
	for b := range out {
		out[b] = float32(math.Inf(-1))
		for _, v := range block(x, b) {
			if v > out[b] {
				out[b] = v
			}
		}
	}
}

func (plain) BlockSumExp(out, x []float32, most, scale float32) {
	for b := range out {
		sum := 0.0
		for _, v := range block(x, b) {
			sum += math.Exp(float64((v - most) * scale))
		}
		out[b] = float32(sum)
	}
}
