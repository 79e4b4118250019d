package kerneltest

import (
	"math"
	"testing"

	"github.com/moerack/moerack/kernels"
)

// testBlocks looks at blocks of every length, at numbers that are not finite, and at scales up to the largest.
func testBlocks(t *testing.T, k kernels.Table) {
	g := newGen(t, 31)
	inf := float32(math.Inf(1))
	for n := 1; n < 3*kernels.ReduceBlock+2; n++ {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(g.NormFloat64() * 5)
		}
		for range n / 9 {
			x[g.IntN(n)] = []float32{-inf, float32(math.NaN()), 0, -80}[g.IntN(4)]
		}
		guard := guarded(1, kernels.Blocks(n))
		out := guard.Row(0)
		k.BlockMax(out, x)
		checkGuards(t, "BlockMax", guard)
		want := make([]float32, len(out))
		most := -inf
		for b := range want {
			want[b] = -inf
			for _, v := range x[b*kernels.ReduceBlock : min((b+1)*kernels.ReduceBlock, n)] {
				if v > want[b] {
					want[b] = v
				}
			}
			most = max(most, want[b])
		}
		same(t, "BlockMax", out, want)
		for i, v := range x {
			if v != v {
				x[i] = most // what is not finite is refused before
			}
		}
		if most == -inf {
			continue
		}
		for _, scale := range []float32{1, 0.3, 40, math.MaxFloat32} {
			k.BlockSumExp(out, x, most, scale)
			checkGuards(t, "BlockSumExp", guard)
			for b, got := range out {
				sum := 0.0
				for _, v := range x[b*kernels.ReduceBlock : min((b+1)*kernels.ReduceBlock, n)] {
					sum += math.Exp(float64((v - most) * scale))
				}
				if off := math.Abs(float64(got) - sum); off > 2e-6*sum+1e-42 {
					t.Errorf("n %d, block %d, scale %g: sum %g, want %g", n, b, scale, got, sum)
				}
			}
		}
	}
}
