package ref

import (
	"math"

	"github.com/moerack/moerack/kernels"
)

// Route chooses K experts for each row: softmax or sigmoid scores; greedy, group-limited (DeepSeek-V2, section 2.2.2) or
// bias-corrected choice (DeepSeek-V3, section 2.1.2); weights from the scores without bias. Experts come in order of score,
// largest first, ties by the lower expert. Rows of a negative sequence choose none: ids −1, weights 0.
// // ids, weights (T, K), logits (T, E), bias (E) or nil, seqs (T) or nil, scratch (2·E + Groups)
func Route(ids kernels.Ints, weights, logits kernels.Mat, bias []float32, seqs []int32, r kernels.Router, scratch []float32) {
	experts := logits.Cols
	scores, choice, groups := scratch[:experts], scratch[experts:2*experts], scratch[2*experts:]
	for t := range logits.Rows {
		picks := ids.Row(t)
		if seqs != nil && seqs[t] < 0 {
			for k := range picks {
				picks[k] = -1
			}
			clear(weights.Row(t))
			continue
		}
		if r.Sigmoid {
			for e, l := range logits.Row(t) {
				scores[e] = 1 / (1 + exp(-l))
			}
		} else {
			softmax(scores, logits.Row(t))
		}
		copy(choice, scores)
		if r.Method == kernels.NoAuxTC {
			for e := range bias {
				choice[e] += bias[e]
			}
		}
		if r.Method != kernels.Greedy {
			limitGroups(choice, groups[:r.Groups], r)
		}
		topK(picks, choice)
		sortByScore(picks, scores)
		weigh(weights.Row(t), picks, scores, r)
	}
}

// softmax sets out = exp(x − max) / Σ.
func softmax(out, x []float32) {
	top := float32(math.Inf(-1))
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		out[i] = exp(v - top)
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
}

// limitGroups takes the experts of all but the best groups out of the choice: a group counts its best expert
// (group_limited_greedy, others become 0) or its two best (noaux_tc, others become −∞).
func limitGroups(choice, groups []float32, r kernels.Router) {
	size := len(choice) / len(groups)
	for g := range groups {
		best, second := float32(math.Inf(-1)), float32(math.Inf(-1))
		for _, c := range choice[g*size : (g+1)*size] {
			if c > best || c != c {
				best, second = c, best
			} else if c > second {
				second = c
			}
		}
		groups[g] = best
		if r.Method == kernels.NoAuxTC {
			groups[g] = best + second
		}
	}
	out := float32(0)
	if r.Method == kernels.NoAuxTC {
		out = float32(math.Inf(-1))
	}
	for g, v := range groups {
		ahead := 0 // groups that come before g: a larger score, or the same and a lower number
		for o, w := range groups {
			if w > v || w == v && o < g {
				ahead++
			}
		}
		if ahead >= r.TopGroups {
			for e := g * size; e < (g+1)*size; e++ {
				choice[e] = out
			}
		}
	}
}

// topK fills picks with the indices of the largest values, ties by the lower index. NaN is above everything, so that a
// broken expert shows in the result instead of never being chosen; the picks are always distinct and in range.
func topK(picks []int32, v []float32) {
	taken := func(n int, e int32) bool {
		for _, p := range picks[:n] {
			if p == e {
				return true
			}
		}
		return false
	}
	for n := range picks {
		best := int32(-1)
		for e := range v {
			if (best < 0 || v[e] > v[best] || v[e] != v[e] && v[best] == v[best]) && !taken(n, int32(e)) {
				best = int32(e)
			}
		}
		picks[n] = best
	}
}

// sortByScore orders picks by score, largest first, ties by the lower expert (insertion sort: K is small).
func sortByScore(picks []int32, scores []float32) {
	for i := 1; i < len(picks); i++ {
		for j := i; j > 0; j-- {
			a, b := picks[j-1], picks[j]
			if scores[a] > scores[b] || scores[a] == scores[b] && a < b {
				break
			}
			picks[j-1], picks[j] = b, a
		}
	}
}

// weigh sets the weights of the picks: their scores, divided by their sum + 1e-20 if asked for and there are several, times the
// scale.
func weigh(out []float32, picks []int32, scores []float32, r kernels.Router) {
	var sum float32
	for k, e := range picks {
		out[k] = scores[e]
		sum += scores[e]
	}
	for k := range out {
		if r.Normalize && len(out) > 1 {
			out[k] /= sum + 1e-20
		}
		out[k] *= r.Scale
	}
}
