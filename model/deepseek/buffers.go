package deepseek

import (
	"slices"

	"github.com/moerack/moerack/hal"
	"github.com/moerack/moerack/model/config"
	"github.com/moerack/moerack/model/nn"
)

// activations are the buffers of a step, made once for the largest one.
type activations struct {
	x      hal.Tensor // (T, H) residual stream
	h      hal.Tensor // (T, H) normed input of a block
	y      hal.Tensor // (T, H) output of a block
	qDown  hal.Tensor // (T, q_lora_rank), or none
	q      hal.Tensor // (T, n·(nope+rope)) of the rank's n heads
	kv     hal.Tensor // (T, latent+rope)
	qc     hal.Tensor // (T, n·(latent+rope))
	sum    hal.Tensor // (T, n·latent)
	v      hal.Tensor // (T, n·value)
	mid    hal.Tensor // (T, widest MLP)
	last   hal.Tensor // (S, H)
	logits hal.Tensor // (S, vocab) on the engine's first rank, else (S, its part of the vocabulary)
	marks  hal.Tensor // (1, T) I32 first layer that was not finite
	tail   hal.Tensor // (1, S) I32 the same of the logits
	tokens hal.Tensor // (1, S) I32 what was sampled, where other ranks are told

	scores    hal.Tensor // (R, E) of the R rows that the rank brings to the experts
	ids       hal.Tensor // (R, K) I32
	weights   hal.Tensor // (R, K)
	own       hal.Tensor // (R, H) their output, where R is less than T
	routedMid hal.Tensor // (M, I) of the M rows that reach the rank's experts

	scale  float32 // of attention scores
	router hal.Router
}

func newActivations(a *nn.Allocator, c *config.Config, sh share, l nn.Limits) activations {
	t, n := l.Rows, sh.heads.len()
	act := activations{
		x:      a.F32(t, c.HiddenSize),
		h:      a.F32(t, c.HiddenSize),
		y:      a.F32(t, c.HiddenSize),
		q:      a.F32(t, n*c.QKHeadDim()),
		kv:     a.F32(t, c.KVLoraRank+c.QKRopeHeadDim),
		qc:     a.F32(t, n*(c.KVLoraRank+c.QKRopeHeadDim)),
		sum:    a.F32(t, n*c.KVLoraRank),
		v:      a.F32(t, n*c.VHeadDim),
		last:   a.F32(l.Samples, c.HiddenSize),
		logits: a.F32(l.Samples, sh.logits()),
		marks:  a.I32(1, t),
		tail:   a.I32(1, l.Samples),
		scale:  nn.SoftmaxScale(c),
	}
	if c.QLoraRank > 0 {
		act.qDown = a.F32(t, c.QLoraRank)
	}
	if widest := max(sh.dense.len(), sh.shared.len()); widest > 0 {
		act.mid = a.F32(t, widest)
	}
	if sh.cut() {
		act.tokens = a.I32(1, l.Samples)
	}
	if sh.experts.n > 0 {
		act.addExperts(a, c, sh, t)
	}
	return act
}

func (act *activations) addExperts(a *nn.Allocator, c *config.Config, sh share, rows int) {
	k := c.NumExpertsPerTok
	from, to := sh.own(rows)
	r := to - from
	act.scores, act.ids, act.weights = a.F32(r, c.NumRoutedExperts), a.I32(r, k), a.F32(r, k)
	if r < rows {
		act.own = a.F32(r, c.HiddenSize)
	}
	act.routedMid = a.F32(sh.sizes(c, rows).Arriving(r), sh.expertWidth.len())
	act.router = hal.Router{
		Scoring:   map[config.ScoringFunc]hal.Scoring{config.Softmax: hal.Softmax, config.Sigmoid: hal.Sigmoid}[c.ScoringFunc],
		Method:    map[config.TopKMethod]hal.TopKMethod{config.Greedy: hal.Greedy, config.GroupLimitedGreedy: hal.GroupLimitedGreedy, config.NoAuxTC: hal.NoAuxTC}[c.TopKMethod],
		Groups:    c.NGroup,
		TopGroups: c.TopKGroup,
		Normalize: c.NormTopKProb,
		Scale:     float32(c.RoutedScalingFactor),
	}
}

// outputs are the host's side of a step's results.
type outputs struct {
	logits []float32 // (S, vocab)
	none   []int32   // (max(T, S)) all −1
	marks  []int32   // (T)
	tail   []int32   // (S)
	served []int32   // (layers, experts of the rank) rows
}

func newOutputs(m *Model) outputs {
	l := m.limits
	return outputs{
		logits: make([]float32, l.Samples*m.share.logits()),
		none:   slices.Repeat([]int32{-1}, max(l.Rows, l.Samples)),
		marks:  make([]int32, l.Rows),
		tail:   make([]int32, l.Samples),
		served: make([]int32, len(m.layers)*m.share.experts.len()),
	}
}
