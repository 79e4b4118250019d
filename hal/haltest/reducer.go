package haltest

import (
	"math"
	"math/rand/v2"

	"github.com/moerack/moerack/hal"
)

// testReducer holds a device that offers hal.Reducer to what it says, over rows of any length, with NaN and infinities where maxima are
// wanted.
func testReducer(r *rig) {
	d, ok := r.dev.(hal.Reducer)
	if !ok {
		r.Skip("the device is no hal.Reducer")
	}
	const seed = 17
	r.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 0))
	for n := 1; n < 400; n += 1 + g.IntN(9) {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(g.NormFloat64() * 4)
		}
		most := x[0]
		for _, v := range x {
			most = max(most, v)
		}
		out := make([]float32, (n+hal.ReduceBlock-1)/hal.ReduceBlock)
		block := func(b int) []float32 { return x[b*hal.ReduceBlock : min((b+1)*hal.ReduceBlock, n)] }
		d.BlockSumExp(out, x, most, 0.7)
		for b, got := range out {
			want := 0.0
			for _, v := range block(b) {
				want += math.Exp(float64((v - most) * 0.7))
			}
			if math.Abs(float64(got)-want) > 2e-6*want {
				r.Errorf("%d numbers: sum %g of block %d, want %g", n, got, b, want)
			}
		}
		x[g.IntN(n)], x[g.IntN(n)] = float32(math.Inf(-1)), float32(math.NaN())
		d.BlockMax(out, x)
		for b, got := range out {
			want := float32(math.Inf(-1))
			for _, v := range block(b) {
				if v > want {
					want = v
				}
			}
			if got != want {
				r.Errorf("%d numbers: largest %g of block %d, want %g", n, got, b, want)
			}
		}
	}
}
