package sample

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var inf = float32(math.Inf(1))

func greedy() Params { return Params{TopP: 1, Logprobs: NoLogprobs} }

func randomLogits(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(math.Round(r.NormFloat64()*8) / 4) // coarse, so that ties happen
	}
	return out
}

// order is the plain definition of "best first, ties by the lower id".
func order(logits []float32) []int32 {
	ids := make([]int32, len(logits))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortStableFunc(ids, func(a, b int32) int {
		switch {
		case logits[a] > logits[b]:
			return -1
		case logits[a] < logits[b]:
			return 1
		}
		return 0
	})
	return ids
}

func softmax(logits []float32, temperature float64) []float64 {
	most := math.Inf(-1)
	for _, l := range logits {
		most = max(most, float64(l))
	}
	out, sum := make([]float64, len(logits)), 0.0
	for i, l := range logits {
		out[i] = math.Exp((float64(l) - most) / temperature)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

func TestGreedy(t *testing.T) {
	var s Sampler
	for _, tt := range []struct {
		logits []float32
		want   int32
	}{
		{[]float32{1}, 0},
		{[]float32{-3, -1, -2}, 1},
		{[]float32{0, 7, 7, 7}, 1},
		{[]float32{-inf, -inf, 2}, 2},
	} {
		if got, lp := s.Sample(tt.logits, greedy(), 0); got != tt.want || lp != nil {
			t.Errorf("Sample(%v) = %d, %v, want %d, nil", tt.logits, got, lp, tt.want)
		}
	}
}

func TestTinyTemperatureIsGreedy(t *testing.T) {
	var s Sampler
	logits := []float32{-80, 30, 29.9, 30, -90} // two best: both may come, nothing else
	p := greedy()
	for _, p.Temperature = range []float32{1e-6, math.SmallestNonzeroFloat32} {
		seen := map[int32]bool{}
		for i := range 200 {
			id, _ := s.Sample(logits, p, i)
			seen[id] = true
		}
		if len(seen) != 2 || !seen[1] || !seen[3] {
			t.Errorf("temperature %v: tokens %v, want 1 and 3", p.Temperature, seen)
		}
	}
}

func TestNotFiniteDoesNotPanic(t *testing.T) {
	nan := float32(math.NaN())
	var s Sampler
	for _, logits := range [][]float32{{}, {nan}, {nan, nan, 1}, {1, inf, nan}, {-inf, -inf}, {inf, inf, 0}} {
		for _, p := range []Params{greedy(), {Temperature: 1, TopP: 1, Logprobs: 2}, {Temperature: 1, TopP: 0.5, TopK: 2, Logprobs: 0}, {Temperature: 1, TopP: 0.5, Logprobs: -1}} {
			if id, _ := s.Sample(logits, p, 3); id < 0 || int(id) >= max(1, len(logits)) {
				t.Errorf("Sample(%v, %+v) = %d: no token", logits, p, id)
			}
		}
	}
}

// TestChiSquare compares frequencies with the softmax. 0.999 quantiles of chi-square from NIST/SEMATECH e-Handbook of
// Statistical Methods, section 1.3.6.7.4.
func TestChiSquare(t *testing.T) {
	const draws, limit9 = 40000, 27.877 // 9 degrees of freedom
	logits := []float32{0, 0.5, -1, 2, 1.25, -0.5, 0, 1, -2, 0.75}
	for _, tt := range []struct {
		name string
		draw func(s *Sampler, i int) int32
	}{
		{"positions in a row", func(s *Sampler, i int) int32 {
			id, _ := s.Sample(logits, Params{Temperature: 0.8, TopP: 1, Seed: 7, Logprobs: -1}, i)
			return id
		}},
		{"seeds in a row", func(s *Sampler, i int) int32 {
			id, _ := s.Sample(logits, Params{Temperature: 0.8, TopP: 1, Seed: uint64(i), Logprobs: -1}, 11)
			return id
		}},
		{"seed and position together", func(s *Sampler, i int) int32 {
			id, _ := s.Sample(logits, Params{Temperature: 0.8, TopP: 1, Seed: uint64(i), Logprobs: -1}, i)
			return id
		}},
	} {
		var s Sampler
		counts := make([]float64, len(logits))
		for i := range draws {
			counts[tt.draw(&s, i)]++
		}
		chi := 0.0
		for i, p := range softmax(logits, float64(float32(0.8))) {
			d := counts[i] - p*draws
			chi += d * d / (p * draws)
		}
		if chi > limit9 {
			t.Errorf("%s: chi-square %.1f above %.1f: counts %v", tt.name, chi, limit9, counts)
		}
	}
}

// TestUniformIsPinned holds the generator to its values: a change of any of them changes every seeded answer.
// The values were computed by an independent implementation of the definition in Python.
func TestUniformIsPinned(t *testing.T) {
	for _, tt := range []struct {
		seed     uint64
		position int
		want     float64
	}{
		{0, 0, 0.6524484863740322},
		{0, 1, 0.7012121095215252},
		{1, 0, 0.36818951565166946},
		{42, 17, 0.44715182605341497},
		{18446744073709551615, 1023, 0.6994906847344269},
	} {
		if got := Uniform(tt.seed, tt.position); got != tt.want {
			t.Errorf("Uniform(%d, %d) = %v, want %v", tt.seed, tt.position, got, tt.want)
		}
	}
}

// TestSupport draws many tokens of random rows and compares the set that can come with the plain definition of top-k, then
// top-p.
func TestSupport(t *testing.T) {
	const seed = 20240611
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	var s Sampler
	for range 150 {
		logits := randomLogits(r, 1+r.IntN(40))
		p := Params{Temperature: 0.25 + 2*r.Float32(), TopP: 0.05 + 0.95*r.Float32(), TopK: r.IntN(12) - 1, Seed: r.Uint64(), Logprobs: NoLogprobs}
		if r.IntN(4) == 0 {
			p.TopP = 1
		}
		kept := order(logits)
		if p.TopK > 0 {
			kept = kept[:min(p.TopK, len(kept))]
		}
		var cut []float32
		for _, id := range kept {
			cut = append(cut, logits[id])
		}
		probs, sum := softmax(cut, float64(p.Temperature)), 0.0
		for n, q := range probs {
			if p.TopP < 1 && n > 0 && sum >= float64(p.TopP) {
				kept = kept[:n]
				break
			}
			sum += q
		}
		seen := map[int32]bool{}
		for i := range 300 {
			id, _ := s.Sample(logits, p, i)
			if !slices.Contains(kept, id) {
				t.Fatalf("token %d of %v with %+v: outside of %v", id, logits, p, kept)
			}
			seen[id] = true
		}
		if !seen[kept[0]] {
			t.Errorf("best token %d never came in 300 draws of %v with %+v", kept[0], logits, p)
		}
	}
}

func TestTies(t *testing.T) {
	var s Sampler
	logits := []float32{1, 3, 3, 3, 1}
	for _, tt := range []struct {
		p    Params
		want []int32
	}{
		{Params{Temperature: 1, TopP: 1, TopK: 2, Logprobs: -1}, []int32{1, 2}},
		{Params{Temperature: 1, TopP: 0.3, TopK: 3, Logprobs: -1}, []int32{1}},
		{Params{Temperature: 1, TopP: 0.4, Logprobs: -1}, []int32{1, 2}},
	} {
		var seen []int32
		for i := range 100 {
			if id, _ := s.Sample(logits, tt.p, i); !slices.Contains(seen, id) {
				seen = append(seen, id)
			}
		}
		slices.Sort(seen)
		if !slices.Equal(seen, tt.want) {
			t.Errorf("%+v: tokens %v, want %v", tt.p, seen, tt.want)
		}
	}
}

// TestTruncationThatRemovesNothing draws the same tokens with switches that keep everything, and greedy equals top-k 1.
func TestTruncationThatRemovesNothing(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	var s, fresh Sampler
	for i := range 200 {
		logits := randomLogits(r, 1+r.IntN(50))
		p := Params{Temperature: 0.7, TopP: 1, Seed: r.Uint64(), Logprobs: NoLogprobs}
		want, _ := fresh.Sample(logits, p, i)
		p.TopK = len(logits)
		if got, _ := s.Sample(logits, p, i); got != want {
			t.Errorf("top_k of the whole vocabulary: %d, want %d", got, want)
		}
		p.TopK, p.TopP = 0, math.Nextafter32(1, 0)
		if got, _ := s.Sample(logits, p, i); got != want && softmax(logits, 0.7)[want] > 1e-6 {
			t.Errorf("top_p next to 1: %d, want %d", got, want)
		}
		p.TopK, p.TopP = 1, 1
		one, _ := s.Sample(logits, p, i)
		if best, _ := fresh.Sample(logits, greedy(), i); one != best {
			t.Errorf("top_k 1: %d, greedy %d", one, best)
		}
	}
}

func TestLogprobs(t *testing.T) {
	const seed = 77
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 2))
	var s Sampler
	for i := range 100 {
		logits := randomLogits(r, 1+r.IntN(60))
		k := r.IntN(len(logits) + 1)
		p := Params{Temperature: float32(i % 3), TopP: 0.9, TopK: 5, Seed: 3, Logprobs: k}
		id, lp := s.Sample(logits, p, i)
		probs, want := softmax(logits, 1), order(logits)
		if lp == nil || lp.Token != id || len(lp.Top) != k {
			t.Fatalf("log-probabilities %+v of token %d, want it and %d best", lp, id, k)
		}
		if d := math.Abs(float64(lp.Logprob.Logprob) - math.Log(probs[id])); d > 1e-5 {
			t.Errorf("log-probability of %d: off by %g", id, d)
		}
		for j, top := range lp.Top {
			if d := math.Abs(float64(top.Logprob) - math.Log(probs[want[j]])); top.Token != want[j] || d > 1e-5 {
				t.Errorf("best %d: %+v, want token %d, %g", j, top, want[j], math.Log(probs[want[j]]))
			}
		}
	}
}

func TestSampleAllocates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	logits := randomLogits(r, 5000)
	var s Sampler
	for _, p := range []Params{greedy(), {Temperature: 1, TopP: 1, Logprobs: -1}, {Temperature: 1, TopP: 0.9, TopK: 40, Logprobs: -1}, {Temperature: 1, TopP: 0.9, Logprobs: -1}} {
		s.Sample(logits, Params{Temperature: 1, TopP: 1, TopK: 4999, Logprobs: -1}, 0) // grow the scratch
		if n := testing.AllocsPerRun(20, func() { s.Sample(logits, p, 9) }); n != 0 {
			t.Errorf("%+v: %v allocations for a token, want 0", p, n)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	logits := make([]float32, 129280) // the vocabulary of DeepSeek-V3
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	for _, bb := range []struct {
		name string
		p    Params
	}{
		{"greedy", greedy()},
		{"full", Params{Temperature: 1, TopP: 1, Logprobs: -1}},
		{"top-k", Params{Temperature: 1, TopP: 1, TopK: 50, Logprobs: -1}},
		{"top-p", Params{Temperature: 1, TopP: 0.9, Logprobs: -1}},
		{"logprobs", Params{TopP: 1, Logprobs: 5}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			var s Sampler
			for i := range b.N {
				s.Sample(logits, bb.p, i)
			}
		})
	}
}
