package nn

import (
	"math"

	"github.com/moerack/moerack/model/config"
)

// RopeTable returns cos and sin of every rotary angle, interleaved as hal.Ops.Rope wants them: row p holds
// cos(p·f₀) sin(p·f₀) cos(p·f₁) sin(p·f₁) …, times YaRN's attention factor. Computed in float64 and rounded once.
// // (positions, qk_rope_head_dim)
func RopeTable(c *config.Config, positions int) []float32 {
	freqs := ropeFrequencies(c)
	m := 1.0
	if y := c.Rope; y != nil {
		m = yarnMScale(y.Factor, y.MScale) / yarnMScale(y.Factor, y.MScaleAllDim)
	}
	table := make([]float32, 0, positions*2*len(freqs))
	for p := range positions {
		for _, f := range freqs {
			sin, cos := math.Sincos(float64(p) * f)
			table = append(table, float32(cos*m), float32(sin*m))
		}
	}
	return table
}

// SoftmaxScale returns what attention scores are multiplied by: (nope+rope)^−½, under YaRN times the square of its mscale.
func SoftmaxScale(c *config.Config) float32 {
	s := 1 / math.Sqrt(float64(c.QKHeadDim()))
	if y := c.Rope; y != nil {
		m := yarnMScale(y.Factor, y.MScaleAllDim)
		s *= m * m
	}
	return float32(s)
}

// ropeFrequencies returns the angle per position of each pair: theta^(−2i/d), under YaRN blended with the same divided by the
// factor along a linear ramp between the dimensions that turn beta_fast and beta_slow times within the original length
// (Peng et al. 2023, arXiv 2309.00071, section 3.2; the published DeepSeek code). // (d/2)
func ropeFrequencies(c *config.Config) []float64 {
	d := float64(c.QKRopeHeadDim)
	freqs := make([]float64, c.QKRopeHeadDim/2)
	for i := range freqs {
		freqs[i] = math.Pow(c.RopeTheta, -2*float64(i)/d)
	}
	y := c.Rope
	if y == nil {
		return freqs
	}
	dim := func(turns float64) float64 { // the dimension that turns so often within the original length
		return d * math.Log(float64(y.OriginalMaxPositionEmbeddings)/(turns*2*math.Pi)) / (2 * math.Log(c.RopeTheta))
	}
	low := max(math.Floor(dim(y.BetaFast)), 0)
	high := min(math.Ceil(dim(y.BetaSlow)), d-1)
	if low == high {
		high += 0.001
	}
	for i, f := range freqs {
		ramp := min(max((float64(i)-low)/(high-low), 0), 1)
		freqs[i] = f*(1-ramp) + f/y.Factor*ramp
	}
	return freqs
}

// yarnMScale is YaRN's attention temperature: 0.1·m·ln(factor) + 1, and 1 where nothing is stretched.
func yarnMScale(factor, m float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*m*math.Log(factor) + 1
}
