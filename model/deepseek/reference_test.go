package deepseek_test

import (
	"fmt"
	"math"
	"slices"

	"github.com/moerack/moerack/model/config"
)

// reference is the network in its expanded form and in float64: keys and values are made for every head and position, scores meet
// them in a plain softmax. It follows the published formulas and shares nothing with the model but the configuration.
type reference struct {
	c *config.Config
	w map[string][]float64
}

// logits of all positions of a prompt. // (len(ids), vocab)
func (r reference) logits(ids []int32) [][]float64 {
	h := r.c.HiddenSize
	var x [][]float64
	for _, id := range ids {
		x = append(x, slices.Clone(r.w["model.embed_tokens.weight"][int(id)*h:][:h]))
	}
	for i := range r.c.NumLayers {
		p := fmt.Sprintf("model.layers.%d.", i)
		normed := r.normAll(x, p+"input_layernorm.weight", r.c.RMSNormEps)
		for t, y := range r.attention(p+"self_attn.", normed) {
			addTo(x[t], y)
		}
		for t, y := range r.normAll(x, p+"post_attention_layernorm.weight", r.c.RMSNormEps) {
			if r.c.IsMoE(i) {
				addTo(x[t], r.experts(p+"mlp.", y))
			} else {
				addTo(x[t], r.mlp(p+"mlp.", y))
			}
		}
	}
	var out [][]float64
	for _, y := range r.normAll(x, "model.norm.weight", r.c.RMSNormEps) {
		out = append(out, r.linear("lm_head.weight", y))
	}
	return out
}

func (r reference) attention(p string, x [][]float64) [][]float64 {
	c := r.c
	nope, rope, val, lat := c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim, c.KVLoraRank
	q, k, v := make([][]float64, len(x)), make([][]float64, len(x)), make([][]float64, len(x)) // all heads of a position
	for t := range x {
		q[t] = r.query(p, x[t])
		for n := range c.NumHeads {
			r.rotate(q[t][n*(nope+rope)+nope:][:rope], t)
		}
		kv := r.linear(p+"kv_a_proj_with_mqa.weight", x[t])
		key := kv[lat:]
		r.rotate(key, t)
		up := r.linear(p+"kv_b_proj.weight", r.norm(kv[:lat], p+"kv_a_layernorm.weight", 1e-6))
		for n := range c.NumHeads {
			head := up[n*(nope+val):][:nope+val]
			k[t] = slices.Concat(k[t], head[:nope], key)
			v[t] = append(v[t], head[nope:]...)
		}
	}
	var out [][]float64
	for t := range x {
		sum := make([]float64, c.NumHeads*val)
		for n := range c.NumHeads {
			width := nope + rope
			scores := make([]float64, t+1)
			for s := range scores {
				scores[s] = dot(q[t][n*width:][:width], k[s][n*width:][:width]) * r.scale()
			}
			for s, w := range softmax(scores) {
				for i := range val {
					sum[n*val+i] += w * v[s][n*val+i]
				}
			}
		}
		out = append(out, r.linear(p+"o_proj.weight", sum))
	}
	return out
}

func (r reference) query(p string, x []float64) []float64 {
	if r.c.QLoraRank == 0 {
		return r.linear(p+"q_proj.weight", x)
	}
	return r.linear(p+"q_b_proj.weight", r.norm(r.linear(p+"q_a_proj.weight", x), p+"q_a_layernorm.weight", 1e-6))
}

// scale of scores, with YaRN's mscale squared.
func (r reference) scale() float64 {
	s := 1 / math.Sqrt(float64(r.c.QKNopeHeadDim+r.c.QKRopeHeadDim))
	if y := r.c.Rope; y != nil && y.Factor > 1 {
		m := 0.1*y.MScaleAllDim*math.Log(y.Factor) + 1
		s *= m * m
	}
	return s
}

// rotate turns interleaved pairs by the position's angles, blended per pair as YaRN says.
func (r reference) rotate(x []float64, pos int) {
	d, m := float64(len(x)), 1.0
	for i := 0; i < len(x); i += 2 {
		f := math.Pow(r.c.RopeTheta, -float64(i)/d)
		if y := r.c.Rope; y != nil {
			pair := func(turns float64) float64 {
				return d * math.Log(float64(y.OriginalMaxPositionEmbeddings)/(turns*2*math.Pi)) / (2 * math.Log(r.c.RopeTheta))
			}
			low, high := math.Max(math.Floor(pair(y.BetaFast)), 0), math.Min(math.Ceil(pair(y.BetaSlow)), d-1)
			if low == high {
				high += 0.001
			}
			ramp := math.Min(math.Max((float64(i/2)-low)/(high-low), 0), 1)
			f = f/y.Factor*ramp + f*(1-ramp)
			m = (0.1*y.MScale*math.Log(y.Factor) + 1) / (0.1*y.MScaleAllDim*math.Log(y.Factor) + 1)
		}
		sin, cos := math.Sincos(float64(pos) * f)
		x[i], x[i+1] = (x[i]*cos-x[i+1]*sin)*m, (x[i+1]*cos+x[i]*sin)*m
	}
}

func (r reference) experts(p string, x []float64) []float64 {
	c := r.c
	logits := r.linear(p+"gate.weight", x)
	score := softmax(logits)
	if c.ScoringFunc == config.Sigmoid {
		for e, l := range logits {
			score[e] = 1 / (1 + math.Exp(-l))
		}
	}
	choice := slices.Clone(score)
	if c.TopKMethod == config.NoAuxTC {
		addTo(choice, r.w[p+"gate.e_score_correction_bias"])
	}
	if c.TopKMethod != config.Greedy {
		size := c.NumRoutedExperts / c.NGroup
		value := make([]float64, c.NGroup)
		for g := range value {
			best := descending(choice[g*size:][:size])
			value[g] = choice[g*size+best[0]]
			if c.TopKMethod == config.NoAuxTC {
				value[g] += choice[g*size+best[1]]
			}
		}
		for _, g := range descending(value)[c.TopKGroup:] {
			for e := range size {
				choice[g*size+e] = math.Inf(-1)
			}
		}
	}
	picks := descending(choice)[:c.NumExpertsPerTok]
	total := 0.0
	for _, e := range picks {
		total += score[e]
	}
	out := make([]float64, len(x))
	if c.NumSharedExperts > 0 {
		out = r.mlp(p+"shared_experts.", x)
	}
	for _, e := range picks {
		w := score[e] * c.RoutedScalingFactor
		if c.NormTopKProb {
			w /= total
		}
		for i, v := range r.mlp(fmt.Sprintf("%sexperts.%d.", p, e), x) {
			out[i] += w * v
		}
	}
	return out
}

func (r reference) mlp(p string, x []float64) []float64 {
	g, u := r.linear(p+"gate_proj.weight", x), r.linear(p+"up_proj.weight", x)
	for i, v := range g {
		u[i] *= v / (1 + math.Exp(-v))
	}
	return r.linear(p+"down_proj.weight", u)
}

func (r reference) linear(name string, x []float64) []float64 {
	w := r.w[name]
	y := make([]float64, len(w)/len(x))
	for o := range y {
		y[o] = dot(w[o*len(x):][:len(x)], x)
	}
	return y
}

func (r reference) normAll(x [][]float64, name string, eps float64) [][]float64 {
	var out [][]float64
	for _, row := range x {
		out = append(out, r.norm(row, name, eps))
	}
	return out
}

func (r reference) norm(x []float64, name string, eps float64) []float64 {
	out, s := make([]float64, len(x)), math.Sqrt(dot(x, x)/float64(len(x))+eps)
	for i, v := range x {
		out[i] = v / s * r.w[name][i]
	}
	return out
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += v * b[i]
	}
	return s
}

func addTo(a, b []float64) {
	for i, v := range b {
		a[i] += v
	}
}

func softmax(x []float64) []float64 {
	out, sum := make([]float64, len(x)), 0.0
	for i, v := range x {
		out[i] = math.Exp(v - slices.Max(x))
		sum += out[i]
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}

// descending returns the indices of x, largest value first, ties by the lower index.
func descending(x []float64) []int {
	ix := make([]int, len(x))
	for i := range ix {
		ix[i] = i
	}
	slices.SortStableFunc(ix, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		default:
			return 0
		}
	})
	return ix
}
