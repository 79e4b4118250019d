package sample

import (
	"math"
	"slices"
)

// Sampler chooses tokens. It holds scratch memory only, so one is used by one goroutine at a time; its answers do not depend
// on what it was used for before. Without log-probabilities it allocates nothing once it has seen the vocabulary.
// The zero value is ready.
type Sampler struct {
	rank ranking
	kept []int32   // ids that truncation left, ascending
	mass []float64 // their weights
}

// Sample chooses the token for a position from its logits // (vocab), which are only read. p has passed Validate. The order
// of the steps is vLLM's: temperature, top-k, then top-p over what top-k left. The caller has checked that the logits are
// finite; if they are not, the answer is some token. It returns the log-probabilities that p asks for, else nil.
func (s *Sampler) Sample(logits []float32, p Params, position int) (int32, *Logprobs) {
	if len(logits) == 0 {
		return 0, nil
	}
	best := argmax(logits)
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
func argmax(logits []float32) int32 {
	best := 0
	for i, l := range logits {
		if l > logits[best] {
			best = i
		}
	}
	return int32(best)
}

// draw samples by inversion: the kept tokens in ascending order of id, so that truncation that removes nothing changes
// nothing.
func (s *Sampler) draw(logits []float32, best int32, p Params, position int) int32 {
	w := weights{logits: logits, most: float64(logits[best]), temperature: float64(p.Temperature)}
	u := Uniform(p.Seed, position)
	truncated := p.TopK > 0 && p.TopK < len(logits) || p.TopP > 0 && p.TopP < 1
	s.mass = s.mass[:0]
	var total, sum float64
	if !truncated {
		for id := range logits {
			m := w.of(int32(id))
			s.mass = append(s.mass, m)
			total += m
		}
		for id, m := range s.mass {
			if sum += m; sum > u*total {
				return int32(id)
			}
		}
		return best // only rounding, or logits that are not finite, lead here
	}
	s.truncate(&w, p)
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

// truncate fills s.kept with the ids that top-k and top-p keep.
func (s *Sampler) truncate(w *weights, p Params) {
	s.rank.fill(w.logits)
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
		for i := range w.logits {
			total += w.of(int32(i))
		}
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

// logprobs computes the log-probabilities of the chosen and the k best tokens in float64 and rounds once.
func (s *Sampler) logprobs(logits []float32, best, token int32, k int) *Logprobs {
	most := float64(logits[best])
	var sum float64
	for _, l := range logits {
		sum += math.Exp(float64(l) - most)
	}
	norm := most + math.Log(sum)
	of := func(id int32) Logprob { return Logprob{id, float32(float64(logits[id]) - norm)} }
	k = min(k, len(logits))
	out := &Logprobs{Logprob: of(token), Top: make([]Logprob, k)}
	if k == 0 {
		return out
	}
	s.rank.fill(logits)
	for i := range out.Top {
		out.Top[i] = of(s.rank.next())
	}
	return out
}
