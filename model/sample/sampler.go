package sample

import (
	"math"
	"slices"

	"github.com/moerack/moerack/hal"
)

// Sampler chooses tokens. It holds scratch memory only, so one is used by one goroutine at a time; its answers do not depend
// on what it was used for before. Without log-probabilities it allocates nothing once it has seen the vocabulary.
// The zero value is ready.
type Sampler struct {
	Reducer hal.Reducer // what passes over the vocabulary; nil: plain loops

	rank   ranking
	maxima []float32 // of the blocks
	sums   []float32 // of the blocks' weights
	kept   []int32   // ids that truncation left, ascending
	mass   []float64 // their weights
}

// Sample chooses the token for a position from its logits // (vocab), which are only read. p has passed Validate. The order
// of the steps is vLLM's: temperature, top-k, then top-p over what top-k left. The caller has checked that the logits are
// finite; if they are not, the answer is some token. It returns the log-probabilities that p asks for, else nil.
func (s *Sampler) Sample(logits []float32, p Params, position int) (int32, *Logprobs) {
	if len(logits) == 0 {
		return 0, nil
	}
	if s.Reducer == nil {
		s.Reducer = plain{}
	}
	n := blocks(len(logits))
	s.maxima = slices.Grow(s.maxima[:0], n)[:n]
	s.Reducer.BlockMax(s.maxima, logits)
	best := s.argmax(logits)
	token := best
	if p.Temperature > 0 {
		token = s.draw(logits, best, p, position)
	}
	if p.Logprobs < 0 {
		return token, nil
	}
	return token, s.logprobs(logits, best, token, p.Logprobs)
}

// argmax returns the lowest id of the largest logit.
func (s *Sampler) argmax(logits []float32) int32 {
	best := 0
	for b, most := range s.maxima {
		if most > s.maxima[best] {
			best = b
		}
	}
	for i, l := range block(logits, best) {
		if l == s.maxima[best] {
			return int32(best*hal.ReduceBlock + i)
		}
	}
	return 0 // no number is there
}

// sum returns Σ exp((logit − most)·scale), and leaves the sums of blocks in s.sums.
func (s *Sampler) sum(logits []float32, most float32, scale float64) (sum float64) {
	s.sums = slices.Grow(s.sums[:0], len(s.maxima))[:len(s.maxima)]
	s.Reducer.BlockSumExp(s.sums, logits, most, float32(min(scale, math.MaxFloat32)))
	for _, b := range s.sums {
		sum += float64(b)
	}
	return sum
}

// draw samples by inversion: the kept tokens in ascending order of id, so that truncation that removes nothing changes
// nothing.
func (s *Sampler) draw(logits []float32, best int32, p Params, position int) int32 {
	w := weights{logits: logits, most: float64(logits[best]), temperature: float64(p.Temperature)}
	u := Uniform(p.Seed, position)
	if truncated := p.TopK > 0 && p.TopK < len(logits) || p.TopP > 0 && p.TopP < 1; !truncated {
		return s.drawAny(&w, best, u)
	}
	s.truncate(&w, p)
	s.mass = s.mass[:0]
	var total, sum float64
	for _, id := range s.kept {
		m := w.of(id)
		s.mass = append(s.mass, m)
		total += m
	}
	for i, m := range s.mass {
		if sum += m; sum > u*total {
			return s.kept[i]
		}
	}
	return best
}

// drawAny draws among all tokens: the block first, then the token in it.
func (s *Sampler) drawAny(w *weights, best int32, u float64) int32 {
	rest := u * s.sum(w.logits, w.logits[best], 1/w.temperature)
	for b, sum := range s.sums {
		if rest -= float64(sum); rest >= 0 {
			continue
		}
		rest += float64(sum)
		last := best
		for i := range block(w.logits, b) {
			id := int32(b*hal.ReduceBlock + i)
			m := w.of(id)
			if m > 0 {
				last = id
			}
			if rest -= m; rest < 0 {
				return id
			}
		}
		return last // the sum of the block is a little larger than that of its tokens
	}
	return best // only rounding, or logits that are not finite, lead here
}

// truncate fills s.kept with the ids that top-k and top-p keep.
func (s *Sampler) truncate(w *weights, p Params) {
	s.rank.fill(w.logits, s.maxima)
	s.kept = s.kept[:0]
	k := len(w.logits)
	if p.TopK > 0 {
		k = min(k, p.TopK)
	}
	if p.TopP <= 0 || p.TopP >= 1 {
		for range k {
			s.kept = append(s.kept, s.rank.next())
		}
		slices.Sort(s.kept)
		return
	}
	var total float64
	if k == len(w.logits) {
		total = s.sum(w.logits, float32(w.most), 1/w.temperature)
	} else {
		for range k {
			id := s.rank.next()
			total += w.of(id)
			s.kept = append(s.kept, id)
		}
	}
	s.nucleus(w, total*float64(p.TopP), k)
	slices.Sort(s.kept)
}

// nucleus keeps a token as long as those better than it weigh less than enough: at least one, at most k. What top-k took
// already lies in s.kept from best to worst; otherwise ids come from the ranking.
func (s *Sampler) nucleus(w *weights, enough float64, k int) {
	var sum float64
	if len(s.kept) > 0 {
		n := 1
		for sum = w.of(s.kept[0]); n < len(s.kept) && sum < enough; n++ {
			sum += w.of(s.kept[n])
		}
		s.kept = s.kept[:n]
		return
	}
	for range k {
		id := s.rank.next()
		s.kept = append(s.kept, id)
		if sum += w.of(id); !(sum < enough) {
			return
		}
	}
}

// weights are unnormalised probabilities exp((logit − most) / temperature) in float64: never above 1, so no temperature,
// however small, overflows.
type weights struct {
	logits      []float32
	most        float64
	temperature float64
}

func (w *weights) of(id int32) float64 {
	return math.Exp((float64(w.logits[id]) - w.most) / w.temperature)
}

// logprobs computes the log-probabilities of the chosen and the k best tokens, in float64 but for the terms of their common sum: within
// 2e-6.
func (s *Sampler) logprobs(logits []float32, best, token int32, k int) *Logprobs {
	most := float64(logits[best])
	norm := most + math.Log(s.sum(logits, logits[best], 1))
	of := func(id int32) Logprob { return Logprob{id, float32(float64(logits[id]) - norm)} }
	k = min(k, len(logits))
	out := &Logprobs{Logprob: of(token), Top: make([]Logprob, k)}
	if k == 0 {
		return out
	}
	s.rank.fill(logits, s.maxima)
	for i := range out.Top {
		out.Top[i] = of(s.rank.next())
	}
	return out
}
