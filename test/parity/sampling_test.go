package parity_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/test/rig"
)

// counted counts the passes of a Reducer.
type counted struct {
	hal.Reducer
	maxima, sums int
}

func (c *counted) BlockMax(out, x []float32) { c.maxima++; c.Reducer.BlockMax(out, x) }

func (c *counted) BlockSumExp(out, x []float32, most, scale float32) {
	c.sums++
	c.Reducer.BlockSumExp(out, x, most, scale)
}

// TestSamplingOnDevice: tokens and log-probabilities that a device helps to find are those of plain loops; only a draw within rounding
// of two tokens' border may fall to the other side.
func TestSamplingOnDevice(t *testing.T) {
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rig.Close(t, dev)
	reducer, ok := dev.(hal.Reducer)
	if !ok {
		t.Fatal("the CPU device is no hal.Reducer")
	}
	c := &counted{Reducer: reducer}
	fast, plain := sample.Sampler{Reducer: c}, sample.Sampler{}
	const seed, draws = 11, 400
	t.Logf("seed %d", seed)
	g := rand.New(rand.NewPCG(seed, 0))
	ways := []sample.Params{
		{Temperature: 0, Logprobs: sample.NoLogprobs},
		{Temperature: 0.7, TopP: 1, Logprobs: sample.NoLogprobs},
		{Temperature: 1, TopP: 0.9, Logprobs: sample.NoLogprobs},
		{Temperature: 1.3, TopP: 1, TopK: 40, Logprobs: sample.NoLogprobs},
		{Temperature: 1, TopP: 0.95, TopK: 1000, Logprobs: 5},
	}
	others := 0
	for i := range draws {
		logits := make([]float32, 1001+g.IntN(20000))
		for j := range logits {
			logits[j] = float32(math.Round(g.NormFloat64()*30) / 10) // with ties
		}
		p := ways[i%len(ways)]
		p.Seed = uint64(i)
		got, gotLP := fast.Sample(logits, p, i)
		want, wantLP := plain.Sample(logits, p, i)
		if got != want {
			others++
			continue
		}
		if wantLP == nil {
			continue
		}
		near := func(a, b sample.Logprob) bool {
			return a.Token == b.Token && math.Abs(float64(a.Logprob-b.Logprob)) < 4e-6
		}
		if !near(gotLP.Logprob, wantLP.Logprob) {
			t.Errorf("draw %d: %+v, want %+v", i, gotLP.Logprob, wantLP.Logprob)
		}
		for k := range wantLP.Top {
			if !near(gotLP.Top[k], wantLP.Top[k]) {
				t.Errorf("draw %d: place %d is %+v, want %+v", i, k, gotLP.Top[k], wantLP.Top[k])
			}
		}
	}
	if others > 1 {
		t.Errorf("%d of %d draws are other tokens", others, draws)
	}
	if want := draws/5*2 + draws/5; c.maxima != draws || c.sums != want { // top-p alone, no truncation, log-probabilities
		t.Errorf("the device made %d passes for maxima and %d for sums, want %d and %d", c.maxima, c.sums, draws, want)
	}
}
