//go:build unix

package bench_test

import (
	"math/rand/v2"
	"testing"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/hal/cpu"
	"github.com/moerack/moerack/model/sample"
	"github.com/moerack/moerack/test/rig"
)

// BenchmarkSample chooses a token among the 129,280 of DeepSeek-V3's vocabulary.
func BenchmarkSample(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	logits := make([]float32, 129280)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	dev, err := cpu.Open(cpu.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rig.Close(b, dev)
	reducer, _ := dev.(hal.Reducer)
	for _, bb := range []struct {
		name string
		p    sample.Params
	}{
		{"greedy", sample.Params{Logprobs: sample.NoLogprobs}},
		{"all", sample.Params{Temperature: 1, TopP: 1, Logprobs: sample.NoLogprobs}},
		{"top_p", sample.Params{Temperature: 1, TopP: 0.9, Logprobs: sample.NoLogprobs}},
		{"top_k", sample.Params{Temperature: 1, TopP: 1, TopK: 50, Logprobs: sample.NoLogprobs}},
		{"logprobs", sample.Params{Logprobs: 5}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			s := sample.Sampler{Reducer: reducer}
			b.SetBytes(int64(4 * len(logits)))
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				s.Sample(logits, bb.p, i)
				i++
			}
		})
	}
}
