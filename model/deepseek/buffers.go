package deepseek

import (
	"context"
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
	q      hal.Tensor // (T, N·(nope+rope))
	kv     hal.Tensor // (T, latent+rope)
	qc     hal.Tensor // (T, N·(latent+rope))
	sum    hal.Tensor // (T, N·latent)
	v      hal.Tensor // (T, N·value)
	mid    hal.Tensor // (T, widest MLP)
	last   hal.Tensor // (S, H)
	logits hal.Tensor // (S, vocab)
	marks  hal.Tensor // (1, T) I32 first layer that was not finite
	tail   hal.Tensor // (1, S) I32 the same of the logits

	scores    hal.Tensor // (T, E)
	ids       hal.Tensor // (T, K) I32
	weights   hal.Tensor // (T, K)
	index     hal.Tensor // (T, K) I32
	counts    hal.Tensor // (1, E) I32
	routed    hal.Tensor // (T·K, H)
	routedMid hal.Tensor // (T·K, I)

	scale  float32 // of attention scores
	router hal.Router
}

func newActivations(a *nn.Allocator, c *config.Config, l nn.Limits) activations {
	t := l.Rows
	act := activations{
		x:      a.F32(t, c.HiddenSize),
		h:      a.F32(t, c.HiddenSize),
		y:      a.F32(t, c.HiddenSize),
		q:      a.F32(t, c.NumHeads*c.QKHeadDim()),
		kv:     a.F32(t, c.KVLoraRank+c.QKRopeHeadDim),
		qc:     a.F32(t, c.NumHeads*(c.KVLoraRank+c.QKRopeHeadDim)),
		sum:    a.F32(t, c.NumHeads*c.KVLoraRank),
		v:      a.F32(t, c.NumHeads*c.VHeadDim),
		last:   a.F32(l.Samples, c.HiddenSize),
		logits: a.F32(l.Samples, c.VocabSize),
		marks:  a.I32(1, t),
		tail:   a.I32(1, l.Samples),
		scale:  nn.SoftmaxScale(c),
	}
	if c.QLoraRank > 0 {
		act.qDown = a.F32(t, c.QLoraRank)
	}
	widest := 0
	if c.FirstKDenseReplace > 0 {
		widest = c.IntermediateSize
	}
	if c.FirstKDenseReplace < c.NumLayers {
		widest = max(widest, c.MoEIntermediateSize*c.NumSharedExperts)
		act.addExperts(a, c, t)
	}
	if widest > 0 {
		act.mid = a.F32(t, widest)
	}
	return act
}

func (act *activations) addExperts(a *nn.Allocator, c *config.Config, rows int) {
	k := c.NumExpertsPerTok
	act.scores = a.F32(rows, c.NumRoutedExperts)
	act.ids, act.weights, act.index = a.I32(rows, k), a.F32(rows, k), a.I32(rows, k)
	act.counts = a.I32(1, c.NumRoutedExperts)
	act.routed, act.routedMid = a.F32(rows*k, c.HiddenSize), a.F32(rows*k, c.MoEIntermediateSize)
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
}

func newOutputs(c *config.Config, l nn.Limits) outputs {
	return outputs{
		logits: make([]float32, l.Samples*c.VocabSize),
		none:   slices.Repeat([]int32{-1}, max(l.Rows, l.Samples)),
		marks:  make([]int32, l.Rows),
		tail:   make([]int32, l.Samples),
	}
}

// clearMarks sets the marks of the step's rows to none. // (1, T)
func (m *Model) clearMarks(rows int) hal.Tensor {
	marks := m.act.marks.Columns(0, rows)
	m.st.PutInt32(marks, m.host.none[:rows])
	return marks
}

// collect waits for the step and brings logits and marks to the host.
func (m *Model) collect(ctx context.Context, b *nn.Batch) (nn.Output, error) {
	n, rows := len(b.Samples), b.Rows()
	out := nn.Output{Logits: m.host.logits[:n*m.cfg.VocabSize], BadLayer: m.host.tail[:n]}
	if n > 0 {
		logits, tail := m.act.logits.Slice(0, n), m.act.tail.Columns(0, n)
		m.st.PutInt32(tail, m.host.none[:n])
		m.st.MarkNonFinite(tail, logits, int32(len(m.layers)))
		m.st.GetFloat32(out.Logits, logits)
		m.st.GetInt32(out.BadLayer, tail)
	}
	m.st.GetInt32(m.host.marks[:rows], m.act.marks.Columns(0, rows))
	if m.st.Err() != nil {
		return nn.Output{}, m.failed(ctx, "output")
	}
	if err := m.st.Synchronize(ctx); err != nil {
		return nn.Output{}, err
	}
	for i, r := range b.Samples {
		if mark := m.host.marks[r]; mark >= 0 {
			out.BadLayer[i] = mark
		}
	}
	return out, nil
}
